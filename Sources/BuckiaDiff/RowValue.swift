import SQLiteConnections

/// Comparing the values of two rows in place.
enum RowValue {
  /// Whether two values have the same storage class and the same bytes.
  static func isIdentical(_ first: borrowing RowScan, _ second: borrowing RowScan, at column: Int) -> Bool {
    let storageClass = first.storageClass(at: column)
    guard storageClass == second.storageClass(at: column) else { return false }
    switch storageClass {
    case .null: return true
    case .integer: return first.integer(at: column) == second.integer(at: column)
    case .real: return first.real(at: column).bitPattern == second.real(at: column).bitPattern
    case .text: return first.textBytes(at: column).byteOrder(against: second.textBytes(at: column)) == 0
    case .blob: return first.blobBytes(at: column).byteOrder(against: second.blobBytes(at: column)) == 0
    }
  }

  /// SQLite's order of two values under the BINARY collation: NULL, numbers, text, blobs.
  ///
  /// See <https://sqlite.org/datatype3.html#comparison_expressions>. Returns a negative number, zero or a positive one.
  static func order(_ first: borrowing RowScan, _ second: borrowing RowScan, at column: Int) -> Int {
    let firstClass = first.storageClass(at: column)
    let secondClass = second.storageClass(at: column)
    switch (firstClass, secondClass) {
    case (.integer, .integer): return order(first.integer(at: column), second.integer(at: column))
    case (.real, .real): return order(first.real(at: column), second.real(at: column))
    case (.integer, .real): return order(first.integer(at: column), real: second.real(at: column))
    case (.real, .integer): return -order(second.integer(at: column), real: first.real(at: column))
    case (.text, .text): return first.textBytes(at: column).byteOrder(against: second.textBytes(at: column))
    case (.blob, .blob): return first.blobBytes(at: column).byteOrder(against: second.blobBytes(at: column))
    default: return rank(firstClass) - rank(secondClass)
    }
  }

  private static func rank(_ storageClass: StorageClass) -> Int {
    switch storageClass {
    case .null: 0
    case .integer, .real: 1
    case .text: 2
    case .blob: 3
    }
  }

  private static func order<Value: Comparable>(_ first: Value, _ second: Value) -> Int {
    first < second ? -1 : first == second ? 0 : 1
  }

  /// An integer against a real, exactly: no integer is rounded on the way.
  static func order(_ integer: Int64, real: Double) -> Int {
    if real < -0x1p63 { return 1 }
    if real >= 0x1p63 { return -1 }
    let whole = Int64(real)
    if integer != whole { return integer < whole ? -1 : 1 }
    let fraction = real - Double(whole)
    return fraction > 0 ? -1 : fraction < 0 ? 1 : 0
  }
}
