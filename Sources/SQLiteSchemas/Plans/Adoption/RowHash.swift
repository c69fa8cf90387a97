import SQLiteChangesets
import SQLiteConnections

/// A hash of one row: FNV-1a with 64 bits over its values as a changeset has them, mixed once more so that sums of hashes tell
/// rows apart. `Schemas/diff-file.md` specifies it.
struct RowHash {
  private var hash: UInt64 = 0xcbf2_9ce4_8422_2325

  /// Adds the value in a column of a row.
  mutating func add(column: Int, of row: borrowing SQLiteStatement) {
    var writer = ChangesetWriter()
    writer.append(column: column, of: row)
    for byte in writer.bytes { hash = (hash ^ UInt64(byte)) &* 0x0000_0100_0000_01b3 }
  }

  /// The hash of all values so far.
  var value: UInt64 {
    var mixed = hash
    mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
    return mixed ^ (mixed >> 31)
  }
}
