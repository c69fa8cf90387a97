import Buckia
import BuckiaApply
import BuckiaBytes
import BuckiaFormat
import BuckiaLedger
import SQLiteSchemas
import Foundation
import SQLiteChangesets
import SQLiteConnections
import TestSupport
import Testing

private let schema = """
  CREATE TABLE notes(id INTEGER PRIMARY KEY, n INTEGER);
  INSERT INTO notes VALUES (1, 1), (2, 2);
  CREATE VIEW v AS SELECT * FROM notes;
  CREATE VIRTUAL TABLE f USING fts5(a, b);
  CREATE VIRTUAL TABLE r USING rtree(id, a, b);
  CREATE TABLE gen(id INTEGER PRIMARY KEY, n AS (id + 1));
  CREATE INDEX taken ON notes(n);
  INSERT INTO f VALUES ('x', 'y')
  """

@Suite struct HostileInputTests {
  /// A table definition in a file, and the reason why the file is refused.
  struct Case: Sendable, CustomTestStringConvertible {
    let name: String
    let table: TableDefinition
    /// Parts of the reason.
    let reason: [String]
    var testDescription: String { name }

    init(_ name: String, table: String, columns: [String] = ["id", "n"], key: [Int] = [0], reason: String...) {
      self.init(
        name, TableDefinition(name: table, columns: columns.map { ColumnDefinition(name: $0) }, primaryKey: key),
        reason: reason)
    }

    init(_ name: String, _ table: TableDefinition, reason: [String]) {
      self.name = name
      self.table = table
      self.reason = reason
    }

    static let all = [
      Case("a view", table: "v", reason: "\"v\"", "view"),
      Case("a virtual table", table: "F", reason: "\"F\"", "virtual"),
      Case("a shadow table", table: "f_content", reason: "f_content", "insides"),
      Case("the node table of an R-tree", table: "R_NODE", columns: ["nodeno", "data"], reason: "R_NODE", "insides"),
      Case("another key", table: "notes", key: [1], reason: "notes", "primary key"),
      Case("no key", table: "notes", key: [], reason: "notes", "primary key"),
      Case("a composite key", table: "notes", key: [0, 1], reason: "notes", "primary key"),
      Case("a generated column", table: "gen", reason: "gen.n", "generated"),
      Case("the name of an index", table: "taken", reason: "taken"),
      Case("the name of a module", table: "json_each", reason: "json_each", "module"),
      Case("a pragma's function", table: "pragma_table_info", reason: "pragma_"),
      Case("a column that hides the rowid", table: "new", columns: ["id", "rowid"], reason: "rowid"),
      Case(
        "an unknown collation",
        TableDefinition(
          name: "new", columns: [ColumnDefinition(name: "id", collation: "evil"), ColumnDefinition(name: "n")],
          primaryKey: [0]), reason: ["collating sequence", "evil"]),
      Case(
        "65 new columns", table: "notes", columns: ["id", "n"] + (0..<65).map { "c\($0)" },
        reason: "64 columns", "notes"),
    ]
  }

