import BuckiaDiff
import SQLiteSchemas
import SQLiteChangesets
import SQLiteConnections
import TestSupport
import Testing

@testable import BuckiaSharing

/// The rows of a scope.
@Suite struct ScopeRowsTests {
  /// The keys of the rows that a scope shares, as text, by table.
  static func rows(_ scope: ShareScope, on connection: borrowing SQLiteConnection, key: String = "id") throws
    -> [String: [String]]
  {
    let transaction = try SQLiteTransaction(.deferred, on: connection)
    let rows = try ScopeRows(scope, on: connection, SchemaReader(connection))
    let selections = rows.selections
    var found: [String: [String]] = [:]
    for table in rows.schema.tables {
      let selection = selections[table.name] ?? RowSelection()
      let query = try connection.prepare(
        "SELECT \"\(key)\" FROM \(table.sql) WHERE \(selection.condition.map { "(\($0))" } ?? "true") ORDER BY 1")
      try selection.bindParameters(to: query)
      var keys: [String] = []
      while try query.step() { keys.append("\(ChangesetValue(query, at: 0))") }
      found[table.name.text] = keys
    }
    try rows.removeTables()
    try transaction.commit()
    return found
  }

  static let library = """
    CREATE TABLE owner(id INTEGER PRIMARY KEY, name TEXT);
    CREATE TABLE folder(id INTEGER PRIMARY KEY, up INTEGER REFERENCES folder(id));
    CREATE TABLE album(id INTEGER PRIMARY KEY, owner INTEGER REFERENCES owner(id), folder INTEGER REFERENCES folder(id));
    CREATE TABLE photo(id INTEGER PRIMARY KEY, owner INTEGER REFERENCES owner(id));
    CREATE TABLE album_photo(id INTEGER PRIMARY KEY, album INTEGER REFERENCES album(id), photo INTEGER REFERENCES photo(id));
    CREATE TABLE comment(id INTEGER PRIMARY KEY, photo INTEGER REFERENCES photo(id), up INTEGER REFERENCES comment(id), draft);
    INSERT INTO owner VALUES (1,'Anna'),(2,'Ben'),(3,'Cara');
    INSERT INTO folder VALUES (1,NULL),(2,1),(3,2),(4,1);
    INSERT INTO album VALUES (1,1,3),(2,2,4);
    INSERT INTO photo VALUES (1,1),(2,3),(3,2);
    INSERT INTO album_photo VALUES (1,1,1),(2,1,2),(3,2,3);
    INSERT INTO comment VALUES (1,1,NULL,0),(2,1,1,0),(3,3,NULL,0),(4,2,NULL,1);
    """

  private func library() throws -> SQLiteConnection {
    let connection = try SQLiteConnection(opening: ":memory:", as: .create)
    try connection.execute(Self.library)
    return connection
  }

  @Test func `referenced rows are shared, from tables that are not named and through several tables`() throws {
    var scope = ShareScope {
      SharedTable("album").where("id = :id", ["id": 1])
      SharedTable("folder").where("false")
    }
    #expect(try Self.rows(scope, on: library()) == ["album": ["1"], "owner": ["1"], "folder": ["1", "2", "3"]])
    // Of a table that is not named only the key is shared, without the rows that other columns refer to.
    scope.tables.removeLast()
    #expect(try Self.rows(scope, on: library()) == ["album": ["1"], "owner": ["1"], "folder": ["3"]])
    scope.references = [SharedReference("folder", ["up"], to: "folder", ["id"])]
    #expect(try Self.rows(scope, on: library()) == ["album": ["1"], "owner": ["1"], "folder": ["1", "2", "3"]])
  }

  @Test func `children are shared with the other side of a link table, and with their own parents`() throws {
    let scope = ShareScope {
      SharedTable("album").where("id = 1")
      SharedTable("album_photo").children(of: "album")
      SharedTable("photo").where("false")
    }
    let found = try Self.rows(scope, on: library())
    #expect(found["album_photo"] == ["1", "2"])
    #expect(found["photo"] == ["1", "2"])
    #expect(found["owner"] == ["1", "3"])
    #expect(found["comment"] == nil)
  }

  @Test func `rows that are shared only as parents bring no children`() throws {
    // Folder 3 is below 2 and 1, which are shared as its parents; 4 is below 1, too.
    let scope = ShareScope { SharedTable("folder").where("id = 2").children(of: "folder") }
    #expect(try Self.rows(scope, on: library()) == ["folder": ["1", "2", "3"]])
  }

