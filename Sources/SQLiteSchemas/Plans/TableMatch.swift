/// How the columns of one incoming table meet those of the local one.
package struct TableMatch: Sendable {
  /// A column whose values must be looked at.
  package struct Check: Sendable {
    /// Its index in the changeset as it arrives.
    package let column: Int
    /// Its place in the local layout.
    package let place: Int
    /// The affinity it has there.
    package let affinity: Affinity
  }

  /// The local table, as it will be once the steps have been carried out.
  package let local: TableDefinition
  /// For each column of the changeset, without those that are held, its place in the local layout:
  /// `local.changesetColumns`.
  package let columns: [Int]
  /// Columns whose values must be looked at.
  package let checkedValues: [Check]
  /// Rows that come in and cannot be stored, since a column would make another value of theirs. What the same diff deletes
  /// under their identity stays: else a row whose key has another type here would be gone.
  package internal(set) var unstorableRows: Set<RowIdentity> = []

  /// Whether the changes name all columns of the local rows.
  package var isComplete: Bool { columns.count == local.columns.count + (local.isKeyedByRowID ? 1 : 0) }
  /// The local names of the columns of the changes.
  package var columnNames: [String] {
    let names = local.changesetColumns
    return columns.map { names[$0] }
  }
}

extension TableMatch {
  /// Matches a table with itself.
  package init(unchanged table: TableDefinition) {
    self.init(table, columns: Array(table.changesetColumns.indices))
  }

  /// Matches some columns of a table with itself.
  ///
  /// - Parameter columns: Their places in the local layout.
  package init(_ table: TableDefinition, columns: [Int]) {
    self.init(local: table, columns: columns, checkedValues: [])
  }
}
