import SQLiteConnections
import SQLiteSchemas

/// A hash of all rows of a table, with their storage classes and independent of their order.
///
/// It detects mistakes, not attacks.
package enum ContentHash {
  /// Reads a whole table.
  ///
  /// - Throws: `SQLiteError`.
  package static func of(_ table: String, on connection: borrowing SQLiteConnection) throws -> UInt64 {
    var sum: UInt64 = 0
    var rows: UInt64 = 0
    try connection.forEachRow(of: "SELECT * FROM \(SQLText.identifier(table))") { row in
      sum &+= hash(row)
      rows += 1
    }
    return sum ^ rows
  }

  /// Reads a whole table of a database file.
  ///
  /// - Throws: `SQLiteError`.
  package static func of(_ table: String, in database: String) throws -> UInt64 {
    try of(table, on: try SQLiteConnection(opening: database, as: .readOnly))
  }

  private static func hash(_ row: borrowing SQLiteStatement) -> UInt64 {
    var hash: UInt64 = 0x9e37_79b9_7f4a_7c15
    for column in 0..<row.columnCount {
      let kind = row.storageClass(at: column)
      mix(UInt64(bitPattern: Int64(kind.rawValue)), into: &hash)
      switch kind {
      case .null: break
      case .integer: mix(UInt64(bitPattern: row.integer(at: column)), into: &hash)
      case .real: mix(row.real(at: column).bitPattern, into: &hash)
      case .text: mix(row.textBytes(at: column), into: &hash)
      case .blob: mix(row.blobBytes(at: column), into: &hash)
      }
    }
    return hash
  }

  private static func mix(_ bytes: UnsafeRawBufferPointer, into hash: inout UInt64) {
    mix(UInt64(bytes.count), into: &hash)
    var offset = 0
    while offset + 8 <= bytes.count {
      // Sound: the loop's condition keeps the eight bytes inside the buffer.
      mix(bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self), into: &hash)
      offset += 8
    }
    while offset < bytes.count {
      mix(UInt64(bytes[offset]), into: &hash)
      offset += 1
    }
  }

  /// The multiplication mixes low bits into high ones, the shift mixes them back.
  private static func mix(_ word: UInt64, into hash: inout UInt64) {
    hash = (hash ^ word) &* 0xff51_afd7_ed55_8ccd
    hash ^= hash >> 32
  }
}