  @Test("A diff file with a forbidden table definition is refused and changes nothing", arguments: Case.all)
  func refused(_ item: Case) throws {
    let exchange = try Exchange(schema)
    let before = try exchange.everythingButOurs()
    let columns = item.table.changesetColumns.count
    let changeset = insertion(
      into: item.table.name, keyFlags: item.table.keyFlags, values: (0..<columns).map { Int64(50 + $0) })
    let path: String
    do {
      path = try exchange.plant(changeset, definitions: [item.table])
    } catch let error as DiffFileError {
      // Buckia's own writer refuses to make some of these files.
      for part in item.reason { #expect(error.description.contains(part), "\(error)") }
      return
    }
    let report = try exchange.apply()
    #expect(report.diffs.map(\.state) == [.rejected])
    let reason = try #require(report.diffs.first?.reason)
    for part in item.reason { #expect(reason.contains(part), "\(reason)") }
    #expect(try exchange.everythingButOurs() == before)
    #expect(try exchange.database.log().map(\.state) == [.rejected])
    #expect(try exchange.database.log().first?.file == URL(fileURLWithPath: path).lastPathComponent)
  }

  @Test(
    "A raw changeset for a forbidden or different table is refused and changes nothing",
    arguments: [
      ("buckia_ledger", [UInt8]([1, 0])), ("Buckia_Settings", [1, 0]), ("pragma_table_info", [1, 0]),
      ("v", [1, 0]), ("f", [1, 0]), ("f_data", [1, 0]), ("r_parent", [1, 0]), ("missing", [1, 0]),
      ("notes", [0, 1]), ("notes", [1, 1]), ("notes", [1, 0, 0]), ("", [1, 0]),
    ])
  func refusedRaw(_ table: String, _ keyFlags: [UInt8]) throws {
    let exchange = try Exchange(schema)
    try exchange.database.initialize()
    let before = try exchange.everythingButOurs()
    let settings = try exchange.rows("SELECT * FROM buckia_settings")
    try exchange.plantRaw(insertion(into: table, keyFlags: keyFlags, values: keyFlags.map { _ in 50 }))
    let report = try exchange.apply()
    #expect(report.diffs.map(\.state) == [.rejected])
    let reason = try #require(report.diffs.first?.reason)
    #expect(table.isEmpty || reason.contains(table), "\(reason)")
    #expect(try exchange.everythingButOurs() == before)
    #expect(try exchange.rows("SELECT * FROM buckia_settings") == settings)
  }

  @Test(
    "Rows of a raw changeset for SQLite's own tables are left out with a warning",
    arguments: ["sqlite_master", "SQLITE_sequence", "sqlite_stat1", "sqlite_", "sqlite_autoindex_notes_1"])
  func tablesOfSQLite(_ table: String) throws {
    let exchange = try Exchange(schema)
    try exchange.database.initialize()
    let before = try exchange.everythingButOurs()
    try exchange.plantRaw(insertion(into: table, values: [50, 50]))
    let report = try exchange.apply()
    #expect(report.diffs.map(\.state) == [.applied])
    #expect(report.diffs.first?.warnings == [Warning(.rowsOfSQLite, table)])
    #expect(report.diffs.map(\.inserted) == [0])
    #expect(try exchange.everythingButOurs() == before)
  }

  @Test("Nothing in a definition is run as SQL")
  func injection() throws {
    let exchange = try Exchange("CREATE TABLE notes(id INTEGER PRIMARY KEY); INSERT INTO notes VALUES (1)")
    let evil = "x\"); DROP TABLE notes; --"
    var table = TableDefinition(
      name: evil,
      columns: [
        ColumnDefinition(name: "id\" INTEGER, \"y", declaredType: "INTEGER, z TEXT CHECK (abs(1))"),
        ColumnDefinition(
          name: "it's; --", declaredType: "TEXT DEFAULT (load_extension('x'))",
          defaultValue: LiteralDefault(parsing: "'''); DROP TABLE notes; --'")),
      ], primaryKey: [0])
    table.unique = [[1]]
    try exchange.plant(insertion(into: evil, values: [5, 6]), definitions: [table])
    #expect(try exchange.apply().diffs.map(\.state) == [.applied])
    #expect(try exchange.rows("SELECT id FROM notes") == ["1"])
    let columns = try exchange.rows("SELECT name, type FROM pragma_table_info('\(evil)')")
    #expect(columns.count == 2)
    #expect(
      try exchange.rows("SELECT count(*) FROM sqlite_schema WHERE sql LIKE '%CHECK%' AND tbl_name NOT LIKE 'buckia%'")
        == [
          "0"
        ])
    #expect(LiteralDefault(parsing: "1); DROP TABLE notes") == nil)
    #expect(LiteralDefault(parsing: "abs(1)") == nil)
    #expect(LiteralDefault(parsing: "'a' || 'b'") == nil)
  }

  @Test("A held hostile definition is never run as SQL, even when its changes are applied")
  func heldInjection() throws {
    let exchange = try Exchange("CREATE TABLE notes(id INTEGER PRIMARY KEY); INSERT INTO notes VALUES (1)")
    let evil = "x\"'); DROP TABLE notes; --"
    let table = TableDefinition(
      name: evil,
      columns: [
        ColumnDefinition(name: "id", declaredType: "INTEGER"),
        ColumnDefinition(
          name: "'); DELETE FROM notes; --", declaredType: "ANY'); DROP TABLE notes; --", collation: "evil"),
      ], primaryKey: [0])
    let more = TableDefinition(
      name: "notes",
      columns: [ColumnDefinition(name: "id", declaredType: "INTEGER"), ColumnDefinition(name: evil)], primaryKey: [0])
    try exchange.plant(
      insertion(into: evil, values: [5, 6]) + insertion(into: "notes", values: [2, 7]), definitions: [table, more])
    let hold = ApplyOptions(schema: .hold)
    #expect(try exchange.apply(hold).diffs.map(\.heldParts) == [2])
    #expect(try exchange.rows("SELECT id FROM notes") == ["1", "2"])
    let name = SQLText.identifier(evil)
    let column = SQLText.identifier("'); DELETE FROM notes; --")
    try TestDatabases.run(
      "CREATE TABLE \(name)(id INTEGER PRIMARY KEY, \(column)); ALTER TABLE notes ADD COLUMN \(name)", on: exchange.mine
    )
    #expect(try exchange.apply(hold).diffs.map(\.state) == [.applied])
    #expect(try exchange.rows("SELECT * FROM notes") == ["1|NULL", "2|7"])
    #expect(try exchange.rows("SELECT * FROM \(name)") == ["5|6"])
  }

  @Test("New tables may refer to each other and to themselves, in a circle")
  func circularReferences() throws {
    let exchange = try Exchange("CREATE TABLE notes(id INTEGER PRIMARY KEY)")
    let count = TableDefinition.newTableLimit
    let tables = (0..<count).map { number in
      TableDefinition(
        name: "t\(number)", columns: [ColumnDefinition(name: "id"), ColumnDefinition(name: "n")], primaryKey: [0],
        foreignKeys: [
          ForeignKey(columns: ["n"], parent: "t\((number + 1) % count)", onUpdate: .cascade, onDelete: .cascade),
          ForeignKey(columns: ["id"], parent: "t\(number)", onDelete: .setNull),
        ])
    }
    let changes = tables.flatMap { insertion(into: $0.name, values: [1, 1]) }
    try exchange.plant(changes, definitions: tables)
    let report = try exchange.apply()
    #expect(report.diffs.map(\.state) == [.applied])
    #expect(report.diffs.map(\.conflicts) == [0])
    #expect(try exchange.rows("SELECT count(*) FROM pragma_foreign_key_list('t63')") == ["2"])
  }

  @Test("More columns than a table can have are refused in any mode", arguments: SchemaMode.allCases)
  func manyColumns(mode: SchemaMode) throws {
    let exchange = try Exchange("CREATE TABLE notes(id INTEGER PRIMARY KEY)")
    let columns = (0..<100_000).map { ColumnDefinition(name: "c\($0)", declaredType: "INTEGER") }
    for name in ["notes", "new"] {
      let table = TableDefinition(name: name, columns: [ColumnDefinition(name: "id")] + columns, primaryKey: [0])
      let changes = try IncomingChanges(
        key: LedgerKey(sender: "", id: nil, digest: [1], isRaw: false), file: "many", definitions: [table],
        changeset: TemporaryBuffer([UInt8]()))
      let connection = try SQLiteConnection(opening: exchange.mine, as: .readWrite)
      let transaction = try SQLiteTransaction(on: connection)
      let error = #expect(throws: ReplicationError.self) {
        _ = try Receiver.plan(changes, on: connection, settings: ApplySettings(schema: mode, time: 2_000_000_000_000))
      }
      #expect(error?.message.contains("2000 columns") == true || mode == .exact)
      transaction.rollback()
    }
  }

