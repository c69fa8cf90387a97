import BuckiaDiff
import SQLiteFiles

/// The page digests of a table's leaves in the form of the ledger: in pieces whose ends depend on the hashes.
/// A leaf that is added or removed therefore changes one piece and leaves the others.
///
/// A digest has 24 bytes: the rowid of the leaf's first row and the two halves of the hash, big-endian. A hash of zeros
/// marks a leaf whose content is unknown.
enum LeafDigestPieces {
  private static let digestBytes = 24
  /// A piece ends after one in this many hashes on average.
  private static let usualCount: UInt64 = 64
  private static let limit = 512

  /// Divides digests into pieces.
  static func pieces(of digests: [LeafDigest]) -> [Int64: [UInt8]] {
    var pieces: [Int64: [UInt8]] = [:]
    var first: Int64?
    var bytes: [UInt8] = []
    for digest in digests {
      let start = first ?? digest.firstRowID
      first = start
      append(UInt64(bitPattern: digest.firstRowID), to: &bytes)
      append(digest.hash.high, to: &bytes)
      append(digest.hash.low, to: &bytes)
      if digest.hash.low % usualCount == 0 || bytes.count >= limit * digestBytes {
        pieces[start] = bytes
        first = nil
        bytes = []
      }
    }
    if let first { pieces[first] = bytes }
    return pieces
  }

  private static func append(_ value: UInt64, to bytes: inout [UInt8]) {
    withUnsafeBytes(of: value.bigEndian) { bytes.append(contentsOf: $0) }
  }

  /// Joins pieces.
  ///
  /// - Returns: nil if the pieces are damaged.
  static func digests(in pieces: [Int64: [UInt8]]) -> [(firstRowID: Int64, hash: PageHash?)]? {
    var digests: [(firstRowID: Int64, hash: PageHash?)] = []
    for (first, bytes) in pieces.sorted(by: { $0.key < $1.key }) {
      guard !bytes.isEmpty, bytes.count % digestBytes == 0 else { return nil }
      for place in stride(from: 0, to: bytes.count, by: digestBytes) {
        let (rowID, hash) = print(at: place, in: bytes)
        guard place > 0 || rowID == first else { return nil }
        if let last = digests.last, rowID <= last.firstRowID { return nil }
        digests.append((rowID, hash))
      }
    }
    return digests
  }

  private static func print(at place: Int, in bytes: [UInt8]) -> (Int64, PageHash?) {
    func number(_ offset: Int) -> UInt64 {
      bytes.withUnsafeBytes { UInt64(bigEndian: $0.loadUnaligned(fromByteOffset: place + offset, as: UInt64.self)) }
    }
    let hash = PageHash(high: number(8), low: number(16))
    return (Int64(bitPattern: number(0)), hash == PageHash(high: 0, low: 0) ? nil : hash)
  }

  /// Clears the hashes of the leaves on which rows are, or would be.
  ///
  /// - Parameter keys: The keys of the rows.
  static func forgetting(_ keys: Set<Int64>, in pieces: [Int64: [UInt8]]) -> [Int64: [UInt8]] {
    guard let known = digests(in: pieces), !known.isEmpty else { return [:] }
    var hashes = known.map(\.hash)
    var leaf = 0
    for key in keys.sorted() {
      while leaf + 1 < known.count, known[leaf + 1].firstRowID <= key { leaf += 1 }
      hashes[leaf] = nil
    }
    return self.pieces(
      of: zip(known, hashes).map { LeafDigest(firstRowID: $0.firstRowID, hash: $1 ?? PageHash(high: 0, low: 0)) })
  }
}

/// The page digests of the leaves of a table's key index in the form of the ledger: in pieces whose ends
/// depend on the hashes, like those of ``LeafDigestPieces``.
///
/// A piece begins with the key that follows its last leaf. Each digest has 16 bytes of hash, big-endian, and the first
/// key of its leaf. Each key has its length in four bytes before it; a length of 0 means no key.
enum KeyLeafDigestPieces {
  /// A piece ends behind one hash of so many on average.
  private static let usualCount: UInt64 = 64
  private static let limit = 512

  /// Divides digests into pieces, by the first key of each.
  static func pieces(of digests: [KeyLeafDigest]) -> [[UInt8]: [UInt8]] {
    var pieces: [[UInt8]: [UInt8]] = [:]
    var start = 0
    for (index, digest) in digests.enumerated() {
      let isLast = index + 1 == digests.count
      guard isLast || digest.hash.low % usualCount == 0 || index - start + 1 >= limit else { continue }
      var bytes: [UInt8] = []
      append(digest.span.upper, to: &bytes)
      for digest in digests[start...index] {
        withUnsafeBytes(of: (digest.hash.high.bigEndian, digest.hash.low.bigEndian)) { bytes.append(contentsOf: $0) }
        append(digest.span.lower, to: &bytes)
      }
      pieces[digests[start].span.lower ?? []] = bytes
      start = index + 1
    }
    return pieces
  }

  private static func append(_ key: [UInt8]?, to bytes: inout [UInt8]) {
    withUnsafeBytes(of: UInt32(key?.count ?? 0).bigEndian) { bytes.append(contentsOf: $0) }
    bytes.append(contentsOf: key ?? [])
  }

  /// Reads the digests of pieces. The digests of each piece are in order.
  ///
  /// - Returns: nil if they are not as they were made.
  static func digests(in pieces: [[UInt8]: [UInt8]]) -> [KeyLeafDigest]? {
    var digests: [KeyLeafDigest] = []
    for (first, bytes) in pieces {
      var rest = bytes[...]
      guard let end = takeKey(from: &rest) else { return nil }
      let start = digests.count
      var starts: [(key: [UInt8], hash: PageHash)] = []
      while !rest.isEmpty {
        guard let high = takeNumber(8, from: &rest), let low = takeNumber(8, from: &rest),
          let key = takeKey(from: &rest)
        else { return nil }
        starts.append((key, PageHash(high: high, low: low)))
      }
      for (index, (key, hash)) in starts.enumerated() {
        let next = index + 1 < starts.count ? starts[index + 1].key : end
        digests.append(
          KeyLeafDigest(span: KeySpan(from: key.isEmpty ? nil : key, to: next.isEmpty ? nil : next), hash: hash))
      }
      guard start < digests.count, digests[start].span.lower ?? [] == first else { return nil }
    }
    return digests
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
