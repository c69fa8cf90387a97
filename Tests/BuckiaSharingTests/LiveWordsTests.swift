import BuckiaLedger
import SQLiteSchemas
import SQLiteConnections
import TestSupport
import Testing

@testable import BuckiaSharing

/// The words of rows whose integer keys each replica assigns itself.
@Suite struct LiveWordsTests {
  private static let schema = """
    CREATE TABLE folder(id INTEGER PRIMARY KEY, up INTEGER REFERENCES folder(id), name TEXT);
    CREATE TABLE photo(id INTEGER PRIMARY KEY, folder INTEGER REFERENCES folder(id), twin INTEGER REFERENCES photo(id), title);
    CREATE TABLE detail(photo INTEGER PRIMARY KEY REFERENCES photo(id), text);
    CREATE TABLE tag(id INTEGER PRIMARY KEY, name TEXT);
    CREATE TABLE photo_tag(photo INTEGER REFERENCES photo(id), tag INTEGER REFERENCES tag(id), PRIMARY KEY(photo, tag)) WITHOUT ROWID;
    CREATE TABLE comment(id TEXT PRIMARY KEY, photo INTEGER REFERENCES photo(id), body);
    CREATE TABLE log(photo INTEGER REFERENCES photo(id), body);
    CREATE TABLE plain(id INTEGER PRIMARY KEY, text);
    """
  private static let tables = ["folder", "photo", "detail", "tag", "photo_tag", "comment", "log", "plain"]

  private static func database(_ sql: String) throws -> SQLiteConnection {
    let connection = try SQLiteConnection(opening: ":memory:", as: .create)
    try connection.execute("PRAGMA foreign_keys = OFF;" + schema + sql)
    try Ledger.prepare(on: connection)
    return connection
  }

