import SQLiteChangesets
import SQLiteConnections
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
  /// True if whole rows are wanted, which costs two queries a row. Otherwise `before` and `after` are nil.
  var wantsRows: Bool { get }
  /// A row was written. May throw to stop; everything is then rolled back.
  func didWrite(_ effect: RowEffect) throws
  /// How many effects have been reported.
  var mark: Int { get }
  /// Forgets the effects since a mark.
  func rewind(to mark: Int)
}

/// The rows of one table that applying has changed, for an application that shows them.
public struct ChangedRows: Sendable, Equatable {
  /// The table.
  public let table: String
  /// The keys of the changed rows, each once and in the order of the first change: the values of the primary key's columns, or
  /// the rowid. Nil where there were too many to list, and where rows have no key.
  public let keys: [[ChangesetValue]]?
}

/// Gathers the keys of changed rows, up to a limit.
package final class ChangedRowRecorder: RowEffectObserver {
  package let wantsRows = false

  private let limit: Int
  private var rows: [(table: TableName, key: [UInt8])] = []
  /// Tables with rows beyond the limit. One stays here when those are rolled back: it is then reported without keys.
  private var unlisted: [TableName] = []

  /// Begins with nothing.
  ///
  /// - Parameter limit: How many keys are listed at most.
  package init(limit: Int) { self.limit = limit }

  package func didWrite(_ effect: RowEffect) {
    if rows.count < limit {
      rows.append((effect.table, effect.key))
    } else if !unlisted.contains(effect.table) {
      unlisted.append(effect.table)
    }
  }

  package var mark: Int { rows.count }

  package func rewind(to mark: Int) { rows.removeLast(rows.count - mark) }

  /// The changed rows, by table in the order of the first change.
  ///
  /// - Throws: `ChangesetError`; never for records that applying has made.
  package func changedRows() throws -> [ChangedRows] {
    var order: [TableName] = []
    var keys: [TableName: [[UInt8]]] = [:]
    var seen: [TableName: Set<[UInt8]>] = [:]
    var withoutKeys = Set(unlisted)
    for row in rows {
      if seen[row.table] == nil { order.append(row.table) }
      if row.key.isEmpty { withoutKeys.insert(row.table) }
      if seen[row.table, default: []].insert(row.key).inserted { keys[row.table, default: []].append(row.key) }
    }
    order += unlisted.filter { seen[$0] == nil }
    return try order.map { table in
      guard !withoutKeys.contains(table) else { return ChangedRows(table: table.text, keys: nil) }
      let keys = try (keys[table] ?? []).map { try ChangesetValue.record($0).compactMap { $0 } }
      return ChangedRows(table: table.text, keys: keys)
    }
  }
}
