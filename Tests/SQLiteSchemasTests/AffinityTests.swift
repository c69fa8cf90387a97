import SQLiteConnections
import SQLiteSchemas
import Testing

@Suite struct AffinityTests {
  /// The table of https://sqlite.org/datatype3.html#affinity_name_examples, and types that match several rules.
  static let examples: [(type: String, affinity: Affinity)] = [
    ("INT", .integer), ("INTEGER", .integer), ("TINYINT", .integer), ("SMALLINT", .integer), ("MEDIUMINT", .integer),
    ("BIGINT", .integer), ("UNSIGNED BIG INT", .integer), ("INT2", .integer), ("INT8", .integer),
    ("CHARACTER(20)", .text), ("VARCHAR(255)", .text), ("VARYING CHARACTER(255)", .text), ("NCHAR(55)", .text),
    ("NATIVE CHARACTER(70)", .text), ("NVARCHAR(100)", .text), ("TEXT", .text), ("CLOB", .text),
    ("BLOB", .blob), ("", .blob),
    ("REAL", .real), ("DOUBLE", .real), ("DOUBLE PRECISION", .real), ("FLOAT", .real),
    ("NUMERIC", .numeric), ("DECIMAL(10,5)", .numeric), ("BOOLEAN", .numeric), ("DATE", .numeric),
    ("DATETIME", .numeric),
    ("CHARINT", .integer), ("FLOATING POINT", .integer), ("STRING", .numeric), ("ANY", .numeric),
    ("int", .integer), ("Text", .text), ("bloB", .blob), ("TEXTBLOB", .text), ("BLOBREAL", .blob), ("ıNT", .numeric),
  ]

  @Test("A declared type has the affinity that SQLite gives it", arguments: examples)
  func affinity(_ example: (type: String, affinity: Affinity)) throws {
    #expect(Affinity(declaredType: example.type) == example.affinity)
    let connection = try SQLiteConnection(opening: ":memory:", as: .create)
    try connection.execute("CREATE TABLE t(a \(example.type)); INSERT INTO t VALUES ('12'), (12), (1.5), (x'31')")
    let classes = try connection.text("SELECT group_concat(typeof(a)) FROM t")
    let expected =
      switch example.affinity {
      case .integer, .numeric: "integer,integer,real,blob"
      case .real: "real,real,real,blob"
      case .text: "text,text,text,blob"
      case .blob: "text,integer,real,blob"
      }
    #expect(classes == expected)
  }
}
