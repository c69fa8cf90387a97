import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections

/// The rows of a table that a stream has brought, as the ledger keeps them.
///
/// What is written may wait until ``flush()``, and is seen before.
protocol VouchedRows: AnyObject {
  /// Which rows these are.
  var entry: VouchEntry { get }
  /// Whether the ledger has had none of them before.
  var isNew: Bool { get }

  /// Finds a row by its key.
  ///
  /// - Returns: Whether it was here before, and its hash as the stream has brought it; nil where it has not.
  func find(_ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable) throws -> VouchedRow?
  /// Gives each row, and its key in the format of changesets. Rows may be looked up meanwhile, and must not be changed.
  func forEach(_ body: ([UInt8], VouchedRow) throws -> Void) throws
  /// Adds a row, or changes the hash of one that is there.
  func add(_ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable, _ found: VouchedRow) throws
  /// Removes a row.
  func remove(_ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable) throws
  /// Writes what waits.
  func flush() throws
}

/// What is known of a row that a stream has brought.
struct VouchedRow {
  /// Whether it was here before.
  let isOwn: Bool
  /// Its hash as the stream has it.
  let hash: UInt64
}

extension VouchedRow {
  /// Reads it from two columns of a row of the ledger.
  init(_ row: borrowing SQLiteStatement, at column: Int) {
    self.init(isOwn: row.integer(at: column) != 0, hash: UInt64(bitPattern: row.integer(at: column + 1)))
  }
}
