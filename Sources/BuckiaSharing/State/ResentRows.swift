import BuckiaApply
import SQLiteSchemas

/// Which rows a diff holds anew, in the place of all that its stream has had of them: all for a snapshot, else those of some buckets.
struct ResentRows {
  private let isSnapshot: Bool
  private var hashers: [TableName: StateHasher] = [:]
  /// The buckets of each table; nil for all.
  private var buckets: [TableName: Set<UInt8>?] = [:]

  init(_ claims: [StreamClaims.Rows], of stream: [UInt8], isSnapshot: Bool) {
    self.isSnapshot = isSnapshot
    for claim in claims {
      let name = TableName(claim.table)
      buckets.updateValue(claim.buckets, forKey: name)
      hashers[name] = StateHasher(key: stream, table: claim.table)
    }
  }

  /// Whether they are those of some tables or buckets alone.
  var isPartial: Bool { !isSnapshot && !buckets.isEmpty }
  /// Whether there are none.
  var isEmpty: Bool { !isSnapshot && buckets.isEmpty }
  /// The tables, but for a snapshot, which may have any.
  var tables: [TableName] { buckets.keys.sorted { $0.text < $1.text } }

  /// Whether rows of a table may be among them.
  func concern(_ table: TableName) -> Bool { isSnapshot || buckets[table] != nil }

  /// Whether all rows of a table are among them.
  func coverAll(of table: TableName) -> Bool {
    guard !isSnapshot, let known = buckets[table] else { return isSnapshot }
    return known == nil
  }

  /// Whether the row with a key is among them.
  func cover(_ key: [UInt8], of table: TableName) -> Bool {
    guard !isSnapshot, let known = buckets[table] else { return isSnapshot }
    guard let wanted = known, let hasher = hashers[table] else { return true }
    return wanted.contains(hasher.place(key).bucket)
  }
}
