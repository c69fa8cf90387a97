import Buckia
import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import TestSupport
import Testing

/// Parked rows are tried again only after changes that concern them.
@Suite("Parked rows")
struct ParkedRowTests {
  private static let schema = """
    CREATE TABLE album(id TEXT PRIMARY KEY, t TEXT);
    CREATE TABLE photo(id INTEGER PRIMARY KEY, album TEXT REFERENCES album(id), t TEXT UNIQUE);
    CREATE TABLE note(photo INTEGER REFERENCES photo(id), t TEXT);
    """

  /// Sends edits that are made after earlier ones, which are not sent.
  private func send(_ edits: String, after earlier: String = "", _ exchange: Exchange) throws {
    let name = "\(UInt64.random(in: 0...UInt64.max)).sqlite"
    let before = try exchange.folder.copy("base.sqlite", to: name)
    try TestDatabases.run(earlier, on: before)
    let after = try exchange.folder.copy(name, to: "after-\(name)")
    try TestDatabases.run(edits, on: after)
    _ = try DatabaseManager(after, home: exchange.home).createDatabaseDiff(
      since: before, output: .folder(exchange.inbound), options: DiffOptions())
  }

  /// Parks rows that refer to rows which the receiver has deleted.
  private func park(_ rows: String, in schema: String, without deletions: String) throws -> Exchange {
    let exchange = try Exchange(schema)
    try TestDatabases.run(deletions, on: exchange.mine)
    try send(rows, exchange)
    try exchange.apply()
    return exchange
  }

  @Test(arguments: [ConflictPolicy.keepLocal, .takeIncoming, .latest])
  func `parked rows that no change concerns are not tried again`(_ policy: ConflictPolicy) throws {
    let first = """
      INSERT INTO photo SELECT value, 'none' || value, value FROM \(Self.numbers);
      INSERT INTO note SELECT value, value FROM \(Self.numbers);
      """
    let albums = "INSERT INTO album SELECT 'none' || value, 1 FROM \(Self.numbers);"
    let exchange = try park(first, in: Self.schema + albums, without: "DELETE FROM album")
    func numbers() throws -> [String] { try exchange.texts("SELECT parked, table_name FROM buckia_parked") }
    #expect(try exchange.texts("SELECT (SELECT count(*) FROM photo), (SELECT count(*) FROM note)") == ["0|0"])
    var parked = try numbers()
    #expect(parked.count == 1_000)
    let options = ApplyOptions(conflicts: ConflictPolicies(policy))
    for edits in [
      "INSERT INTO album VALUES ('another', 1)", "UPDATE album SET t = 2 WHERE id = 'none7'",
      "DELETE FROM album WHERE id = 'none8'", "INSERT INTO photo VALUES (1000, NULL, 'mine')",
      "INSERT INTO note VALUES (NULL, 'x')",
    ] {
      try send(edits, exchange)
      try exchange.apply(options)
      // A row that is tried in vain is stored again, with another number.
      let after = try numbers()
      #expect(Set(after).subtracting(parked).count <= 2)
      parked = after
    }
    try TestDatabases.run("INSERT INTO album VALUES ('none3', 'here')", on: exchange.mine)
    try send("INSERT INTO album VALUES ('none4', 4)", after: "DELETE FROM album WHERE id = 'none4'", exchange)
    try exchange.apply(options)
    #expect(try exchange.texts("SELECT id FROM photo ORDER BY id") == ["3", "4", "1000"])
    #expect(try exchange.texts("SELECT photo FROM note WHERE photo IS NOT NULL ORDER BY 1") == ["3", "4"])
    #expect(try exchange.texts("SELECT count(*) FROM buckia_parked") == ["996"])
  }

  private static let numbers = """
    (WITH RECURSIVE n(value) AS (VALUES (1) UNION ALL SELECT value + 1 FROM n WHERE value < 500) SELECT * FROM n)
    """

  /// A schema, a row that refers to another one, and a change that brings the other one.
  struct Reference: Sendable, CustomTestStringConvertible {
    let schema: String
    let child: String
    let parent: String
    var testDescription: String { "\(parent) / \(child)" }

    init(_ schema: String, _ child: String, _ parent: String) {
      self.schema = schema
      self.child = child
      self.parent = parent
    }
  }

