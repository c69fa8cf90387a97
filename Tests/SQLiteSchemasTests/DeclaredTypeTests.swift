import SQLiteSchemas
import Testing

@Suite struct DeclaredTypeTests {
  @Test(
    "Only a plain type name is kept as the type",
    arguments: [
      ("", ""), ("INTEGER", "INTEGER"), ("varchar(80)", "varchar(80)"), ("DECIMAL(10, 2)", "DECIMAL(10, 2)"),
      ("UNSIGNED BIG INT", "UNSIGNED BIG INT"), ("Größe", "Größe"),
      ("(5)", "NUMERIC"), (" ", "NUMERIC"), ("5 INT", "INTEGER"), ("INT, b TEXT", "INTEGER"),
      ("TEXT CHECK (1)", "TEXT"), ("TEXT DEFAULT (x())", "TEXT"), ("INT)", "INTEGER"), ("VARCHAR(1)(2)", "TEXT"),
      ("REAL(1,2,3)", "REAL"), ("TEXT primary key", "TEXT"), ("a\0b", "NUMERIC"), ("BLOB--", "BLOB"),
    ])
  func plainTypes(declared: String, written: String) {
    #expect(ColumnDefinition(name: "c", declaredType: declared).safeType == written)
  }
}
