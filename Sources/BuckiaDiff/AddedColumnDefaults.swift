import SQLiteConnections
import SQLiteSchemas

/// The values that columns have in rows which were written before the columns were added: SQLite does not write those rows
/// again, it reads the default instead (<https://sqlite.org/lang_altertable.html#alter_table_add_column>).
final class AddedColumnDefaults {
  /// The default is no literal.
  struct Unknown: Error {}

  private let table: TableStorage
  private var known: [Int: RowValue] = [:]
  private var storage: [UnsafeMutableRawBufferPointer] = []

  init(_ table: TableStorage) { self.table = table }

  deinit { for buffer in storage { buffer.deallocate() } }

  func value(_ column: Int) throws -> RowValue {
    if let value = known[column] { return value }
    guard case .literal(let sql, let affinity)? = table.defaults[column] else { throw Unknown() }
    let value = try Self.read(sql, affinity) { copy($0) }
    known[column] = value
    return value
  }

  /// Reads a row that is there before its column.
  ///
  /// The value is not that of the default in a new row: SQLite applies the affinity of the column to the literal as it is
  /// written. And quote() does not tell it to the last bit. So it is read as it is.
  private static func read(
    _ sql: String, _ affinity: Affinity, _ copy: (UnsafeRawBufferPointer) -> UnsafeRawBufferPointer
  ) throws -> RowValue {
    let scratch = try SQLiteConnection(opening: ":memory:", as: .create)
    try scratch.execute("CREATE TABLE t(id INTEGER); INSERT INTO t VALUES (1)")
    try scratch.execute("ALTER TABLE t ADD COLUMN added \(affinity.rawValue) DEFAULT (\(sql))")
    var value = RowValue.null
    try scratch.forEachRow(of: "SELECT added FROM t") { row in
      switch row.value(at: 0) {
      case .text(let bytes): value = .text(copy(bytes))
      case .blob(let bytes): value = .blob(copy(bytes))
      case let number: value = number
      }
    }
    return value
  }

  private func copy(_ bytes: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
    let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: max(1, bytes.count), alignment: 1)
    copy.copyMemory(from: bytes)
    storage.append(copy)
    return UnsafeRawBufferPointer(rebasing: copy[..<bytes.count])
  }
}
