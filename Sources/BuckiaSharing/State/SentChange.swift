import BuckiaApply
import SQLiteChangesets

/// A change as its sender has sent it, before its row has got the keys that it has here: what the sums of a stream follow.
struct SentChange: Equatable {
  let operation: ChangeOperation
  /// The key of the row, in the format of changesets.
  let key: [UInt8]
  /// The hash of the row for an INSERT; what is added to it for an UPDATE.
  let hash: UInt64

  init(_ change: Change, _ reader: ChangesetReader, _ bytes: RawSpan, of table: KeyedTable) {
    operation = change.operation
    key = table.key(change.operation == .insert ? reader.new : reader.old, bytes)
    hash =
      switch change.operation {
      case .insert: table.contentHash(reader.new, bytes)
      case .update: table.contentChange(reader, bytes)
      case .delete: 0
      }
  }
}
