import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// An effect of applying: a written row of a local table.
package struct RowEffect: Sendable, Equatable {
  /// The cause of an effect.
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
  /// The operation on the row.
  package let operation: ChangeOperation
  /// The cause.
  package let cause: Cause
  /// The values of the key in its order, as a record of the changeset format; empty if only its content identifies the
  /// row.
  package let key: [UInt8]
  /// The row before, as a record with a value for each local column; nil for an INSERT, and if the observer wants no
  /// whole rows.
  package let before: [UInt8]?
  /// The row afterwards; nil for a DELETE, and if the observer wants no whole rows.
  package let after: [UInt8]?
}

/// Observes every row that applying writes.
///
/// Effects are reported when the row is written, those of triggers after all changes of a diff. If a savepoint or
/// transaction is rolled back afterwards, the observer is rewound.
package protocol RowEffectObserver: AnyObject {
  /// True if whole rows are wanted, which takes two queries for each row. Otherwise `before` and `after` are nil.
  var wantsRows: Bool { get }
  /// Called after a row was written. May throw to stop; everything is then rolled back.
  func didWrite(_ effect: RowEffect) throws
  /// The number of reported effects.
  var mark: Int { get }
  /// Discards the effects since a mark.
  func rewind(to mark: Int)
}

/// The rows of one table that applying has changed, for an application that shows them.
public struct ChangedRows: Hashable, Codable, Sendable {
  /// The table.
  public let table: String
  /// The keys of the changed rows, each once and in the order of the first change: the values of the primary key's columns, or
  /// the rowid. Nil where there were too many to list, and where rows have no key.
  public let keys: [[ChangesetValue]]?
}

/// Collects the keys of changed rows, up to a limit.
package final class ChangedRowRecorder: RowEffectObserver {
  package let wantsRows = false

  private let limit: Int
  private var rows: [(table: TableName, key: [UInt8])] = []
  /// Tables with rows beyond the limit. A table stays here if its rows are rolled back, and is then reported without
  /// keys.
  private var unlisted: [TableName] = []

  /// Creates an empty recorder.
  ///
  /// - Parameter limit: The most keys to list.
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
  /// - Throws: `ChangesetError`, but never for records of the engine.
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