  private static let references = [
    Reference(
      "CREATE TABLE p(k TEXT COLLATE NOCASE PRIMARY KEY); CREATE TABLE c(id INTEGER PRIMARY KEY, p REFERENCES p);",
      "INSERT INTO c VALUES (1, 'ABC')", "INSERT INTO p VALUES ('abc')"),
    Reference(
      "CREATE TABLE p(k TEXT COLLATE RTRIM PRIMARY KEY); CREATE TABLE c(id INTEGER PRIMARY KEY, p REFERENCES p);",
      "INSERT INTO c VALUES (1, 'abc  ')", "INSERT INTO p VALUES ('abc')"),
    Reference(
      "CREATE TABLE p(k TEXT PRIMARY KEY); CREATE TABLE c(id INTEGER PRIMARY KEY, p INTEGER REFERENCES p);",
      "INSERT INTO c VALUES (1, 5)", "INSERT INTO p VALUES ('5')"),
    Reference(
      "CREATE TABLE p(k INTEGER PRIMARY KEY); CREATE TABLE c(id INTEGER PRIMARY KEY, p TEXT REFERENCES p);",
      "INSERT INTO c VALUES (1, '5')", "INSERT INTO p VALUES (5)"),
    Reference(
      "CREATE TABLE p(k REAL PRIMARY KEY); CREATE TABLE c(id INTEGER PRIMARY KEY, p REFERENCES p);",
      "INSERT INTO c VALUES (1, 5)", "INSERT INTO p VALUES (5.0)"),
    Reference(
      "CREATE TABLE p(k BLOB PRIMARY KEY); CREATE TABLE c(id INTEGER PRIMARY KEY, p REFERENCES p);",
      "INSERT INTO c VALUES (1, x'00ff')", "INSERT INTO p VALUES (x'00ff')"),
    Reference(
      """
      CREATE TABLE p(id INTEGER PRIMARY KEY, a, b, UNIQUE (a, b));
      CREATE TABLE c(id INTEGER PRIMARY KEY, b, a, FOREIGN KEY (b, a) REFERENCES p(b, a));
      """,
      "INSERT INTO c VALUES (1, 'b', 'a')", "INSERT INTO p VALUES (7, 'a', 'b')"),
    Reference(
      """
      CREATE TABLE p(id INTEGER PRIMARY KEY, a, b, UNIQUE (a, b));
      CREATE TABLE c(id INTEGER PRIMARY KEY, b, a, FOREIGN KEY (b, a) REFERENCES p(b, a));
      INSERT INTO p VALUES (7, 'a', 'other');
      """,
      "INSERT INTO c VALUES (1, 'b', 'a')", "UPDATE p SET b = 'b'"),
    Reference(
      "CREATE TABLE p(a, code TEXT UNIQUE); CREATE TABLE c(id INTEGER PRIMARY KEY, p TEXT REFERENCES p(code));",
      "INSERT INTO c VALUES (1, 'x')", "INSERT INTO p VALUES (7, 'x')"),
    Reference(
      """
      CREATE TABLE p(id INTEGER PRIMARY KEY, o REFERENCES c DEFERRABLE INITIALLY DEFERRED);
      CREATE TABLE c(id INTEGER PRIMARY KEY, p REFERENCES p DEFERRABLE INITIALLY DEFERRED);
      """,
      "INSERT INTO c VALUES (1, 5)", "INSERT INTO p VALUES (5, 1)"),
    Reference(
      "CREATE TABLE p(id INTEGER PRIMARY KEY); CREATE TABLE c(p REFERENCES p, o REFERENCES p);",
      "INSERT INTO c VALUES (1, 2)", "INSERT INTO p VALUES (2), (1)"),
  ]

