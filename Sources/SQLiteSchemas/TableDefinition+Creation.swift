/// What a definition from outside may create. Author and receiver check the same rules, so a table that would be refused
/// over there is named over here.
extension TableDefinition {
  /// The most tables one diff file creates.
  public static let newTableLimit = 64
  /// The most columns one diff file adds to a table.
  public static let newColumnLimit = 64
  /// The most columns of a table, SQLite's own default.
  public static let columnLimit = 2000
  /// The longest name or declared type that travels, in bytes.
  public static let nameByteLimit = 1024

  /// Why this table may not be created from its definition, or nil.
  public var creationRefusal: String? {
    if let refusal = TableName(name).refusal { return refusal }
    if columns.isEmpty { return "it has no columns" }
    if columns.count > Self.columnLimit { return "it has more than \(Self.columnLimit) columns" }
    // Bytes, because Swift takes composed and decomposed letters for equal and SQLite does not.
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
  /// Why this column may not be created from its definition, or nil.
  public var creationRefusal: String? {
    if name.isEmpty { return "the name is empty" }
    if name.utf8.contains(0) { return "the name contains a NUL" }
    if ["rowid", "oid", "_rowid_"].contains(ASCIIName.folded(name)) {
      return "the name would hide SQLite's own rowid"
    }
    if !hasKnownCollation { return "only its author's program knows the collating sequence \(collation)" }
    return nil
  }
}