  /// The words of all rows, as in an exchange in both directions.
  private static func words(
    _ connection: borrowing SQLiteConnection,
    _ scope: ShareScope = ShareScope(tables: tables.map { SharedTable(TableName($0)) })
  ) throws -> (words: [String], rows: Int64) {
    let transaction = try SQLiteTransaction(.deferred, on: connection)
    let stream = [UInt8](repeating: 1, count: 16)
    let share = ShareEntry(
      stream: stream, incarnation: stream, name: nil, scope: scope.json, audience: "[]")
    let state = StateEntry(
      of: .sender("ben"), stream: [UInt8](repeating: 2, count: 16), table: TableName("tag"), columns: #"["id","name"]"#)
    let words = try LiveWords(
      of: LiveWords.Exchange(shares: [share], states: [state]), SchemaReader(connection), on: connection)
    transaction.rollback()
    return (words.words, words.rowCount)
  }

  /// Random rows, with permuted keys.
  private struct World {
    var folders: [(up: Int?, name: String)]
    var photos: [(folder: Int?, twin: Int?, title: String)]
    var tags: [String]
    var links: [(photo: Int, tag: Int)]
    var comments: [(photo: Int?, body: String)]
    var log: [(photo: Int?, body: String)]
    var plain: [String]
    var details: [(photo: Int, text: String)]

    /// - Parameter isUnique: True if the contents of each row are unique.
    init(isUnique: Bool, using random: inout some RandomNumberGenerator) {
      var count = 0
      func text() -> String {
        count += 1
        return isUnique ? "t\(count)" : "t\(Int.random(in: 0...1, using: &random))"
      }
      func some(_ count: Int) -> Int? { Bool.random(using: &random) ? Int.random(in: 0..<count, using: &random) : nil }
      folders = (0..<5).map { _ in (some(5), text()) }
      photos = (0..<8).map { _ in (some(5), some(8), text()) }
      tags = (0..<4).map { _ in text() }
      links = (0..<8).flatMap { photo in (0..<4).map { (photo, $0) } }.filter { _ in Bool.random(using: &random) }
      comments = (0..<6).map { _ in (some(8), text()) }
      log = (0..<6).map { _ in (some(8), text()) }
      plain = (0..<3).map { _ in text() }
      details = [1, 3, 5].map { ($0, text()) }
    }

    func sql(using random: inout some RandomNumberGenerator) -> String {
      func keys(_ count: Int) -> [Int] { Array((1...(3 * count)).shuffled(using: &random).prefix(count)) }
      let (folder, photo, tag, other) = (keys(5), keys(8), keys(4), keys(3))
      func text(_ key: Int?, _ keys: [Int]) -> String { key.map { "\(keys[$0])" } ?? "NULL" }
      var sql: [String] = []
      for (i, row) in folders.enumerated() {
        sql.append("folder VALUES (\(folder[i]),\(text(row.up, folder)),'\(row.name)')")
      }
      for (i, row) in photos.enumerated() {
        sql.append("photo VALUES (\(photo[i]),\(text(row.folder, folder)),\(text(row.twin, photo)),'\(row.title)')")
      }
      for (i, name) in tags.enumerated() { sql.append("tag VALUES (\(tag[i]),'\(name)')") }
      for link in links { sql.append("photo_tag VALUES (\(photo[link.photo]),\(tag[link.tag]))") }
      for (i, row) in comments.enumerated() {
        sql.append("comment VALUES ('c\(i)',\(text(row.photo, photo)),'\(row.body)')")
      }
      for row in log { sql.append("log VALUES (\(text(row.photo, photo)),'\(row.body)')") }
      for (i, text) in plain.enumerated() { sql.append("plain VALUES (\(other[i]),'\(text)')") }
      for row in details { sql.append("detail VALUES (\(photo[row.photo]),'\(row.text)')") }
      return sql.shuffled(using: &random).map { "INSERT INTO \($0);" }.joined()
    }
  }

  @Test("Rows with other integer keys have the same words, and any change leads to others", arguments: Seeds.shards)
  func permuted(shard: Int) throws {
    try Seeds.tryEach(60, shard: shard) { seed in
      var random = SeededGenerator(seed: seed)
      for isUnique in [false, true] {
        let world = World(isUnique: isUnique, using: &random)
        let first = try Self.database(world.sql(using: &random))
        let second = try Self.database(world.sql(using: &random))
        let words = try Self.words(first)
        #expect(words.rows == 5 + 8 + 4 + Int64(world.links.count) + 6 + 6 + 3 + 3)
        try #require(try Self.words(second).words == words.words, "\(Seeds.replay(seed))")
        guard isUnique else { continue }
        for edit in Self.edits.shuffled(using: &random).prefix(6) {
          try second.execute("SAVEPOINT edit; \(edit)")
          let hasChanged = try second.integer("SELECT changes()") ?? 0 > 0
          try #require(try !hasChanged || Self.words(second).words != words.words, "\(Seeds.replay(seed)): \(edit)")
          try second.execute("ROLLBACK TO edit; RELEASE edit")
        }
      }
    }
  }

  /// Changes of one row, if there is one.
  private static let edits = [
    "UPDATE folder SET name = 'x' WHERE id = (SELECT max(id) FROM folder)",
    "UPDATE folder SET up = (SELECT id FROM folder AS f WHERE f.id IS NOT folder.up LIMIT 1) WHERE id = (SELECT min(id) FROM folder)",
    "UPDATE folder SET up = NULL WHERE id = (SELECT id FROM folder WHERE up IS NOT NULL LIMIT 1)",
    "UPDATE photo SET twin = id WHERE id = (SELECT id FROM photo WHERE twin IS NOT id LIMIT 1)",
    "UPDATE photo SET folder = (SELECT id FROM folder AS f WHERE f.id IS NOT photo.folder LIMIT 1) WHERE id = (SELECT max(id) FROM photo)",
    "UPDATE comment SET photo = (SELECT id FROM photo AS p WHERE p.id IS NOT comment.photo LIMIT 1) WHERE id = 'c1'",
    "UPDATE log SET photo = (SELECT id FROM photo AS p WHERE p.id IS NOT log.photo LIMIT 1) WHERE rowid = 1",
    "UPDATE log SET body = 'x' WHERE rowid = 2", "DELETE FROM log WHERE rowid = 3",
    "INSERT INTO log SELECT * FROM log WHERE rowid = 4",
    "UPDATE detail SET photo = (SELECT id FROM photo WHERE id NOT IN (SELECT photo FROM detail) LIMIT 1) WHERE photo = (SELECT min(photo) FROM detail)",
    "UPDATE photo_tag SET tag = (SELECT id FROM tag AS t WHERE NOT EXISTS (SELECT 1 FROM photo_tag AS o WHERE (o.photo, o.tag) = (photo_tag.photo, t.id)) LIMIT 1) WHERE (photo, tag) = (SELECT photo, tag FROM photo_tag WHERE photo IN (SELECT photo FROM photo_tag GROUP BY 1 HAVING count(*) < 4) LIMIT 1)",
    "DELETE FROM photo_tag WHERE (photo, tag) = (SELECT photo, tag FROM photo_tag LIMIT 1)",
    "DELETE FROM tag WHERE id = (SELECT max(id) FROM tag)", "INSERT INTO tag(name) SELECT name FROM tag LIMIT 1",
    "UPDATE plain SET text = 'x' WHERE id = (SELECT max(id) FROM plain)",
    "DELETE FROM plain WHERE id = (SELECT max(id) FROM plain)",
    "INSERT INTO plain(text) SELECT text FROM plain LIMIT 1",
    "UPDATE comment SET id = 'other' WHERE id = 'c2'",
  ]

  @Test(arguments: [
    // Two comments on one of two equal photos, and one on each.
    (
      "photo(id,title) VALUES (1,'a'),(2,'a'); INSERT INTO log VALUES (1,'x'),(1,'y')",
      "UPDATE log SET photo = 2 WHERE body = 'y'"
    ),
    // Equal folders whose contents have different contents.
    (
      """
      folder(id,name) VALUES (1,'f'),(2,'f'); INSERT INTO photo(id,folder,title) VALUES (1,1,'p'),(2,2,'p');
      INSERT INTO log VALUES (1,'x'); INSERT INTO folder VALUES (3,1,'in')
      """, "UPDATE folder SET up = 2 WHERE id = 3"
    ),
    // Rows with nothing but references.
    ("folder(id,up) VALUES (1,NULL),(2,1),(3,2),(4,3)", "UPDATE folder SET up = 2 WHERE id = 4"),
    ("folder(id,up) VALUES (1,1),(2,2)", "UPDATE folder SET up = 1 WHERE id = 2"),
    ("folder(id,up) VALUES (1,2),(2,1),(3,4),(4,3)", "UPDATE folder SET up = 3 WHERE id = 2"),
  ])
  func `the place of equal rows makes a difference`(rows: String, edit: String) throws {
    let connection = try Self.database("INSERT INTO \(rows);")
    let before = try Self.words(connection)
    try connection.execute(edit)
    let after = try Self.words(connection)
    #expect(after.rows == before.rows)
    #expect(after.words != before.words)
  }

  @Test func `referenced rows count with their contents, but without their other children`() throws {
    let connection = try Self.database(
      "INSERT INTO photo(id,title) VALUES (1,'a'),(2,'b'); INSERT INTO comment VALUES ('c',1,'x'),('d',2,'y');")
    let scope = ShareScope { SharedTable("comment").where("id = 'c'") }
    let before = try Self.words(connection, scope).words
    try connection.execute("UPDATE comment SET body = 'z' WHERE id = 'd'; INSERT INTO comment VALUES ('e',1,'w')")
    #expect(try Self.words(connection, scope).words == before)
    try connection.execute("UPDATE photo SET title = 'x' WHERE id = 1")
    #expect(try Self.words(connection, scope).words != before)
  }
}