  @Test("A value that the local column would alter is a conflict, and one that it keeps is applied")
  func alteredValues() throws {
    let exchange = try Exchange(
      "CREATE TABLE t(id INTEGER PRIMARY KEY, d DATE); INSERT INTO t VALUES (1, '2020-01-01')")
    func table(_ type: String) -> TableDefinition {
      TableDefinition(
        name: "t",
        columns: [
          ColumnDefinition(name: "id", declaredType: "INTEGER"), ColumnDefinition(name: "d", declaredType: type),
        ], primaryKey: [0])
    }
    func text(_ value: String, id: Int64) -> [UInt8] {
      var writer = ChangesetWriter()
      writer.beginTable(ChangesetTable(name: "t", keyFlags: [1, 0]))
      writer.beginChange(.insert)
      writer.append(integer: id)
      writer.append(text: value)
      return writer.bytes
    }
    try exchange.plant(text("2021-02-03", id: 2), definitions: [table("TEXT")], id: Exchange.id(at: 1_600_000_000))
    try exchange.plant(text("007", id: 3), definitions: [table("TEXT")], id: Exchange.id(at: 1_600_000_001))
    let report = try exchange.apply()
    #expect(report.diffs.map(\.state) == [.applied, .applied])
    #expect(report.diffs.map(\.conflicts) == [0, 1])
    #expect(try exchange.rows("SELECT id FROM t ORDER BY id") == ["1", "2"])
  }

