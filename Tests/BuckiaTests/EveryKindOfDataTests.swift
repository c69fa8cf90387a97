import Buckia
import BuckiaBytes
import BuckiaFormat
import BuckiaDiff
import SQLiteChangesets
import SQLiteConnections
import Testing
import TestSupport

/// Every kind of data that SQLite can store is recorded, compared and applied.
@Suite struct EveryKindOfDataTests {
  /// The old and the new database of a case, and the changes that a session has recorded between them.
  private struct Files {
    let folder: TemporaryFolder
    let older: String
    let newer: String
    /// Nil if the session cannot record the changes.
    let recorded: [UInt8]?

    init(_ kind: KindOfData) throws {
      folder = try TemporaryFolder()
      older = try TestDatabases.run(kind.schema, on: folder.file("older"))
      newer = try folder.copy("older", to: "newer")
      let connection = try SQLiteConnection(opening: newer, as: .readWrite)
      let session = try SQLiteSession(on: connection)
      try session.attach()
      try connection.execute(kind.edits)
      recorded = try Self.changes(of: session)
      // The session is finished before another connection writes to the file.
      if !kind.unwatched.isEmpty { try TestDatabases.run(kind.unwatched, on: newer) }
    }

    private static func changes(of session: borrowing SQLiteSession) throws(SQLiteError) -> [UInt8]? {
      do {
        return try session.changeset()
      } catch {
        guard error.isSchemaMismatch else { throw error }
        return nil
      }
    }

    func difference(_ method: DiffMethod?) throws -> DatabaseDifference {
      try DatabaseComparison.run(older: older, newer: newer, options: DiffOptions(method: method))
    }

    /// Applies a file to a copy of a database, and returns the path of the copy.
    func apply(
      _ file: String, to base: String, named name: String, mayConflict: Bool = false
    ) throws -> String {
      let target = try folder.copy(base, to: name)
      let report = try DatabaseManager(target).processInboundChanges([file])
      #expect(report.diffs.map(\.state) == [.applied], "\(report.diffs.map { $0.reason ?? "" })")
      let conflicts = try DatabaseManager(target).conflicts().map { "\($0.table) \($0.key) \($0.kind)" }
      #expect(mayConflict || conflicts == [])
      #expect(report.diffs.flatMap(\.warnings) == [])
      #expect(try TestDatabases.rows("PRAGMA integrity_check", on: target) == ["'111.107'"])
      return target
    }

    /// Writes the differences between `older` and the new database to a file.
    func ship(from older: String, named name: String) throws -> DiffReport {
      try DatabaseManager(newer, home: BuckiaHome(path: folder.file("home"))).createDatabaseDiff(
        since: older, output: .file(folder.file(name), replacing: false))
    }
  }

  /// The changes of a difference as bytes, sorted.
  private static func changes(_ difference: DatabaseDifference) throws -> [[UInt8]] {
    try difference.changeset.allBytes().withRawSpan { bytes in
      var changes: [[UInt8]] = []
      var reader = ChangesetReader()
      while let change = try reader.next(in: bytes) {
        changes.append(Array((reader.table?.name ?? "").utf8) + [0] + bytes.array(change.range))
      }
      return changes.sorted { $0.lexicographicallyPrecedes($1) }
    }
  }

  @Test("All methods find the same changes", arguments: KindOfData.all)
  func methods(_ kind: KindOfData) throws {
    let files = try Files(kind)
    let rows = try files.difference(.rows)
    let pages = try files.difference(.pages)
    let session = try files.difference(.session)
    #expect(try Self.changes(pages) == Self.changes(rows))
    #expect(pages.skipped == rows.skipped && session.skipped == rows.skipped)
    let isSame = try Self.changes(session) == Self.changes(rows)
    #expect(isSame == (kind.missedBySession == nil), "\(kind.missedBySession ?? "")")
    #expect(try !Self.changes(rows).isEmpty)
  }

  @Test("A diff file, applied to the old database, makes it equal to the new one", arguments: KindOfData.all)
  func mirror(_ kind: KindOfData) throws {
    let files = try Files(kind)
    let report = try files.ship(from: files.older, named: "changes.bdiff")
    let target = try files.apply(try #require(report.path), to: files.older, named: "target")
    #expect(try WholeContent(of: target) == WholeContent(of: files.newer))
    try Self.expectCounters(of: target, from: files)
    #expect(try DatabaseComparison.run(older: target, newer: files.newer).isEmpty)
  }

  @Test(
    "A diff file with all rows, applied to an empty database of each encoding, makes the same rows",
    arguments: KindOfData.all)
  func again(_ kind: KindOfData) throws {
    let files = try Files(kind)
    let empty = try TestDatabases.run("PRAGMA user_version = 1", on: files.folder.file("empty"))
    let report = try files.ship(from: empty, named: "all.bdiff")
    for table in kind.lost { #expect(report.skipped.contains { $0.name == table }) }
    let wanted = try WholeContent(of: files.newer, leavingOut: kind.lost, onlyOrdinaryColumns: true)
    for encoding in ["UTF-8", "UTF-16le", "UTF-16be"] {
      // Text that is no UTF-8 has a test of its own.
      if encoding != "UTF-8", kind.testDescription == "text that is no UTF-8" { continue }
      let base = try TestDatabases.run(
        "PRAGMA encoding = '\(encoding)'; CREATE TABLE one(a); DROP TABLE one", on: files.folder.file(encoding))
      let target = try files.apply(try #require(report.path), to: base, named: "made-\(encoding)")
      #expect(try WholeContent(of: target) == wanted, "\(encoding)")
      try Self.expectCounters(of: target, from: files)
    }
  }

  @Test("The changes that a session records make the old database equal to the new one", arguments: KindOfData.all)
  func live(_ kind: KindOfData) throws {
    let files = try Files(kind)
    var target = files.older
    if let recorded = files.recorded, !recorded.isEmpty {
      let path = files.folder.file("recorded.changeset")
      try RawChangeset.write(TemporaryBuffer(recorded), to: path, replacing: false)
      target = try files.apply(path, to: files.older, named: "target", mayConflict: kind.notRecorded != nil)
    }
    // VACUUM changes the rowids of rows without a key, and no session records that.
    guard kind.unwatched.isEmpty || kind.notRecorded == nil && !kind.edits.isEmpty else { return }
    let isSame = try WholeContent(of: target) == WholeContent(of: files.newer)
    #expect(isSame == (kind.notRecorded == nil), "\(kind.notRecorded ?? "")")
  }

  /// Checks that each counter is at least the greatest id of its table.
  private static func expectCounters(of target: String, from files: Files) throws {
    let found = try counters(of: target)
    for table in try counters(of: files.newer).keys {
      let greatest = try TestDatabases.rows("SELECT max(rowid) FROM \"\(table)\"", on: files.newer).first ?? "0"
      #expect(found[table, default: 0] >= Int64(greatest) ?? 0, "\(table)")
    }
  }
}
