import Buckia
import BuckiaApply
import BuckiaFormat
import BuckiaBytes
import BuckiaLedger
import SQLiteSchemas
import Foundation
import SQLiteConnections
import TestSupport
import Testing

private let notes = "CREATE TABLE notes(id INTEGER PRIMARY KEY, n); INSERT INTO notes VALUES (1, 1)"

/// Every file is applied or named, and later files wait for one that cannot be read for now.
@Suite struct UnreadFileTests {
  @Test("The refusals of a partial file are forgotten once the whole file is applied")
  func partFirst() throws {
    let exchange = try Exchange("CREATE TABLE t(id INTEGER PRIMARY KEY, v TEXT)")
    let report = try exchange.send("INSERT INTO t VALUES (1, 'a')")
    let path = try #require(report.path)
    let whole = try fileBytes(path)
    for count in [whole.count / 2, 20] {
      try Data(whole.prefix(count)).write(to: URL(fileURLWithPath: path))
      #expect(try exchange.apply().diffs.map(\.state) == [.rejected])
    }
    #expect(try exchange.database.status().ledger?.rejected == 2)
    try Data(whole).write(to: URL(fileURLWithPath: path))
    #expect(try exchange.apply().diffs.map(\.state) == [.applied])
    #expect(try exchange.database.status().ledger?.rejected == 0)
    #expect(try exchange.database.log().map(\.state) == [.applied])
  }

  @Test("A file that cannot be examined is refused as unreadable, and the refusal is not recorded")
  func unsearchable() throws {
    let exchange = try Exchange(notes)
    try exchange.send("INSERT INTO notes VALUES (2, 2)")
    // The folder's path is as long as a path may be, so the paths of its files are too long. This holds for the
    // superuser, too, who may search every folder.
    let room = Int(PATH_MAX) - 3 - exchange.inbound.utf8.count
    let longPath = exchange.inbound + String(repeating: "/.", count: room / 2)
    let report = try exchange.database.processInboundChanges([longPath])
    #expect(report.diffs.map(\.state) == [.rejected])
    #expect(report.diffs.first?.code == .unreadable)
    #expect(try exchange.database.log().isEmpty, "the file may be fine")
    #expect(try exchange.apply().applied.count == 1)
  }

  @Test("A path that leads through a file is unreadable, not missing")
  func throughFile() throws {
    let exchange = try Exchange(notes)
    let error = #expect(throws: BuckiaError.self) {
      try exchange.database.processInboundChanges(["\(exchange.mine)/inbound"])
    }
    #expect(error?.code == .unreadable)
  }

  /// A file by a sender that inserts one row.
  private func file(_ id: Int64, by sender: String) throws -> IncomingFile {
    let exchange = try Exchange(notes)
    try exchange.plant(
      insertion(into: "notes", values: [id, id]), definitions: definitions(of: exchange.base),
      id: Exchange.id(at: 1_600_000_000 + id))
    let all = try exchange.changes()
    let key = LedgerKey(sender: sender, id: all.key.id, digest: all.key.digest, isRaw: false)
    let changes = try IncomingChanges(
      key: key, file: "\(id).bdiff", definitions: all.definitions, changeset: all.changeset)
    return IncomingFile(
      path: "\(id).bdiff", name: "\(id).bdiff", id: key.id, sender: sender, content: .verified(changes), byteCount: 100,
      digest: { key.digest })
  }

  private func unread(_ name: String, by sender: String?, isPassing: Bool = true) -> IncomingFile {
    let refusal = Refusal(
      .rejected, code: .unreadable, reason: "it cannot be read: Input/output error", isRecorded: false,
      isPassing: isPassing)
    return IncomingFile(
      path: name, name: name, id: nil, sender: sender ?? "", isSenderKnown: sender != nil, content: .failed(refusal),
      byteCount: 0, digest: { [] })
  }

  @Test("If a file cannot be read for now, later files of its sender wait, and those of others do not")
  func laterOnesWait() throws {
    let exchange = try Exchange(notes)
    let (first, second, third) = (try file(10, by: "aa"), try file(11, by: "aa"), try file(12, by: "bb"))
    let outcomes = try ReadyFiles.receive([first, unread("lost", by: "aa"), second, third], into: exchange.mine)
    #expect(outcomes.map(\.state) == [.applied, .rejected, .waiting, .applied])
    #expect(outcomes[2].code == .behindUnread)
    #expect(outcomes[2].reason?.contains("\"lost\"") == true)
    #expect(try exchange.database.log().map(\.state) == [.applied, .applied])
    #expect(
      try ReadyFiles.receive([second], into: exchange.mine).map(\.state) == [.applied], "the next run tries again")
  }

  @Test("All files wait for an unreadable file of an unknown sender, except those that were applied before")
  func anybodysFile() throws {
    let exchange = try Exchange(notes)
    let (first, second) = (try file(10, by: ""), try file(11, by: "bb"))
    #expect(try ReadyFiles.receive([first], into: exchange.mine).map(\.state) == [.applied])
    let outcomes = try ReadyFiles.receive([unread("lost", by: nil), first, second], into: exchange.mine)
    #expect(outcomes.map(\.state) == [.rejected, .alreadyApplied, .waiting])
  }

  @Test("Later files do not wait for a file that is at fault itself")
  func ownFault() throws {
    let exchange = try Exchange(notes)
    let outcomes = try ReadyFiles.receive(
      [unread("bad", by: "aa", isPassing: false), file(10, by: "aa")], into: exchange.mine)
    #expect(outcomes.map(\.state) == [.rejected, .applied])
  }
}
