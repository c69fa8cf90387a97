import SQLiteSchemas
import SQLiteConnections
import Testing

@Suite("The merge of two schemas") struct SchemaMergeTests {
  private static func statements(_ sql: String) throws -> [SchemaStatement] {
    let connection = try SQLiteConnection(opening: ":memory:", as: .create)
    try connection.execute(sql)
    return try SchemaReader(connection).statements()
  }

  /// The other side's schema as its author sends it.
  private static func author(_ base: [SchemaStatement], _ theirs: [SchemaStatement]) -> AuthorSchema {
    let replaced = base.filter { old in !theirs.contains(old) }
    return AuthorSchema(statements: theirs, replaced: replaced.map { AuthorSchema.Replaced($0) })
  }

  private static func merge(_ base: String, _ ours: String, _ theirs: String) throws -> SchemaMerge {
    let (base, ours, theirs) = (try statements(base), try statements(ours), try statements(theirs))
    return SchemaMerge(base: base, ours: ours, theirs: author(base, theirs))
  }

  private static func sql(_ merge: SchemaMerge) -> [String] { (merge.author?.statements ?? []).map(\.sql) }

  @Test("A change of the other side alone is taken, and one of our side alone stays")
  func oneSided() throws {
    let merge = try Self.merge(
      "CREATE TABLE a(x); CREATE TABLE b(x); CREATE INDEX i ON a(x)",
      "CREATE TABLE a(x); CREATE TABLE b(x, ours); CREATE INDEX i ON a(x)",
      "CREATE TABLE a(x CHECK (x > 0)); CREATE TABLE b(x); CREATE INDEX i ON a(x DESC); CREATE VIEW v AS SELECT 1")
    #expect(merge.conflicts.isEmpty)
    #expect(
      Self.sql(merge) == [
        "CREATE TABLE a(x CHECK (x > 0))", "CREATE TABLE b(x, ours)", "CREATE INDEX i ON a(x DESC)",
        "CREATE VIEW v AS SELECT 1",
      ])
  }

  @Test("Columns added by both sides follow each other, with their complete definitions")
  func addedColumns() throws {
    let merge = try Self.merge(
      "CREATE TABLE a(x, UNIQUE (x))", "CREATE TABLE a(x, m TEXT DEFAULT 'a,b', both INT, UNIQUE (x))",
      "CREATE TABLE a(x, both  INT, t CHECK (t <> ')'), UNIQUE (x))")
    #expect(merge.conflicts.isEmpty)
    #expect(Self.sql(merge) == ["CREATE TABLE a(x, m TEXT DEFAULT 'a,b', both INT, t CHECK (t <> ')'), UNIQUE (x))"])
  }

  @Test("Columns that we have added are put into a table that the other side has rebuilt")
  func addedToRebuilt() throws {
    let merge = try Self.merge(
      "CREATE TABLE a(x, gone)", "CREATE TABLE a(x, gone, m)", "CREATE TABLE a(x NOT NULL)")
    #expect(merge.conflicts.isEmpty)
    #expect(Self.sql(merge) == ["CREATE TABLE a(x NOT NULL, m)"])
  }

  @Test(
    "Different changes of one object are a conflict, and ours stays",
    arguments: [
      ("CREATE TABLE a(x)", "CREATE TABLE a(x, y INT)", "CREATE TABLE a(x, y TEXT)", "a"),
      ("CREATE TABLE a(x)", "CREATE TABLE a(x UNIQUE)", "CREATE TABLE a(x NOT NULL)", "a"),
      ("CREATE VIEW v AS SELECT 1", "CREATE VIEW v AS SELECT 2", "CREATE VIEW v AS SELECT 3", "v"),
      ("", "CREATE VIEW v AS SELECT 2", "CREATE VIEW v AS SELECT 3", "v"),
    ])
  func conflicting(_ base: String, _ ours: String, _ theirs: String, _ name: String) throws {
    let merge = try Self.merge(base, ours, theirs)
    #expect(merge.conflicts.map(\.kind) == [.bothChanged])
    #expect(merge.conflicts.map(\.name) == [name])
    #expect(Self.sql(merge) == [ours])
  }

  @Test("Dropped on one side and changed on the other is a conflict; unchanged, it is dropped")
  func dropped() throws {
    let base = "CREATE TABLE a(x); CREATE INDEX i ON a(x); CREATE INDEX j ON a(x)"
    let theirs = try Self.merge(
      base, "CREATE TABLE a(x); CREATE INDEX i ON a(x); CREATE INDEX j ON a(x DESC)", "CREATE TABLE a(x)")
    #expect(theirs.conflicts.map(\.kind) == [.droppedThere])
    #expect(theirs.conflicts.map(\.name) == ["j"])
    #expect(theirs.author?.replaced.map(\.statement.name) == ["i"])
    let ours = try Self.merge(
      base, "CREATE TABLE a(x)", "CREATE TABLE a(x); CREATE INDEX i ON a(x); CREATE INDEX j ON a(x DESC)")
    #expect(ours.conflicts.map(\.kind) == [.droppedHere])
    #expect(Self.sql(ours) == ["CREATE TABLE a(x)"])
  }

  @Test("If both sides create a table, one may be the other with more columns")
  func bothMade() throws {
    let more = try Self.merge("", "CREATE TABLE a(x)", "CREATE TABLE a(x, y)")
    #expect(more.conflicts.isEmpty)
    #expect(Self.sql(more) == ["CREATE TABLE a(x, y)"])
    let less = try Self.merge("", "CREATE TABLE a(x, y)", "CREATE TABLE a(x)")
    #expect(less.conflicts.isEmpty)
    #expect(Self.sql(less) == ["CREATE TABLE a(x, y)"])
  }
}