  @Test(arguments: [(1, ["1", "2"]), (2, ["1", "2", "3"])])
  func `children are shared up to the given depth`(depth: Int, keys: [String]) throws {
    let connection = try library()
    try connection.execute("DELETE FROM folder WHERE id = 4")
    let scope = ShareScope { SharedTable("folder").where("id = 1").children(of: "folder", depth: depth) }
    #expect(try Self.rows(scope, on: connection)["folder"] == keys)
  }

  @Test func `a condition restricts the children`() throws {
    let scope = ShareScope {
      SharedTable("photo").where("id < 3")
      SharedTable("comment").children(of: "photo", "comment", where: "draft = 0")
    }
    #expect(try Self.rows(scope, on: library())["comment"] == ["1", "2"])
  }

  @Test func `a reference in an omitted or rewritten column brings no rows`() throws {
    let scope = ShareScope { SharedTable("album").where("id = 1").omitting("folder").rewriting("owner", to: .null) }
    #expect(try Self.rows(scope, on: library()) == ["album": ["1"]])
  }

  /// The rows that a scope leaves out.
  static func leftOut(_ scope: ShareScope, on connection: borrowing SQLiteConnection) throws -> [LeftOutRows] {
    let transaction = try SQLiteTransaction(.deferred, on: connection)
    let rows = try ScopeRows(scope, on: connection, SchemaReader(connection))
    let found = try rows.leftOut()
    try rows.removeTables()
    #expect(try connection.integer("SELECT count(*) FROM temp.sqlite_schema") == 0)
    try transaction.commit()
    return found
  }

