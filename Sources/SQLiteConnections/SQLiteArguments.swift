import CBuckiaSQLite

/// The arguments of one call of a function, valid while it runs.
package struct SQLiteArguments: ~Copyable {
  private let values: UnsafeMutablePointer<OpaquePointer?>?
  private let routines: SQLiteRoutines
  /// How many there are.
  package let count: Int

  init(_ values: UnsafeMutablePointer<OpaquePointer?>?, count: Int, _ routines: SQLiteRoutines) {
    self.values = values
    self.routines = routines
    self.count = values == nil ? 0 : count
  }

  private subscript(index: Int) -> OpaquePointer? { (0..<count).contains(index) ? values?[index] : nil }

  /// The storage class of an argument; `null` for a missing one.
  package func storageClass(at index: Int) -> StorageClass {
    self[index].flatMap { StorageClass(rawValue: routines.value_type($0)) } ?? .null
  }

  /// An argument as an integer, converted as SQLite does it; 0 for a missing one.
  package func integer(at index: Int) -> Int64 { self[index].map { routines.value_int64($0) } ?? 0 }

  /// An argument as text, numbers converted as SQLite does it; nil for NULL and for a missing one.
  package func text(at index: Int) -> String? {
    guard let value = self[index], storageClass(at: index) != .null, let start = routines.value_text(value) else {
      return nil
    }
    // Sound: SQLite keeps the text, of as many bytes as it says, until the next conversion of this value.
    let bytes = UnsafeRawBufferPointer(start: start, count: Int(routines.value_bytes(value)))
    return String(decoding: bytes, as: UTF8.self)
  }

  /// A copy of the bytes of an argument; nil when it is not a blob.
  package func blob(at index: Int) -> [UInt8]? {
    withBlob(at: index) { bytes in bytes.withUnsafeBytes { Array($0) } }
  }

  /// Passes the bytes of an argument to `body`; they must not be kept beyond it.
  ///
  /// - Returns: What `body` returns; nil without a call when the argument is not a blob.
  package func withBlob<Result>(at index: Int, _ body: (RawSpan) -> Result?) -> Result? {
    guard let value = self[index], routines.value_type(value) == SQLITE_BLOB else { return nil }
    // Sound: SQLite keeps the bytes as they are during the call. An empty blob has no address and no bytes.
    let start = routines.value_blob(value)
    let bytes = UnsafeRawBufferPointer(start: start, count: start == nil ? 0 : Int(routines.value_bytes(value)))
    return body(bytes.bytes)
  }
}
