import BuckiaBytes
import SQLiteSchemas

/// The rules that a table definition must keep before anything is created from it.
enum SchemaRules {
  static func check(_ table: TableDefinition) throws(DiffFileError) {
    let document = JSONMember.schema
    let shown = EscapedText.quoted(table.name)
    try checkName(table.name, "table name")
    if let refusal = TableName(table.name).refusal {
      throw DiffFileError(
        .badName, "the table \(shown) cannot be part of a diff: \(refusal)", member: document.name, table: table.name)
    }
    let columnNames = try checkColumns(of: table)
    guard !table.isWithoutRowID || !table.primaryKey.isEmpty else {
      throw document.invalid("primaryKey", "is empty, though \(shown) is WITHOUT ROWID")
    }
    if table.isAutoIncrement {
      let isInteger =
        table.primaryKey.count == 1
        && ASCIIName.matches(table.columns[table.primaryKey[0]].declaredType, "INTEGER")
      guard isInteger, !table.isWithoutRowID else {
        throw document.invalid("autoIncrement", "stands without one INTEGER key column in \(shown)")
      }
    }
    if let contradiction = table.moduleContradiction {
      throw document.invalid("module", "does not fit \(shown): \(contradiction)")
    }
    guard table.unique.allSatisfy({ !$0.isEmpty }) else {
      throw document.invalid("unique", "holds an empty constraint in \(shown)")
    }
    for key in table.foreignKeys {
      try checkName(key.parent, "foreign key's table")
      guard TableName(key.parent).refusal == nil else {
        throw document.invalid("foreignKeys", "refers to \(EscapedText.quoted(key.parent)), which no diff may name")
      }
      guard !key.columns.isEmpty, key.columns.allSatisfy({ columnNames.contains(Folded($0)) }) else {
        throw document.invalid("foreignKeys", "names columns that \(shown) does not have")
      }
      guard key.parentColumns.isEmpty || key.parentColumns.count == key.columns.count else {
        throw document.invalid("foreignKeys", "pairs different numbers of columns in \(shown)")
      }
      for column in key.parentColumns { try checkName(column, "foreign key's column") }
    }
  }

  /// A name as SQLite compares it: byte for byte, ASCII letters in either case.
  private struct Folded: Hashable {
    private let bytes: [UInt8]
    init(_ name: String) { bytes = Array(ASCIIName.folded(name).utf8) }
  }

  private static func checkColumns(of table: TableDefinition) throws(DiffFileError) -> Set<Folded> {
    let document = JSONMember.schema
    let shown = EscapedText.quoted(table.name)
    guard !table.columns.isEmpty else { throw document.invalid("columns", "is empty in \(shown)") }
    guard table.columns.count + table.generated.count <= DiffFileLimits.columns else {
      throw document.invalid("columns", "has more than \(DiffFileLimits.columns) entries in \(shown)")
    }
    let pairs =
      table.columns.map { ($0.name, $0.declaredType) } + table.generated.map { ($0.name, $0.declaredType) }
    var names: Set<Folded> = []
    for (name, type) in pairs {
      try checkName(name, "column name")
      guard names.insert(Folded(name)).inserted else {
        throw document.invalid("columns", "names \(EscapedText.quoted(name)) twice in \(shown)")
      }
      // Any text is allowed: `ColumnDefinition.safeType` decides what of it goes into CREATE TABLE.
      try checkName(type, "declared type")
    }
    for column in table.columns { try checkName(column.collation, "collation") }
    // In a table with a primary key such a column hides the rowid, which is not needed there.
    if table.isKeyedByRowID, names.contains(Folded(TableDefinition.rowIDColumn)) {
      throw document.invalid(
        "columns", "holds \"\(TableDefinition.rowIDColumn)\" in \(shown), whose rows are found by that name")
    }
    return names
  }

  private static func checkName(_ name: String, _ what: String) throws(DiffFileError) {
    guard name.utf8.count <= DiffFileLimits.nameBytes, !name.utf8.contains(0) else {
      throw JSONMember.schema.invalid(
        "tables", "holds a \(what) with a NUL or more than \(DiffFileLimits.nameBytes) bytes")
    }
  }
}
