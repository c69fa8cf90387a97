import BuckiaApply
import BuckiaDiff
import BuckiaLedger
import SQLiteSchemas
import BuckiaBytes
import SQLiteChangesets
import SQLiteConnections
import Testing
import TestSupport

/// Combines every form of a table with every other, in every mode.
@Suite struct SchemaMatrixTests {
  private static let receivers = SchemaVariant.all
  private static let authors = SchemaVariant.all.filter { $0.kind == .table }

  /// The changes of an author whose table has the given form: row 5 is inserted, row 2 updated, row 3 deleted.
  private static func changes(of author: SchemaVariant) throws -> IncomingChanges {
    let folder = try TemporaryFolder()
    let parent = "CREATE TABLE parent(id INTEGER PRIMARY KEY); INSERT INTO parent VALUES (5), (7)"
    let rows = (1...4).map(author.insertion).joined(separator: ";")
    let older = try TestDatabases.run("\(author.sql); \(parent); \(rows)", on: folder.file("older"))
    let newer = try folder.copy("older", to: "newer")
    let identity = author.key.isEmpty ? "rowid" : author.key[0]
    let place = { (row: Int) in
      identity == "rowid" ? "\(row)" : author.column(identity).map { "\(author.value(of: $0, row: row))" } ?? ""
    }
    if let changed = author.changedColumn {
      try TestDatabases.run(
        "UPDATE t SET \(changed.name) = \(author.changedValue) WHERE \(identity) = \(place(2))", on: newer)
    }
    try TestDatabases.run("DELETE FROM t WHERE \(identity) = \(place(3)); \(author.insertion(of: 5))", on: newer)
    let difference = try DatabaseComparison.run(older: older, newer: newer)
    return try IncomingChanges(
      key: LedgerKey(sender: "", id: nil, digest: [1], isRaw: false), file: "matrix",
      definitions: difference.tables.map(\.definition), changeset: difference.changeset)
  }

  @Test("The matrix is large enough")
  func size() {
    #expect(Self.authors.count * Self.receivers.count * SchemaMode.allCases.count >= 600)
  }

  @Test("The plan and the rows follow from the facts about both forms", arguments: authors)
  func pairs(author: SchemaVariant) throws {
    let changes = try Self.changes(of: author)
    for receiver in Self.receivers {
      for mode in SchemaMode.allCases {
        let expected = SchemaExpectation(author, into: receiver, mode: mode)
        let found = try Outcome(of: changes, on: receiver, mode, columns: expected.columns.map(\.name))
        let cell = "\(author.name) into \(receiver.name), \(mode.rawValue)"
        #expect(found.refusal == expected.refusal, "\(cell)")
        #expect(found.plan == expected.plan, "\(cell)")
        #expect(found.heldParts == min(expected.heldParts, expected.heldParts >= 100 ? 1 : 99), "\(cell)")
        #expect(found.conflicts == expected.conflicts, "\(cell)")
        #expect(found.rows == expected.rows.map { rows in rows.map { "\($0)" }.sorted() }, "\(cell)")
        #expect(found.isSound, "\(cell)")
      }
    }
  }

  /// The result at a receiver.
  private struct Outcome {
    var plan: [String] = []
    var refusal: String?
    var heldParts = 0
    var conflicts = 0
    var rows: [String]?
    var isSound = false

    init(of changes: IncomingChanges, on receiver: SchemaVariant, _ mode: SchemaMode, columns: [String]) throws {
      let connection = try SQLiteConnection(opening: ":memory:", as: .create)
      try connection.execute("CREATE TABLE parent(id INTEGER PRIMARY KEY); INSERT INTO parent VALUES (5), (7)")
      try connection.execute(receiver.sql)
      if receiver.kind == .table { for row in 1...4 { try connection.execute(receiver.insertion(of: row)) } }
      let transaction = try SQLiteTransaction(on: connection)
      do {
        let plan = try Receiver.plan(
          changes, on: connection, settings: ApplySettings(schema: mode, time: 2_000_000_000_000))
        self.plan = plan.notes.map { note in
          ([note.action.rawValue] + (note.column.map { [$0.lowercased()] } ?? [])).joined(separator: " ")
        }.sorted()
        let result = try plan.apply()
        heldParts = result.held.reduce(0) { $0 + $1.partCount }
        conflicts = result.counts.conflicts
      } catch let error as ReplicationError {
        refusal = error.code.rawValue
        plan = []
      }
      try transaction.commit()
      if try connection.text("SELECT type FROM sqlite_schema WHERE name = 't' COLLATE NOCASE AND rootpage > 0")
        == "table"
      {
        let values = columns.map { "quote(\($0))" }.joined(separator: " || ', ' || ")
        rows = try TestDatabases.texts("SELECT '[' || \(values) || ']' FROM t", on: connection).sorted()
      }
      isSound = try connection.text("PRAGMA integrity_check") == "ok"
    }
  }
}
