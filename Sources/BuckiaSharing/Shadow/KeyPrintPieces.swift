import BuckiaDiff
import SQLiteFiles

/// The prints of the leaves by which the rows of a table are found by their key, as the ledger keeps them: in pieces that end where a hash
/// says so, as ``PrintPieces`` do.
///
/// A piece begins with the key that follows its last leaf. Each print has 16 bytes of hash, big-endian, and the first key of its leaf. Keys have
/// their length in four bytes before them; an empty one is no key.
enum KeyPrintPieces {
  /// A piece ends behind one hash of so many on average.
  private static let usualCount: UInt64 = 64
  private static let limit = 512

  /// Divides prints into pieces, by the first key of each.
  static func pieces(of prints: [KeyPrint]) -> [[UInt8]: [UInt8]] {
    var pieces: [[UInt8]: [UInt8]] = [:]
    var start = 0
    for (index, print) in prints.enumerated() {
      let isLast = index + 1 == prints.count
      guard isLast || print.hash.low % usualCount == 0 || index - start + 1 >= limit else { continue }
      var bytes: [UInt8] = []
      append(print.span.upper, to: &bytes)
      for print in prints[start...index] {
        withUnsafeBytes(of: (print.hash.high.bigEndian, print.hash.low.bigEndian)) { bytes.append(contentsOf: $0) }
        append(print.span.lower, to: &bytes)
      }
      pieces[prints[start].span.lower ?? []] = bytes
      start = index + 1
    }
    return pieces
  }

  private static func append(_ key: [UInt8]?, to bytes: inout [UInt8]) {
    withUnsafeBytes(of: UInt32(key?.count ?? 0).bigEndian) { bytes.append(contentsOf: $0) }
    bytes.append(contentsOf: key ?? [])
  }

  /// The prints of pieces, those of a piece in their order.
  ///
  /// - Returns: nil where they are not as they were made.
  static func prints(in pieces: [[UInt8]: [UInt8]]) -> [KeyPrint]? {
    var prints: [KeyPrint] = []
    for (first, bytes) in pieces {
      var rest = bytes[...]
      guard let end = takeKey(from: &rest) else { return nil }
      let start = prints.count
      var starts: [(key: [UInt8], hash: PageHash)] = []
      while !rest.isEmpty {
        guard let high = takeNumber(8, from: &rest), let low = takeNumber(8, from: &rest),
          let key = takeKey(from: &rest)
        else { return nil }
        starts.append((key, PageHash(high: high, low: low)))
      }
      for (index, (key, hash)) in starts.enumerated() {
        let next = index + 1 < starts.count ? starts[index + 1].key : end
        prints.append(
          KeyPrint(span: KeySpan(from: key.isEmpty ? nil : key, to: next.isEmpty ? nil : next), hash: hash))
      }
      guard start < prints.count, prints[start].span.lower ?? [] == first else { return nil }
    }
    return prints
  }

  private static func takeNumber(_ count: Int, from bytes: inout ArraySlice<UInt8>) -> UInt64? {
    guard bytes.count >= count else { return nil }
    defer { bytes = bytes.dropFirst(count) }
    return bytes.prefix(count).reduce(0) { $0 << 8 | UInt64($1) }
  }

  private static func takeKey(from bytes: inout ArraySlice<UInt8>) -> [UInt8]? {
    guard let count = takeNumber(4, from: &bytes), bytes.count >= count else { return nil }
    defer { bytes = bytes.dropFirst(Int(count)) }
    return Array(bytes.prefix(Int(count)))
  }
}
