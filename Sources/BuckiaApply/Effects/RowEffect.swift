import SQLiteChangesets
import SQLiteSchemas

/// A row that applying has written, as the local table has it.
package struct RowEffect: Sendable, Equatable {
  /// What wrote the row.
  package enum Cause: Sendable {
    /// A change of the diff.
    case change
    /// An INSERT of the diff in the place of the local row with its key.
    case replacement
    /// A trigger, because of another row.
    case indirect
  }

  /// The table.
  package let table: TableName
  /// What happened to the row.
  package let operation: ChangeOperation
  /// What wrote it.
  package let cause: Cause
  /// The values of its key in the order of the key, as a record of the changeset format. Empty where only its content tells the
  /// row apart.
  package let key: [UInt8]
  /// The row before, as a record with a value for each local column; nil for an INSERT, and where the observer wants no whole rows.
  package let before: [UInt8]?
  /// The row afterwards; nil for a DELETE, and where the observer wants no whole rows.
  package let after: [UInt8]?
}

/// Is told of every row that applying writes.
///
/// Effects are reported when the row is written, those of triggers when all changes of a diff are. A
/// savepoint or a transaction may be rolled back afterwards: then the observer is rewound to where it was.
package protocol RowEffectObserver: AnyObject {
  /// Whether whole rows are wanted, which costs two queries a row. Otherwise `before` and `after` are nil.
  var wantsRows: Bool { get }
  /// A row was written. May throw to stop; everything is then rolled back.
  func didWrite(_ effect: RowEffect) throws
  /// How many effects have been reported.
  var mark: Int { get }
  /// Forgets the effects since a mark.
  func rewind(to mark: Int)
}
