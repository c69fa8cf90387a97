import Buckia
import BuckiaDiff
import SQLiteConnections
import Testing
import TestSupport

/// The author has changed column types, and the receiver has not. Only changes whose values would be altered are
/// left out.
@Suite struct ChangedTypeTests {
  /// The receiver's rows of `t` as one text that shows the storage class of each value.
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

  @Test("The policy abort refuses the file and names the column")
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
    "A row whose key the author has converted to another type stays, whatever the policy",
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
    // Each of the two kept rows counts twice, as a DELETE and an INSERT, and the new row once.
    #expect(report.diffs.first?.conflicts == 5)
  }

  @Test("A row whose key has several columns stays if the author has converted a number in it to text")
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

  @Test("Rows that are identified by their content stay if only the storage class of a value has changed")
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

  @Test("An integer too large for a REAL column, and numeric text for a NUMERIC one, are conflicts")
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

  @Test("A value that the column would alter, in one of several files, is a conflict of that file only")
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