  @Test func `rows that refer to an excluded table are left out`() throws {
    let scope = ShareScope(tables: [SharedTable("photo")], excludedTables: ["owner"])
    let connection = try library()
    try connection.execute("INSERT INTO photo VALUES (4, NULL)")
    #expect(try Self.rows(scope, on: connection)["photo"] == ["4"])
    let found = try Self.leftOut(scope, on: connection)
    let rows = [(1, 1), (2, 3), (3, 2)].map { LeftOutRows.Row(key: [.integer($0)], values: [.integer($1)]) }
    #expect(
      found == [
        LeftOutRows(
          table: "photo", columns: ["owner"], parent: "owner", reason: .parentNotShared, count: 3, rows: rows)
      ])
  }

  @Test func `a row with a dangling reference is left out with its children, and the rest is shared`() throws {
    let connection = try library()
    try connection.execute("INSERT INTO photo VALUES (9, 77); INSERT INTO comment VALUES (5, 9, 2, 0), (6, 1, 5, 1)")
    let scope = ShareScope {
      SharedTable("photo")
      SharedTable("comment").where("draft < 2")
    }
    let keys = try Self.rows(scope, on: connection)
    #expect(keys["photo"] == ["1", "2", "3"])
    #expect(keys["comment"] == ["1", "2", "3", "4"])
    let found = try Self.leftOut(scope, on: connection)
    #expect(found.map(\.reason) == [.noParent, .parentLeftOut, .parentLeftOut])
    #expect(found.map(\.table) == ["photo", "comment", "comment"])
    #expect(found.map(\.columns) == [["owner"], ["photo"], ["up"]])
    #expect(found[0].rows == [LeftOutRows.Row(key: [9], values: [77])])
    let others = ShareScope { SharedTable("photo").where("id < 9") }
    #expect(try Self.leftOut(others, on: connection).isEmpty)
  }

  @Test func `rows of a long chain are visited a bounded number of times`() throws {
    let connection = try SQLiteConnection(opening: ":memory:", as: .create)
    try connection.execute(
      """
      CREATE TABLE note(id INTEGER PRIMARY KEY, up INTEGER REFERENCES note(id));
      WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 19999) INSERT INTO note(up) SELECT nullif(i, 0) FROM n;
      """)
    let scope = ShareScope { SharedTable("note").where("id = 1").children(of: "note") }
    #expect(try Self.rows(scope, on: connection)["note"]?.count == 20_000)
    // Now all rows refer, one through another, to a row that does not exist.
    try connection.execute("UPDATE note SET up = 99999 WHERE id = 1")
    #expect(try Self.leftOut(ShareScope { SharedTable("note") }, on: connection).map(\.count) == [1, 19_999])
    #expect(try Self.leftOut(scope, on: connection).map(\.count) == [1, 19_999])
  }

  @Test(arguments: [
    (ShareScope(tables: []), "the scope names no table"),
    (ShareScope { SharedTable("phto") }, "the scope names table \"phto\", which does not exist"),
    (ShareScope(tables: [SharedTable("photo"), SharedTable("PHOTO")]), "the scope names table \"PHOTO\" twice"),
    (
      ShareScope(tables: [SharedTable("photo")], excludedTables: ["onwer"]),
      "the scope names table \"onwer\", which does not exist"
    ),
    (
      ShareScope { SharedTable("photo").where("owner = :me", ["me": 1, "my": 2]) },
      "no condition for table \"photo\" has a parameter \"my\""
    ),
    (
      ShareScope { SharedTable("photo").where("owner = :me") },
      "the condition for table \"photo\" of the scope cannot be used: its parameter :me has no value (in: owner = :me)"
    ),
    (
      ShareScope { SharedTable("photo").omitting("id") },
      "column \"photo.id\" cannot be left out: it is part of the primary key"
    ),
    (
      ShareScope { SharedTable("photo").rewriting("id", to: 1) },
      "column \"photo.id\" cannot be rewritten: it is part of the primary key"
    ),
    (
      ShareScope { SharedTable("comment").children(of: "photo") },
      "rows of table \"comment\" are shared as children of table \"photo\", of which the scope chooses none"
    ),
    (
      ShareScope(tables: [SharedTable("owner"), SharedTable("comment").children(of: "owner")]),
      "no foreign key of table \"comment\" refers to table \"owner\"; declare the reference in the scope"
    ),
  ])
  func `an impossible scope is an error with the reason`(scope: ShareScope, message: String) throws {
    let connection = try library()
    let error = #expect(throws: ReplicationError.self) { try Self.rows(scope, on: connection) }
    #expect(error?.message == message)
  }

  @Test func `a condition cannot escape its parentheses`() throws {
    for condition in ["1) OR (1", "1; DELETE FROM photo", "id = 1 --"] {
      let scope = ShareScope { SharedTable("photo").where(condition) }
      if condition.hasSuffix("--") {
        #expect(try Self.rows(scope, on: library())["photo"] == ["1"])
      } else {
        #expect(throws: ReplicationError.self) { try Self.rows(scope, on: library()) }
      }
    }
  }

  @Test("In random schemas, the rows equal those found reference by reference", arguments: Seeds.shards)
  func likeTheModel(shard: Int) throws {
    var (gathered, leftOut) = (0, 0)
    try Seeds.tryEach(400, shard: shard) { seed in
      let world = try RandomScope(seed: seed)
      let wanted = try world.rows()
      let found = try Self.rows(world.scope, on: world.connection)
      try #require(found == wanted.keys, "\(Seeds.replay(seed))\n\(world.story)")
      try #require(
        Self.leftOut(world.scope, on: world.connection).reduce(0) { $0 + $1.count } == wanted.leftOut,
        "\(Seeds.replay(seed))\n\(world.story)")
      gathered += wanted.keys.values.reduce(0) { $0 + $1.count }
      leftOut += wanted.leftOut
    }
    #expect(gathered > 0)
    #expect(leftOut > 0)
  }

  @Test(
    "Without an index, a table is not scanned once for every row of the other", .timeLimit(.minutes(1)),
    arguments: [
      "note INTEGER REFERENCES note(id), id TEXT PRIMARY KEY) WITHOUT ROWID", "note TEXT REFERENCES note(id), id)",
      "note INTEGER REFERENCES note(id), id)", "note INTEGER, id)",
    ])
  func withoutIndex(child: String) throws {
    // Comparing each row with each other would take minutes.
    let rows = 50_000
    let connection = try SQLiteConnection(opening: ":memory:", as: .create)
    let numbers = "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(rows))"
    try connection.execute(
      """
      CREATE TABLE note(id INTEGER PRIMARY KEY, number INTEGER);
      CREATE TABLE label(\(child);
      \(numbers) INSERT INTO note SELECT i, i FROM n;
      \(numbers) INSERT INTO label(note, id) SELECT i, 'label ' || i FROM n;
      """)
    var scope = ShareScope {
      SharedTable("note").where("id > 10")
      SharedTable("label").children(of: "note")
    }
    if !child.contains("REFERENCES") {
      scope.references = [SharedReference("label", ["note"], to: "note", ["number"])]
    }
    let found = try Self.rows(scope, on: connection)
    #expect(found["label"]?.count == rows - 10)
    #expect(found["note"]?.count == rows - 10)
  }
}
