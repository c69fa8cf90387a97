/// What of an incoming table has no place here and is to be held.
package struct HeldTable: Sendable {
  /// The table as its author has it.
  package let definition: TableDefinition
  /// Which of its columns are unknown: indexes into `definition.columns`. All of them where the table is.
  package let columns: [Int]
  /// Whether nothing of the table can be applied.
  package let isWhole: Bool
  /// Why, for people.
  package let reason: String

  /// All of a table.
  package init(whole definition: TableDefinition, because reason: String) {
    self.definition = definition
    self.reason = reason
    columns = Array(definition.columns.indices)
    isWhole = true
  }

  /// Some columns of a table.
  package init(_ columns: [Int], of definition: TableDefinition, because reason: String) {
    self.definition = definition
    self.columns = columns
    self.reason = reason
    isWhole = false
  }

  /// The table without what is unknown.
  package var known: TableDefinition {
    var known = definition
    for column in columns { known.removeColumn(named: definition.columns[column].name) }
    return known
  }
}
