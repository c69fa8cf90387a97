import BuckiaBytes

/// The rules for tables that a diff creates. Author and receiver check the same rules, so the author learns about a table
/// that the receiver would refuse.
extension TableDefinition {
  /// The most tables that one diff creates.
  package static let newTableLimit = 64
  /// The most columns that one diff adds to a table.
  package static let newColumnLimit = 64
  /// The most columns of a table, the default limit of SQLite (<https://sqlite.org/limits.html#max_column>).
  package static let columnLimit = 2000
  /// The longest name or declared type in a diff, in bytes.
  package static let nameByteLimit = 1024

  /// Why a diff may not create this table; nil when it may.
  package var creationRefusal: String? {
    if let refusal = TableName(name).refusal { return refusal }
    if columns.isEmpty { return "it has no columns" }
    if columns.count > Self.columnLimit { return "it has more than \(Self.columnLimit) columns" }
    // Bytes, because Swift's strings treat composed and decomposed letters as equal and SQLite does not.
    var seen: Set<[UInt8]> = []
    for column in columns {
      if let refusal = column.creationRefusal { return "column \"\(column.name)\": \(refusal)" }
      guard seen.insert(Array(ASCIIName.folded(column.name).utf8)).inserted else {
        return "two columns are named \"\(column.name)\""
      }
    }
    if let refusal = moduleCreationRefusal { return refusal }
    if isWithoutRowID, primaryKey.isEmpty { return "a WITHOUT ROWID table needs a primary key" }
    if isStrict, let column = columns.first(where: { !Self.strictTypes.contains(ASCIIName.folded($0.declaredType)) }) {
      return "column \"\(column.name)\" has a type that STRICT tables do not allow"
    }
    return nil
  }

  private static let strictTypes: Set<String> = ["int", "integer", "real", "text", "blob", "any"]
}

extension ColumnDefinition {
  /// Why a diff may not create this column; nil when it may.
  package var creationRefusal: String? {
    if name.isEmpty { return "the name is empty" }
    if name.utf8.contains(0) { return "the name contains a NUL" }
    if ["rowid", "oid", "_rowid_"].contains(ASCIIName.folded(name)) {
      return "the name would hide SQLite's own rowid"
    }
    if !hasKnownCollation { return "only its author's program knows the collating sequence \(collation)" }
    return nil
  }
}
