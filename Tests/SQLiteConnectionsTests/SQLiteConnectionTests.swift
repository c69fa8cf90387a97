import SQLiteConnections
import Testing
import TestSupport

@Suite final class SQLiteConnectionTests {
  private let connection: SQLiteConnection

  init() throws { connection = try SQLiteConnection(opening: ":memory:", as: .create) }

  @Test("Unknown collating sequences compare bytes, and SQLite's own are unchanged, in any encoding")
  func collations() throws {
    for encoding in ["UTF-8", "UTF-16le", "UTF-16be"] {
      let connection = try SQLiteConnection(opening: ":memory:", as: .readWrite)
      try connection.execute("PRAGMA encoding = '\(encoding)'; CREATE TABLE t(a); INSERT INTO t VALUES ('A ')")
      try connection.readThroughUnknownCollations()
      for (condition, expected) in [
        ("a = 'a ' COLLATE NOCASE", 1), ("a = 'A' COLLATE RTRIM", 1), ("a = 'A' COLLATE BINARY", 0),
        ("a = 'A ' COLLATE nowhere", 1), ("a = 'a ' COLLATE nowhere", 0),
      ] {
        #expect(
          try connection.integer("SELECT count(*) FROM t WHERE \(condition)") == Int64(expected),
          "\(encoding): \(condition)")
      }
    }
  }

  @Test("Statements before the one that fails have taken effect")
  func execute() throws {
    #expect(throws: SQLiteError.self) { try connection.execute("CREATE TABLE t(a); INSERT INTO u VALUES (1)") }
    #expect(try connection.integer("SELECT count(*) FROM t") == 0)
    try connection.execute("")
  }

  @Test("Changes are counted without those of triggers, and triggers can be disabled")
  func changes() throws {
    try connection.execute(
      """
      CREATE TABLE t(a); CREATE TABLE log(a);
      CREATE TRIGGER r AFTER INSERT ON t BEGIN INSERT INTO log VALUES (new.a); END
      """)
    try connection.execute("INSERT INTO t VALUES (1), (2)")
    #expect(connection.changes == 2)
    #expect(try connection.integer("SELECT count(*) FROM log") == 2)
    #expect(try connection.triggersEnabled == true)
    try connection.enableTriggers(false)
    #expect(try connection.triggersEnabled == false)
    try connection.execute("INSERT INTO t VALUES (3)")
    #expect(try connection.integer("SELECT count(*) FROM log") == 2)
    try connection.enableTriggers(true)
    #expect(try connection.triggersEnabled == true)
  }

  @Test("Violated deferred foreign keys are detected")
  func foreignKeys() throws {
    try connection.execute(
      "PRAGMA foreign_keys = ON; CREATE TABLE p(id INTEGER PRIMARY KEY); CREATE TABLE c(p REFERENCES p)")
    try connection.execute("BEGIN; PRAGMA defer_foreign_keys = ON")
    #expect(connection.hasDeferredForeignKeyViolations == false)
    try connection.execute("INSERT INTO c VALUES (1)")
    #expect(connection.hasDeferredForeignKeyViolations == true)
    try connection.execute("INSERT INTO p VALUES (1)")
    #expect(connection.hasDeferredForeignKeyViolations == false)
    try connection.execute("COMMIT")
  }

  @Test("The collation of a column and AUTOINCREMENT are reported")
  func metadata() throws {
    try connection.execute("CREATE TABLE t(id INTEGER PRIMARY KEY AUTOINCREMENT, a COLLATE NOCASE, b)")
    #expect(try connection.columnMetadata(table: "t", column: "id").isAutoIncrement == true)
    #expect(try connection.columnMetadata(table: "t", column: "A").collation == "NOCASE")
    #expect(try connection.columnMetadata(table: "T", column: "b").collation == "BINARY")
    #expect(throws: SQLiteError.self) { _ = try connection.columnMetadata(table: "t", column: "none") }
    #expect(throws: SQLiteError.self) { _ = try connection.columnMetadata(table: "none", column: "a") }
  }

  @Test(
    "The byte collation orders text by its UTF-8, in a database of any encoding",
    arguments: ["UTF-8", "UTF-16le", "UTF-16be"])
  func byteCollation(_ encoding: String) throws {
    try connection.execute("PRAGMA encoding = '\(encoding)'; CREATE TABLE t(a TEXT)")
    try connection.registerByteCollation()
    let words = ["", "a", "aa", "A", "z", "é", "e\u{301}", "\u{ff00}", "\u{1d4b3}", "\u{7ff}", "\u{800}", "\u{d7ff}"]
    let insert = try connection.prepare("INSERT INTO t VALUES (?1)")
    for word in words {
      try insert.bind(word, at: 0)
      try insert.run()
    }
    var found: [[UInt8]] = []
    try connection.forEachRow(of: "SELECT a FROM t ORDER BY a COLLATE \(SQLiteConnection.byteCollation)") {
      found.append(Array($0.textBytes(at: 0)))
    }
    #expect(found == words.map { Array($0.utf8) }.sorted { $0.lexicographicallyPrecedes($1) })
  }

  @Test("Bytes are ordered as C and SQLite order them")
  func byteOrder() {
    let values: [[UInt8]] = [[], [0], [0, 0], [1], [1, 0], [127], [128], [255], [255, 0]]
    for (i, first) in values.enumerated() {
      for (j, second) in values.enumerated() {
        let order = first.withUnsafeBytes { a in second.withUnsafeBytes { b in a.byteOrder(against: b) } }
        #expect(order.signum() == (i - j).signum())
      }
    }
  }

  @Test("The difference of two attached databases is recorded; mismatching tables have their own error")
  func session() throws {
    try connection.execute(
      """
      ATTACH ':memory:' AS old; CREATE TABLE old.t(id INTEGER PRIMARY KEY, a); CREATE TABLE main.t(id INTEGER PRIMARY KEY, a);
      INSERT INTO main.t VALUES (1, 2); CREATE TABLE old.u(id INTEGER PRIMARY KEY); CREATE TABLE main.u(id, x, PRIMARY KEY (x))
      """)
    let session = try SQLiteSession(on: connection)
    try session.attach("t")
    try session.attach("u")
    try session.recordDifference(from: "old", table: "t")
    #expect(try session.changeset().isEmpty == false)
    #expect(try session.patchset().first == UInt8(ascii: "P"))
    let error = #expect(throws: SQLiteError.self) { try session.recordDifference(from: "old", table: "u") }
    #expect(error?.isSchemaMismatch == true)
    #expect(error?.message.isEmpty == false)
  }

  @Test("SQLite's own apply asks about a conflict, and aborting leaves everything unchanged")
  func stockApply() throws {
    try connection.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, a)")
    let session = try SQLiteSession(on: connection)
    try session.attach()
    try connection.execute("INSERT INTO t VALUES (1, 'x')")
    let changes = try session.changeset()
    let log = Log()
    let error = #expect(throws: SQLiteError.self) {
      try StockChangesets.apply(changes, to: connection) { question in
        log.lines.append("\(question.kind) \(question.table) \(question.operation)")
        return .abort
      }
    }
    #expect(log.lines == ["conflict t 18"])
    #expect(error?.isAborted == true)
    #expect(error?.message.contains("not an error") == false)
    let inverse = try StockChangesets.invert(changes)
    #expect(try StockChangesets.concat(changes, inverse).isEmpty)
    try StockChangesets.apply(inverse, to: connection) { _, _ in .abort }
    #expect(try connection.integer("SELECT count(*) FROM t") == 0)
    #expect(throws: SQLiteError.self) { _ = try StockChangesets.invert([1, 2, 3]) }
  }

  private final class Log { var lines: [String] = [] }
}
