#if GRDB
  import Buckia
  import BuckiaGRDB
  import Foundation
  import GRDB
  import TestSupport
  import Testing

  @Suite("Records of received files")
  struct LoggedRecordTests {
    private let mailbox: Mailbox

    /// One file is applied with a conflict in each of two tables, and one is refused.
    init() throws {
      mailbox = try Mailbox()
      try mailbox.writer.write { db in
        try db.execute(sql: "UPDATE notes SET title = 'Raft' WHERE id = 1; UPDATE tags SET colour = 'grey'")
      }
      try mailbox.deliver("UPDATE notes SET title = 'Ship' WHERE id = 1; UPDATE tags SET colour = 'green'")
      try mailbox.deliver("INSERT INTO notes VALUES (3, 'Harbour')")
      let damaged = try #require(mailbox.files().last)
      var bytes = try fileBytes("\(mailbox.inbound)/\(damaged)")
      bytes[bytes.count / 2] ^= 0xff
      try mailbox.folder.write(bytes, to: "inbound/\(damaged)")
      let report = try mailbox.writer.withBuckia { try $0.processInboundChanges([mailbox.inbound]) }
      try #require(report.diffs.map(\.state) == [.applied, .rejected])
    }

    private func read<Value>(_ body: (Database) throws -> Value) throws -> Value { try mailbox.writer.read(body) }

    @Test("Applied files are read with their numbers")
    func diffs() throws {
      let diff = try #require(try read { try LoggedDiff.fetchOne($0) })
      let entry = try #require(try read { try $0.buckia.log().first })
      #expect(diff.diff == entry.diff && diff.diff != nil)
      #expect(diff.state == .applied && diff.conflicts == 2 && diff.sender.isEmpty && !diff.isRaw)
      #expect(Int64((diff.recordedAt.timeIntervalSince1970 * 1_000).rounded()) == entry.recordedAt)
      #expect(try read { try LoggedDiff.filter { $0.state == DiffState.held }.fetchCount($0) } == 0)
      #expect(try read { try LoggedDiff.find($0, id: diff.id) } == diff)
    }

    @Test("Conflicts are read with their tables, and selected by them")
    func conflicts() throws {
      let records = try read { try $0.buckia.conflicts() }
      let found = try read { try LoggedConflict.orderByPrimaryKey().fetchAll($0) }
      #expect(found.map(\.id) == records.map(\.id))
      #expect(found.map(\.table) == records.map(\.table))
      #expect(found.map(\.kind) == records.map(\.kind))
      #expect(found.map(\.outcome) == [.keptLocal, .keptLocal])
      #expect(found.map(\.isOpen) == [true, true])
      #expect(try read { try LoggedConflict.all().inTable("NOTES").fetchAll($0) }.map(\.table) == ["notes"])
      #expect(try read { try LoggedConflict.filter { $0.kind == ConflictKind.notFound }.fetchCount($0) } == 0)
    }

    @Test("Resolved conflicts are no longer open")
    func openConflicts() throws {
      let first = try #require(try read { try LoggedConflict.all().inTable("notes").fetchOne($0) })
      _ = try mailbox.writer.write { try $0.buckia.resolve([first.id], taking: .incoming) }
      #expect(try read { try LoggedConflict.all().open().fetchAll($0) }.map(\.table) == ["tags"])
      #expect(try read { try LoggedConflict.find($0, id: first.id).isOpen } == false)
      #expect(try mailbox.texts("SELECT title FROM notes WHERE id = 1") == ["Ship"])
    }

    @Test("Conflicts and diffs can be joined from either side")
    func associations() throws {
      struct Line: Decodable, FetchableRecord {
        let file: String
        let conflictCount: Int
      }
      let lines = try read { db in
        try LoggedDiff.select { [$0.file] }
          .annotated(with: LoggedDiff.loggedConflicts.count.forKey("conflictCount"))
          .asRequest(of: Line.self).fetchAll(db)
      }
      #expect(lines.map(\.conflictCount) == [2])
      let joined = try read { db in
        try LoggedConflict.including(required: LoggedConflict.diff).all().open().inTable("tags").fetchAll(db)
      }
      #expect(joined.map(\.table) == ["tags"])
      let ofApplied = try read { db in
        let applied = LoggedConflict.diff.filter { $0.state == DiffState.applied }
        return try LoggedConflict.joining(required: applied).fetchCount(db)
      }
      #expect(ofApplied == 2)
    }

    @Test("Refused files are read with the reason")
    func refusals() throws {
      let refusal = try #require(try read { try LoggedRefusal.order { $0.lastAt.desc }.fetchOne($0) })
      #expect(refusal.state == .rejected && refusal.times == 1 && refusal.firstAt == refusal.lastAt)
      #expect(refusal.id.count == 32 && !refusal.reason.isEmpty)
      #expect(try mailbox.files() == [refusal.file])
    }

    @Test("Requests can be tracked", .timeLimit(.minutes(1)))
    func tracked() async throws {
      let observation = ValueObservation.tracking { try LoggedConflict.all().open().fetchCount($0) }
      var counts: [Int] = []
      for try await count in observation.values(in: mailbox.writer) {
        counts.append(count)
        if count == 0 { break }
        try await mailbox.writer.withBuckia { _ = try $0.resolve(matching: ConflictFilter(), taking: .local) }
      }
      #expect(counts == [2, 0])
    }
  }
#endif