  @Test("A diff file that would create more than 64 tables is refused")
  func manyTables() throws {
    let exchange = try Exchange("CREATE TABLE notes(id INTEGER PRIMARY KEY)")
    let tables = (0..<65).map {
      TableDefinition(name: "t\($0)", columns: [ColumnDefinition(name: "a")], primaryKey: [0])
    }
    try exchange.plant(insertion(into: "t0", keyFlags: [1], values: [1]), definitions: tables)
    let report = try exchange.apply()
    #expect(report.diffs.map(\.state) == [.rejected])
    #expect(report.diffs.first?.reason?.contains("65 tables") == true)
    #expect(try TestDatabases.tables(of: exchange.mine) == ["notes"])
  }

  @Test("A truncated or altered diff file is refused, unless its content reads as it was written")
  func damage() throws {
    let exchange = try Exchange(schema)
    let sent = try exchange.send(
      "INSERT INTO notes VALUES (3, 3); UPDATE notes SET n = 9 WHERE id = 1; CREATE TABLE x(a PRIMARY KEY)")
    let path = try #require(sent.path)
    let name = URL(fileURLWithPath: path).lastPathComponent
    let good = try fileBytes(path)
    let written = try #require(try content(of: good, in: exchange))
    let before = try exchange.everythingButOurs()
    for seed in Seeds.range(200) {
      var random = SeededGenerator(seed: seed)
      var bytes = good
      if seed.isMultiple(of: 2) {
        bytes.removeLast(Int.random(in: 1...good.count, using: &random))
      } else {
        bytes[Int.random(in: 0..<good.count, using: &random)] ^= UInt8.random(in: 1...255, using: &random)
      }
      try exchange.folder.write(bytes, to: "inbound/\(name)")
      // Some bits of the compressed form have no effect: the content then reads as it was written.
      if try content(of: bytes, in: exchange) == written { continue }
      let report = try exchange.apply()
      #expect(report.diffs.map(\.state) == [.rejected], "\(Seeds.replay(seed))")
      #expect(report.diffs.first?.reason?.contains(name) == true, "\(Seeds.replay(seed))")
    }
    #expect(try exchange.everythingButOurs() == before)
    #expect(try exchange.database.log().count <= 200)
    try exchange.folder.write(good, to: "inbound/\(name)")
    #expect(try exchange.apply().diffs.map(\.state) == [.applied])
  }

