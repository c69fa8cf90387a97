import Buckia
import SQLiteConnections

/// The rows of a table-valued function: all are written first, and then read one by one.
///
/// Nothing of the engine's is open between two rows, whatever the program does meanwhile. Rows that do not fit into a few megabytes
/// of memory go to a temporary file.
final class RowSpool: SQLiteRows {
  private enum Kind: UInt8 {
    case null, integer, real, text, blob
  }

  private let buffer = TemporaryBuffer()
  private var position = 0
  private var row: [SQLiteFunctionResult] = []
  private var encoded: [UInt8] = []

  /// Adds a row: for each value its kind and its bytes, with their number before those of text and blobs.
  ///
  /// - Throws: `ByteStreamError` when there is no room for it.
  func append(_ row: [SQLiteFunctionResult]) throws {
    encoded.removeAll(keepingCapacity: true)
    for value in row {
      switch value {
      case .null: encoded.append(Kind.null.rawValue)
      case .integer(let number): append(.integer, UInt64(bitPattern: number))
      case .real(let number): append(.real, number.bitPattern)
      case .utf8(let bytes):
        append(.text, UInt64(bytes.count))
        encoded.append(contentsOf: bytes)
      case .blob(let bytes):
        append(.blob, UInt64(bytes.count))
        encoded.append(contentsOf: bytes)
      }
    }
    try withUnsafeBytes(of: UInt64(encoded.count)) { try buffer.write($0) }
    try encoded.withUnsafeBytes { try buffer.write($0) }
  }

  private func append(_ kind: Kind, _ number: UInt64) {
    encoded.append(kind.rawValue)
    withUnsafeBytes(of: number) { encoded.append(contentsOf: $0) }
  }

  func advance() throws -> Bool {
    guard position < buffer.count else { return false }
    var count: UInt64 = 0
    try withUnsafeMutableBytes(of: &count) { try read(into: $0) }
    encoded = [UInt8](repeating: 0, count: Int(count))
    try encoded.withUnsafeMutableBytes { try read(into: $0) }
    decode()
    return true
  }

  private func read(into bytes: UnsafeMutableRawBufferPointer) throws {
    guard !bytes.isEmpty else { return }
    guard try buffer.read(into: bytes, at: position) == bytes.count else {
      throw SQLiteFunctionFailure("a temporary file has lost its end")
    }
    position += bytes.count
  }

  /// Decodes the row that `append` has written.
  private func decode() {
    row.removeAll(keepingCapacity: true)
    var rest = encoded[...]
    func number() -> UInt64 {
      let bytes = rest.prefix(8)
      rest = rest.dropFirst(8)
      // Sound: exactly these bytes are copied, however they lie.
      return bytes.withUnsafeBytes { $0.loadUnaligned(as: UInt64.self) }
    }
    func bytes() -> [UInt8] {
      let count = Int(number())
      defer { rest = rest.dropFirst(count) }
      return Array(rest.prefix(count))
    }
    while let kind = rest.popFirst() {
      switch Kind(rawValue: kind) {
      case .integer: row.append(.integer(Int64(bitPattern: number())))
      case .real: row.append(.real(Double(bitPattern: number())))
      case .text: row.append(.utf8(bytes()))
      case .blob: row.append(.blob(bytes()))
      case .null, nil: row.append(.null)
      }
    }
  }

  func value(at column: Int) -> SQLiteFunctionResult { row.indices.contains(column) ? row[column] : .null }
}

extension JSONValue {
  /// A member of a document as a value of a column: plain values unchanged, lists and objects as JSON.
  var column: SQLiteFunctionResult {
    switch self {
    case .null: .null
    case .bool(let flag): .integer(flag ? 1 : 0)
    case .integer(let number): .integer(number)
    case .real(let number): .real(number)
    case .string(let text): .text(text)
    case .array, .object: .text(text())
    }
  }

  /// The members of a document as a row.
  ///
  /// - Parameter names: The names of the members, in the order of the columns.
  func row(_ names: [String]) -> [SQLiteFunctionResult] {
    guard case .object(let object) = self else { return [] }
    return names.map { object[$0]?.column ?? .null }
  }
}
