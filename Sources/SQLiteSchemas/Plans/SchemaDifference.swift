import BuckiaBytes

/// What tells two definitions of one table apart, for the mode that allows no difference.
enum SchemaDifference {
  /// The first difference that there is, for people; nil when both come to the same.
  ///
  /// Names and types are compared without regard to case, as SQLite does.
  static func first(_ incoming: TableDefinition, _ local: TableDefinition) -> String? {
    let (theirs, ours) = (incoming.columns.map(\.name), local.columns.map(\.name))
    if !theirs.map(ASCIIName.folded).elementsEqual(ours.map(ASCIIName.folded), by: ==) {
      if let name = theirs.first(where: { local.column(named: $0) == nil }) {
        return "column \"\(name)\" is missing here"
      }
      if let name = ours.first(where: { incoming.column(named: $0) == nil }) {
        return "column \"\(name)\" is only here"
      }
      return "the columns are in another order"
    }
    for (their, our) in zip(incoming.columns, local.columns) {
      if let difference = first(their, our) { return "column \"\(our.name)\" has \(difference)" }
    }
    if incoming.isWithoutRowID != local.isWithoutRowID { return "it is \(only(incoming.isWithoutRowID)) WITHOUT ROWID" }
    if incoming.isStrict != local.isStrict { return "it is \(only(incoming.isStrict)) STRICT" }
    if incoming.isAutoIncrement != local.isAutoIncrement {
      return "its key is \(only(incoming.isAutoIncrement)) AUTOINCREMENT"
    }
    if Set(incoming.generated.map(shape)) != Set(local.generated.map(shape)) { return "other columns are generated" }
    if Set(incoming.unique.map { shape($0, of: incoming) }) != Set(local.unique.map { shape($0, of: local) }) {
      return "other columns are UNIQUE"
    }
    if Set(incoming.foreignKeys.map(shape)) != Set(local.foreignKeys.map(shape)) { return "the foreign keys differ" }
    return nil
  }

  private static func first(_ incoming: ColumnDefinition, _ local: ColumnDefinition) -> String? {
    if !ASCIIName.matches(incoming.declaredType, local.declaredType) {
      return "type \(name(of: incoming)) in the diff and \(name(of: local)) here"
    }
    if incoming.isNotNull != local.isNotNull {
      return "NOT NULL \(only(incoming.isNotNull, "in the diff", "here")) only"
    }
    if !ASCIIName.matches(incoming.collation, local.collation) {
      return "the collating sequence \(incoming.collation) in the diff and \(local.collation) here"
    }
    // An expression does not travel, so whether the author's column has the same is unknown.
    if incoming.defaultValue != local.defaultValue, !local.hasExpressionDefault {
      return
        "the default \(incoming.defaultValue?.sql ?? "NULL") in the diff and \(local.defaultValue?.sql ?? "NULL") here"
    }
    return nil
  }

  private static func only(_ isTheirs: Bool, _ there: String = "in the diff only", _ here: String = "here only")
    -> String
  {
    isTheirs ? there : here
  }

  /// A column's type, for people.
  static func name(of column: ColumnDefinition) -> String {
    column.declaredType.isEmpty ? "no type" : column.declaredType
  }

  private static func shape(_ column: GeneratedColumn) -> [String] {
    [ASCIIName.folded(column.name), column.isStored ? "stored" : "virtual"]
  }

  private static func shape(_ unique: [Int], of table: TableDefinition) -> Set<String> {
    Set(unique.map { ASCIIName.folded(table.columns[$0].name) })
  }

  private static func shape(_ key: ForeignKey) -> [String] {
    key.columns.map(ASCIIName.folded) + ["references", ASCIIName.folded(key.parent)]
      + key.parentColumns.map(ASCIIName.folded) + [key.onUpdate.rawValue, key.onDelete.rawValue]
  }
}