  @Test("Whichever bit of a diff file is flipped, the file is refused or reads as it was written")
  func everyBit() throws {
    let exchange = try Exchange(schema)
    let sent = try exchange.send("INSERT INTO notes VALUES (3, 3); UPDATE notes SET n = 9 WHERE id = 1")
    let good = try fileBytes(try #require(sent.path))
    let written = try #require(try content(of: good, in: exchange))
    var refused = 0
    for bit in 0..<8 * good.count {
      var bytes = good
      bytes[bit / 8] ^= 1 << (bit % 8)
      guard let read = try content(of: bytes, in: exchange) else {
        refused += 1
        continue
      }
      #expect(read == written, "bit \(bit % 8) of byte \(bit / 8) of \(HexText.lowercase(good))")
    }
    #expect(refused > 4 * good.count, "\(refused) of \(8 * good.count) flipped bits were noticed")
  }

  /// The manifest and the changes of a diff file, or nil if the file is refused.
  private func content(of bytes: [UInt8], in exchange: Exchange) throws -> [[UInt8]]? {
    let path = try exchange.folder.write(bytes, to: "compared.bdiff")
    do {
      let diff = try DiffFile.verified(at: path, name: .ifNamedByID)
      return [diff.manifestBytes, try diff.changeset.allBytes()]
    } catch is DiffFileError {
      return nil
    }
  }

  @Test("At most 1,000 refused files are recorded")
  func boundedRefusals() throws {
    let exchange = try Exchange(schema)
    try exchange.database.initialize()
    let connection = try SQLiteConnection(opening: exchange.mine, as: .readWrite)
    let transaction = try SQLiteTransaction(on: connection)
    for number in 0..<1_100 {
      try RefusedFiles.record(
        digest: [UInt8(number & 255), UInt8(number >> 8)], id: nil, sender: "", state: .rejected,
        reason: String(repeating: "r", count: 5_000), file: "f\(number)", at: Int64(number), on: connection)
    }
    try transaction.commit()
    let log = try exchange.database.log()
    #expect(log.count == 1_000)
    #expect(log.first?.file == "f100")
    #expect(log.allSatisfy { ($0.reason?.count ?? 0) <= 1_000 })
  }

  @Test("Control characters in table names are escaped in reasons")
  func namesInReasons() throws {
    let exchange = try Exchange(schema)
    try exchange.plantRaw(insertion(into: "a\u{1b}[2J\u{202e}b\nc"))
    let reason = try #require(try exchange.apply().diffs.first?.reason)
    #expect(reason.contains(#"a\u{1B}[2J\u{202E}b\nc"#), "\(reason)")
    #expect(try exchange.database.log().first?.reason == reason)
  }

  @Test("Updates of more column combinations than there are cached statements are all applied")
  func manyShapes() throws {
    let columns = (0..<10).map { "c\($0)" }
    let exchange = try Exchange(
      """
      CREATE TABLE t(id INTEGER PRIMARY KEY, \(columns.joined(separator: ", ")));
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1023)
      INSERT INTO t(id, \(columns.joined(separator: ", "))) SELECT i\(columns.map { _ in ", 0" }.joined()) FROM n
      """)
    let edits = columns.indices.map { "UPDATE t SET c\($0) = 1 WHERE id & \(1 << $0);" }
    try exchange.send(edits.joined())
    #expect(try exchange.apply().diffs.map(\.updated) == [1_023])
    let read = columns.indices.map { "(c\($0) << \($0))" }.joined(separator: " + ")
    #expect(try exchange.rows("SELECT count(*) FROM t WHERE \(read) = id") == ["1023"])
  }

  @Test("A damaged conflict record is shown as far as it can be read")
  func damagedRecord() throws {
    let exchange = try Exchange(schema)
    try exchange.send("UPDATE notes SET n = 5 WHERE id = 1")
    try TestDatabases.run("UPDATE notes SET n = 6 WHERE id = 1", on: exchange.mine)
    #expect(try exchange.apply().diffs.map(\.conflicts) == [1])
    // The local row has no values, and the incoming row ends before the key.
    try TestDatabases.run("UPDATE buckia_conflict SET local = x'0000', incoming = x'', base = x'00'", on: exchange.mine)
    let record = try #require(try exchange.database.conflicts().first)
    #expect(record.key.map(\.column) == ["id"])
    #expect(record.key.map(\.value) == [nil])
  }
}
