import SQLiteFiles

/// The prints of a table's leaves as the ledger keeps them: in pieces that end where a hash says so, so that a leaf more or less
/// changes one piece and leaves the others.
///
/// A print has 24 bytes: the rowid of the leaf's first row and the two halves of the hash, big-endian. A hash of zeros is that of a leaf
/// of which nothing is known.
enum PrintPieces {
  private static let printBytes = 24
  /// A piece ends behind one hash of so many on average.
  private static let usualCount: UInt64 = 64
  private static let limit = 512

  /// Divides prints into pieces.
  static func pieces(of prints: [LeafPrint]) -> [Int64: [UInt8]] {
    var pieces: [Int64: [UInt8]] = [:]
    var first: Int64?
    var bytes: [UInt8] = []
    for print in prints {
      let start = first ?? print.firstRowID
      first = start
      append(UInt64(bitPattern: print.firstRowID), to: &bytes)
      append(print.hash.high, to: &bytes)
      append(print.hash.low, to: &bytes)
      if print.hash.low % usualCount == 0 || bytes.count >= limit * printBytes {
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

  /// Puts pieces together again.
  ///
  /// - Returns: nil where they are not as they were made.
  static func prints(in pieces: [Int64: [UInt8]]) -> [(firstRowID: Int64, hash: PageHash?)]? {
    var prints: [(firstRowID: Int64, hash: PageHash?)] = []
    for (first, bytes) in pieces.sorted(by: { $0.key < $1.key }) {
      guard !bytes.isEmpty, bytes.count % printBytes == 0 else { return nil }
      for place in stride(from: 0, to: bytes.count, by: printBytes) {
        let (rowID, hash) = print(at: place, in: bytes)
        guard place > 0 || rowID == first else { return nil }
        if let last = prints.last, rowID <= last.firstRowID { return nil }
        prints.append((rowID, hash))
      }
    }
    return prints
  }

  private static func print(at place: Int, in bytes: [UInt8]) -> (Int64, PageHash?) {
    func number(_ offset: Int) -> UInt64 {
      bytes.withUnsafeBytes { UInt64(bigEndian: $0.loadUnaligned(fromByteOffset: place + offset, as: UInt64.self)) }
    }
    let hash = PageHash(high: number(8), low: number(16))
    return (Int64(bitPattern: number(0)), hash == PageHash(high: 0, low: 0) ? nil : hash)
  }

  /// Forgets the hashes of the leaves that rows are on, or would be.
  ///
  /// - Parameter keys: The keys of the rows.
  static func forgetting(_ keys: Set<Int64>, in pieces: [Int64: [UInt8]]) -> [Int64: [UInt8]] {
    guard let known = prints(in: pieces), !known.isEmpty else { return [:] }
    var hashes = known.map(\.hash)
    var leaf = 0
    for key in keys.sorted() {
      while leaf + 1 < known.count, known[leaf + 1].firstRowID <= key { leaf += 1 }
      hashes[leaf] = nil
    }
    return self.pieces(
      of: zip(known, hashes).map { LeafPrint(firstRowID: $0.firstRowID, hash: $1 ?? PageHash(high: 0, low: 0)) })
  }
}