  @Test(arguments: references, [false, true])
  func `a parked row returns when the row that it refers to arrives`(_ reference: Reference, isLocal: Bool) throws {
    let exchange = try Exchange(reference.schema + "CREATE TABLE other(id INTEGER PRIMARY KEY);")
    // The author does not enforce foreign keys.
    try send(reference.child, exchange)
    try exchange.apply()
    #expect(try exchange.texts("SELECT count(*) FROM c") == ["0"])
    #expect(try exchange.texts("SELECT count(*) FROM buckia_parked") == ["1"])
    if isLocal {
      try TestDatabases.run("PRAGMA foreign_keys = OFF; " + reference.parent, on: exchange.mine)
      try send("INSERT INTO other VALUES (1)", exchange)
    } else {
      try send(reference.parent, exchange)
    }
    try exchange.apply()
    #expect(try exchange.texts("SELECT count(*) FROM c") == ["1"])
    #expect(
      try exchange.texts("SELECT 1 FROM buckia_parked, buckia_parked_value, buckia_parked_reference") == [])
    #expect(try exchange.texts("PRAGMA foreign_key_check") == [])
  }

  @Test func `parked rows that refer to each other and to a third row return together`() throws {
    let exchange = try Exchange(
      """
      CREATE TABLE a(id INTEGER PRIMARY KEY, b REFERENCES b, x REFERENCES x);
      CREATE TABLE b(id INTEGER PRIMARY KEY, a REFERENCES a, x REFERENCES x);
      CREATE TABLE x(id INTEGER PRIMARY KEY);
      """)
    for edit in ["INSERT INTO a VALUES (1, 1, 1)", "INSERT INTO b VALUES (1, 1, 2)", "INSERT INTO x VALUES (1)"] {
      try send(edit, exchange)
      try exchange.apply()
      #expect(try exchange.texts("SELECT (SELECT count(*) FROM a), (SELECT count(*) FROM b)") == ["0|0"])
    }
    try TestDatabases.run("INSERT INTO x VALUES (2)", on: exchange.mine)
    try send("INSERT INTO x VALUES (3)", exchange)
    try exchange.apply()
    #expect(try exchange.texts("SELECT (SELECT count(*) FROM a), (SELECT count(*) FROM b)") == ["1|1"])
    #expect(try exchange.texts("SELECT count(*) FROM buckia_parked") == ["0"])
  }

  @Test func `a parked row returns when its parent table is renamed, or its foreign key removed`() throws {
    for change in [
      "ALTER TABLE album RENAME TO folder; INSERT INTO folder VALUES ('a', 1)",
      "ALTER TABLE album RENAME COLUMN id TO name; INSERT INTO album VALUES ('a', 1)",
      "DROP TABLE photo; CREATE TABLE photo(id INTEGER PRIMARY KEY, album TEXT, t TEXT)",
    ] {
      let exchange = try Exchange(Self.schema + "CREATE TABLE other(id INTEGER PRIMARY KEY);")
      try send("INSERT INTO photo VALUES (1, 'a', 'x')", exchange)
      try exchange.apply()
      try TestDatabases.run(change, on: exchange.mine)
      try send("INSERT INTO other VALUES (1)", exchange)
      try exchange.apply()
      #expect(try exchange.texts("SELECT * FROM photo") == ["1|a|x"])
      #expect(try exchange.texts("SELECT count(*) FROM buckia_parked") == ["0"])
    }
  }

  @Test func `a parked row without a key is deleted by its content`() throws {
    let first = "INSERT INTO note VALUES (7, 'one'), (7, 'two'), (8, 'three')"
    let exchange = try Exchange(Self.schema)
    try send(first, exchange)
    try exchange.apply()
    #expect(try exchange.texts("SELECT count(*) FROM buckia_parked") == ["3"])
    // In shares, such rows have no rowid.
    let changes = ChangesetWriter(
      "note", key: [1, 0, 0], [(.delete, old: [.null, .integer(7), .text("one")], new: [])])
    try exchange.plantRaw(changes.bytes)
    try exchange.apply()
    #expect(try exchange.texts("SELECT count(*) FROM buckia_parked") == ["2"])
    try TestDatabases.run("INSERT INTO photo VALUES (7, NULL, 1)", on: exchange.mine)
    try send("INSERT INTO album VALUES (1, 1)", exchange)
    try exchange.apply()
    #expect(try exchange.texts("SELECT t FROM note") == ["two"])
  }

  @Test func `a parked row that a constraint refuses waits until it violates none`() throws {
    let exchange = try Exchange(Self.schema)
    try send("INSERT INTO photo VALUES (1, 'a', 'same')", exchange)
    try exchange.apply()
    try TestDatabases.run(
      "INSERT INTO photo VALUES (2, NULL, 'same'); INSERT INTO album VALUES ('a', 1)", on: exchange.mine)
    for count in ["1", "0"] {
      try send("INSERT INTO album VALUES (\(count), 1)", exchange)
      try exchange.apply()
      #expect(try exchange.texts("SELECT count(*) FROM buckia_parked") == [count])
      try TestDatabases.run("DELETE FROM photo WHERE id = 2", on: exchange.mine)
    }
    #expect(try exchange.texts("SELECT id FROM photo") == ["1"])
  }

  // MARK: Conflict records

  @Test(arguments: [ConflictPolicy.keepLocal, .takeIncoming], [false, true])
  func `a row that refers to a refused one has one conflict record, which says if it is parked`(
    _ policy: ConflictPolicy, hasGrandchild: Bool
  ) throws {
    let exchange = try Exchange(
      """
      CREATE TABLE folder(id INTEGER PRIMARY KEY, name TEXT UNIQUE);
      CREATE TABLE note(id INTEGER PRIMARY KEY, folder INTEGER REFERENCES folder(id), t);
      CREATE TABLE mark(id INTEGER PRIMARY KEY, note INTEGER REFERENCES note(id));
      """)
    try TestDatabases.run("INSERT INTO folder VALUES (1, 'work')", on: exchange.mine)
    try exchange.send(
      "INSERT INTO folder VALUES (5, 'work'); INSERT INTO note VALUES (1, 5, 't');"
        + (hasGrandchild ? "INSERT INTO mark VALUES (1, 1)" : ""))
    try exchange.apply(ApplyOptions(conflicts: ConflictPolicies(policy)))
    #expect(try exchange.texts("SELECT (SELECT count(*) FROM note), (SELECT count(*) FROM mark)") == ["0|0"])
    #expect(try exchange.texts("PRAGMA foreign_key_check") == [])
    let isParked = try exchange.texts("SELECT count(*) FROM buckia_parked") != ["0"]
    #expect(isParked == (policy == .takeIncoming))
    for table in hasGrandchild ? ["note", "mark"] : ["note"] {
      let conflicts = try exchange.database.conflicts().filter { $0.table == table }
      #expect(conflicts.map(\.outcome) == [isParked ? .omitted : .keptLocal])
      if isParked { #expect(conflicts.first?.reason?.hasSuffix("; it waits for that") == true) }
    }
  }

  @Test func `a reference that is changed to a refused row has one conflict record`() throws {
    let exchange = try Exchange(
      """
      CREATE TABLE folder(id INTEGER PRIMARY KEY, name TEXT UNIQUE);
      CREATE TABLE note(id INTEGER PRIMARY KEY, folder INTEGER REFERENCES folder(id), t);
      INSERT INTO note VALUES (1, NULL, 'before');
      """)
    try TestDatabases.run("INSERT INTO folder VALUES (1, 'work')", on: exchange.mine)
    try exchange.send("INSERT INTO folder VALUES (5, 'work'); UPDATE note SET folder = 5, t = 'after'")
    try exchange.apply(ApplyOptions(conflicts: ConflictPolicies(.takeIncoming)))
    #expect(try exchange.texts("SELECT * FROM note") == ["1|NULL|after"])
    #expect(try exchange.database.conflicts().filter { $0.table == "note" }.map(\.outcome) == [.merged])
  }

  @Test func `under take-incoming, a row that refers to a local row instead of its parent counts as taken`() throws {
    let exchange = try Exchange(
      """
      CREATE TABLE folder(id INTEGER PRIMARY KEY, name TEXT UNIQUE);
      CREATE TABLE note(id INTEGER PRIMARY KEY, folder INTEGER REFERENCES folder(id));
      """)
    try TestDatabases.run("INSERT INTO folder VALUES (5, 'mine')", on: exchange.mine)
    try exchange.send("INSERT INTO folder VALUES (5, 'theirs'); INSERT INTO note VALUES (1, 5)")
    try exchange.apply(
      ApplyOptions(conflicts: [.table("folder"): .keepLocal, .otherwise: .takeIncoming]))
    #expect(try exchange.texts("SELECT * FROM note") == ["1|5"])
    #expect(try exchange.database.conflicts().filter { $0.table == "note" }.map(\.outcome) == [.tookIncoming])
  }
}
