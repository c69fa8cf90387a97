import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Reports the rows of one table to the observer.
struct TableEffects {
  let observer: any RowEffectObserver
  private let table: TableName
  private let key: RowKey
  /// The rowid that an INSERT without a key gets; nil for tables with a key.
  private let takesRowID: Bool
  private let width: Int

  init(_ observer: any RowEffectObserver, _ statements: TableStatements, _ header: ChangesetTable) {
    self.observer = observer
    table = statements.name
    key = RowKey(of: header)
    takesRowID = statements.match.local.goesByRowID
    width = statements.layout.count
  }

  /// A whole row as a record.
  func record(of row: CurrentRow) -> [UInt8] {
    var writer = ChangesetWriter()
    row.append(width, to: &writer)
    return writer.bytes
  }

  /// A row was inserted.
  func didInsert(
    _ change: DecodedChange, _ bytes: RawSpan, after: [UInt8]?, on connection: borrowing SQLiteConnection
  ) throws {
    var key = key(of: change, bytes)
    if takesRowID, change.hasNullKey, let rowID = try connection.cachedInteger("SELECT last_insert_rowid()") {
      var writer = ChangesetWriter()
      writer.append(integer: rowID)
      key = writer.bytes
    }
    try observer.didWrite(
      RowEffect(table: table, operation: .insert, cause: .change, key: key, before: nil, after: after))
  }

  /// A row was updated, or replaced by an INSERT.
  func didUpdate(
    _ change: DecodedChange, _ bytes: RawSpan, _ cause: RowEffect.Cause, before: [UInt8]?, after: [UInt8]?
  ) throws {
    try observer.didWrite(
      RowEffect(
        table: table, operation: .update, cause: cause, key: key(of: change, bytes), before: before, after: after))
  }

  /// A row was deleted.
  func didDelete(_ change: DecodedChange, _ bytes: RawSpan, before: [UInt8]?) throws {
    try observer.didWrite(
      RowEffect(
        table: table, operation: .delete, cause: .change, key: key(of: change, bytes), before: before, after: nil))
  }

  private func key(of change: DecodedChange, _ bytes: RawSpan) -> [UInt8] {
    change.hasNullKey ? [] : key.bytes(of: change, bytes)
  }
}
