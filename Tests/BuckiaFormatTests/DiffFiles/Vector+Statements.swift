import SQLiteSchemas

@testable import BuckiaFormat

extension Sample {
  /// An author who has dropped a table and a trigger, and changed an index.
  static let author = AuthorSchema(
    statements: [
      SchemaStatement(
        .table, name: "notes", table: "notes",
        sql: "CREATE TABLE notes(id INTEGER PRIMARY KEY, title TEXT CHECK (title <> ''))"),
      SchemaStatement(
        .index, name: "by title", table: "notes", sql: "CREATE INDEX \"by title\" ON notes(lower(title))"),
      SchemaStatement(.view, name: "titles", table: "titles", sql: "CREATE VIEW titles AS SELECT title FROM notes"),
      SchemaStatement(
        .trigger, name: "trimmed", table: "notes",
        sql:
          "CREATE TRIGGER trimmed AFTER INSERT ON notes BEGIN UPDATE notes SET title = trim(title) WHERE id = new.id; END"
      ),
    ],
    replaced: [
      AuthorSchema.Replaced(
        SchemaStatement(.table, name: "old", table: "old", sql: "CREATE TABLE old(a)"),
        content: AuthorSchema.TableContent(rows: 3, hash: 0xfedc_ba98_7654_3210)),
      AuthorSchema.Replaced(
        SchemaStatement(.index, name: "by title", table: "notes", sql: "CREATE INDEX \"by title\" ON notes(title)")),
    ])
}

extension Vector {
  /// A file whose statements have another text in one place.
  private static func statement(_ find: String, _ put: String) -> FileSpec {
    FileSpec(author: Sample.author, corruptions: [.replace(find, by: put, in: "schema.json")])
  }

  /// A file whose view is created by another statement.
  private static func view(_ sql: String) -> FileSpec {
    statement("CREATE VIEW titles AS SELECT title FROM notes", sql)
  }

  static let statements = [
    Vector("an unknown kind", .badSchema, statement("\"kind\":\"view\"", "\"kind\":\"pragma\"")),
    Vector("a statement's unknown field", .badSchema, statement("\"kind\":\"view\"", "\"kind\":\"view\",\"more\":1")),
    Vector("another name", .badSchema, statement("\"name\":\"titles\"", "\"name\":\"names\"")),
    Vector(
      "another table", .badSchema,
      statement("\"name\":\"trimmed\",\"table\":\"notes\"", "\"name\":\"trimmed\",\"table\":\"old\"")),
    Vector("two statements", .badSchema, view("CREATE VIEW titles AS SELECT 1; DROP TABLE notes")),
    Vector("a statement that ends", .badSchema, view("CREATE VIEW titles AS SELECT 1;")),
    Vector("a temporary view", .badSchema, view("CREATE TEMP VIEW titles AS SELECT 1")),
    Vector("a qualified name", .badSchema, view("CREATE VIEW main.titles AS SELECT 1")),
    Vector("a view that may be there", .badSchema, view("CREATE VIEW IF NOT EXISTS titles AS SELECT 1")),
    Vector("a statement that makes nothing", .badSchema, view("ATTACH 'x' AS titles")),
    Vector("a function with effects", .badSchema, view("CREATE VIEW titles AS SELECT load_extension('x')")),
    Vector("a reserved table", .badSchema, view("CREATE VIEW titles AS SELECT * FROM [buckia_ledger]")),
    Vector("a pragma as a table", .badSchema, view("CREATE VIEW titles AS SELECT * FROM pragma_table_list")),
    Vector(
      "recursion", .badSchema,
      view("CREATE VIEW titles AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x FROM c) SELECT x FROM c")),
    Vector("a parameter", .badSchema, view("CREATE VIEW titles AS SELECT ?1")),
    Vector("a quote without an end", .badSchema, view("CREATE VIEW titles AS SELECT 'title")),
    Vector(
      "a view before a table", .badSchema,
      statement(
        "\"statements\":[",
        "\"statements\":[{\"kind\":\"view\",\"name\":\"v\",\"table\":\"v\",\"sql\":\"CREATE VIEW v AS SELECT 1\"},")),
    Vector(
      "a thing made twice", .badSchema,
      statement(
        "\"statements\":[",
        "\"statements\":[{\"kind\":\"table\",\"name\":\"TITLES\",\"table\":\"TITLES\",\"sql\":\"CREATE TABLE TITLES(a)\"},"
      )),
    Vector("a content without a hash", .badSchema, statement(",\"hash\":\"fedcba9876543210\"", "")),
    Vector("a short hash", .badSchema, statement("fedcba9876543210", "fedcba98765432")),
    Vector(
      "the content of an index", .badSchema,
      statement("ON notes(title)\"", "ON notes(title)\",\"rows\":1,\"hash\":\"0000000000000000\"")),
    Vector("nothing about what was replaced", .badSchema, statement("\"replaced\"", "\"replacing\"")),
  ]
}
