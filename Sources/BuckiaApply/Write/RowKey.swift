import SQLiteChangesets

/// The key of a row as bytes: the values of its columns in the order of the key, as a changeset has them.
struct RowKey {
  private let columns: [Int]

  init(of table: ChangesetTable) {
    columns = table.keyFlags.indices.filter { table.isKey($0) }.sorted { table.keyFlags[$0] < table.keyFlags[$1] }
  }

  /// The key of the row that a change is about.
  func bytes(of change: DecodedChange, _ bytes: RawSpan) -> [UInt8] {
    var writer = ChangesetWriter()
    for column in columns { writer.append(change.row(column), of: bytes) }
    return writer.bytes
  }

  /// What tells the row of an INSERT or UPDATE apart among the changes of its table: its key, or all that the change says where
  /// the key holds NULL.
  func identity(of change: DecodedChange, _ bytes: RawSpan) -> [UInt8] {
    guard change.hasNullKey else { return self.bytes(of: change, bytes) }
    var writer = ChangesetWriter()
    for value in change.newRow where value.isDefined { writer.append(value, of: bytes) }
    return writer.bytes
  }
}
