import BuckiaBytes

/// What the definition of a table says that its changes do not, as far as rebasing needs it.
///
/// Columns are numbered as in the changes.
package struct RebaseTable: Sendable {
  /// How a column compares text. See <https://sqlite.org/datatype3.html#collating_sequences>.
  package enum Collation: Sendable {
    case binary, noCase, rightTrim
  }

  /// A foreign key.
  package struct Reference: Sendable {
    /// The columns of this table, the child.
    package let columns: [Int]
    /// The parent table.
    package let parent: String
    /// The columns of the parent that they refer to.
    package let parentColumns: [Int]

    /// Creates a foreign key.
    package init(columns: [Int], parent: String, parentColumns: [Int]) {
      self.columns = columns
      self.parent = parent
      self.parentColumns = parentColumns
    }
  }

  /// The table's name.
  package let name: String
  /// The collating sequence of each column.
  package let collations: [Collation]
  /// The UNIQUE constraints, each a list of columns.
  package let unique: [[Int]]
  /// The foreign keys.
  package let references: [Reference]
  /// The column that alone is the key and holds integers that each copy of the database gives out by itself.
  package let integerKey: Int?
  /// The greatest key that is known to be in use.
  package let greatestKey: Int64?

  /// Creates a description.
  package init(
    name: String, collations: [Collation], unique: [[Int]] = [], references: [Reference] = [], integerKey: Int? = nil,
    greatestKey: Int64? = nil
  ) {
    self.name = name
    self.collations = collations
    self.unique = unique
    self.references = references
    self.integerKey = integerKey
    self.greatestKey = greatestKey
  }

  func collation(of column: Int) -> Collation { collations.indices.contains(column) ? collations[column] : .binary }
}
