import Buckia
import BuckiaDiff
import SQLiteConnections
import Testing
import TestSupport

/// The author has given columns other types, and the receiver has not: only what would be altered is left out.
@Suite struct ChangedTypeTests {
  /// The receiver's rows of `t` as one text, with the class of each value.
  private static func content(_ exchange: Exchange, _ columns: String...) throws -> String {
    let row = columns.map { "quote(\($0))" }.joined(separator: " || ' ' || ")
    let all = "SELECT group_concat(r, '; ') FROM (SELECT \(row) AS r FROM t ORDER BY 1)"
    return try SQLiteConnection(opening: exchange.mine, as: .readOnly).text(all) ?? ""
  }

  @Test("Only changes with a value that the column would alter are conflicts; the rest of the file is applied")
  func columns() throws {
    let exchange = try Exchange(
      """
      CREATE TABLE t(id INTEGER PRIMARY KEY, size TEXT, name TEXT);
      INSERT INTO t VALUES (1, '12', 'a'), (2, 'large', 'b'), (3, NULL, 'c'), (4, '7', 'd')
      """)
    try exchange.send(
      """
      CREATE TABLE u(id INTEGER PRIMARY KEY, size INTEGER_OR_TEXT, name TEXT); INSERT INTO u SELECT * FROM t; DROP TABLE t;
      ALTER TABLE u RENAME TO t; UPDATE t SET name = 'B' WHERE id = 2; DELETE FROM t WHERE id = 4;
      INSERT INTO t VALUES (5, 'small', 'e'), (6, 8, 'f')
      """)
    let report = try exchange.apply()
    let diff = try #require(report.diffs.first)
    #expect(diff.state == .applied)
    #expect(diff.conflicts == 2)
    #expect(diff.plan.contains { $0.action == .convert && $0.column == "size" && $0.detail.contains("is a conflict") })
    #expect(
      try Self.content(exchange, "id", "size", "name") == "1 '12' 'a'; 2 'large' 'B'; 3 NULL 'c'; 5 'small' 'e'")
    let conflicts = try exchange.database.conflicts()
    #expect(conflicts.map(\.kind) == [.constraint, .constraint])
    #expect(conflicts.map(\.outcome) == [.omitted, .omitted])
    for conflict in conflicts {
      let reason = try #require(conflict.reason)
      #expect(reason.contains("t.size") && reason.contains("TEXT"), "\(reason)")
      #expect(conflict.incoming != nil)
    }
  }

  @Test("The policy abort names the column")
  func abort() throws {
    let exchange = try Exchange("CREATE TABLE t(id INTEGER PRIMARY KEY, size TEXT); INSERT INTO t VALUES (1, '12')")
    try exchange.send(
      "ALTER TABLE t RENAME TO o; CREATE TABLE t(id INTEGER PRIMARY KEY, size INTEGER); INSERT INTO t SELECT * FROM o; DROP TABLE o"
    )
    let report = try exchange.apply(ApplyOptions(conflicts: .abort))
    #expect(report.diffs.map(\.state) == [.rejected])
    #expect(report.diffs.first?.reason?.contains("t.size") == true, "\(report.diffs.first?.reason ?? "")")
  }

  @Test(
    "A row whose key its author has converted stays, whatever the policy",
    arguments: [ConflictPolicies.keepLocal, .takeIncoming])
  func keys(policies: ConflictPolicies) throws {
    let exchange = try Exchange(
      """
      CREATE TABLE t(id TEXT PRIMARY KEY, v);
      INSERT INTO t VALUES ('1', 'kept'), ('2', 'deleted'), ('03', 'kept'), ('x', 'deleted'), ('y', 'old')
      """)
    try exchange.send(
      """
      ALTER TABLE t RENAME TO o; CREATE TABLE t(id INTEGER_OR_TEXT PRIMARY KEY, v); INSERT INTO t SELECT * FROM o; DROP TABLE o;
      DELETE FROM t WHERE v = 'deleted'; UPDATE t SET v = 'new' WHERE v = 'old'; INSERT INTO t VALUES (4, 'new'), ('z', 'new')
      """)
    let report = try exchange.apply(ApplyOptions(conflicts: policies))
    #expect(report.diffs.map(\.state) == [.applied])
    #expect(try Self.content(exchange, "id", "v") == "'03' 'kept'; '1' 'kept'; 'y' 'new'; 'z' 'new'")
    // Two rows twice, as a DELETE and an INSERT, and the new one.
    #expect(report.diffs.first?.conflicts == 5)
  }

  @Test("The same with numbers that have become text, and with keys of several columns")
  func compositeKeys() throws {
    let exchange = try Exchange(
      """
      CREATE TABLE t(a INTEGER, b, PRIMARY KEY (a, b)) WITHOUT ROWID;
      INSERT INTO t VALUES (1, 'one'), (2, 'two'), (3, 'three')
      """)
    try exchange.send(
      """
      ALTER TABLE t RENAME TO o; CREATE TABLE t(a TEXT, b, PRIMARY KEY (a, b)) WITHOUT ROWID;
      INSERT INTO t SELECT * FROM o; DROP TABLE o; DELETE FROM t WHERE b = 'two'; INSERT INTO t VALUES ('four', 'four')
      """)
    let report = try exchange.apply()
    #expect(report.diffs.map(\.state) == [.applied])
    #expect(try Self.content(exchange, "a", "b") == "'four' 'four'; 1 'one'; 3 'three'")
    #expect(report.diffs.first?.conflicts == 4)
  }

  @Test("Rows that go by their content stay, too, when only the class of a value has changed")
  func contents() throws {
    let exchange = try Exchange("CREATE TABLE t(a TEXT, b); INSERT INTO t VALUES ('1', 'x'), ('1', 'x'), ('q', 'y')")
    let theirs = try exchange.folder.copy("base.sqlite", to: "theirs.sqlite")
    try TestDatabases.run(
      """
      ALTER TABLE t RENAME TO o; CREATE TABLE t(a INTEGER, b); INSERT INTO t SELECT * FROM o; DROP TABLE o;
      DELETE FROM t WHERE a = 'q'; INSERT INTO t VALUES ('r', 'z')
      """, on: theirs)
    var options = DiffOptions()
    options.keyless = .content
    _ = try DatabaseManager(theirs, home: BuckiaHome(path: exchange.folder.file("home"))).createDatabaseDiff(
      since: exchange.base, output: .folder(exchange.inbound), options: options)
    let report = try exchange.apply()
    #expect(report.diffs.map(\.state) == [.applied])
    #expect(try Self.content(exchange, "a", "b") == "'1' 'x'; '1' 'x'; 'r' 'z'")
    #expect(report.diffs.first?.conflicts == 4)
  }

  @Test("A whole number too large for a REAL, and text in a NUMERIC column, are told apart from what is kept")
  func otherTypes() throws {
    let exchange = try Exchange("CREATE TABLE t(id INTEGER PRIMARY KEY, r REAL, n NUMERIC)")
    try exchange.send(
      """
      DROP TABLE t; CREATE TABLE t(id INTEGER PRIMARY KEY, r INTEGER, n TEXT);
      INSERT INTO t VALUES (1, 9007199254740992, 'x'), (2, 9007199254740993, 'x'), (3, 3, ' 3 '), (4, 4, '4x'), (5, 5, x'35')
      """)
    let report = try exchange.apply()
    #expect(report.diffs.map(\.state) == [.applied])
    #expect(report.diffs.first?.conflicts == 2)
    #expect(try exchange.rows("SELECT id FROM t ORDER BY id") == ["1", "4", "5"])
  }

  @Test("Many small files of which one has such a value come out as if they came one by one")
  func batches() throws {
    let exchange = try Exchange("CREATE TABLE t(id INTEGER PRIMARY KEY, size TEXT)")
    for (id, value) in [(1, "'a'"), (2, "2"), (3, "'c'")] {
      try exchange.send(
        "DROP TABLE t; CREATE TABLE t(id INTEGER PRIMARY KEY, size INTEGER); INSERT INTO t VALUES (\(id), \(value))")
    }
    let report = try exchange.apply()
    #expect(report.diffs.map(\.state) == [.applied, .applied, .applied])
    #expect(report.diffs.map(\.conflicts) == [0, 1, 0])
    #expect(try exchange.rows("SELECT id FROM t ORDER BY id") == ["1", "3"])
  }
}
