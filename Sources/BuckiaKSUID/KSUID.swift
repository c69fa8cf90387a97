/// A K-sortable unique id: four bytes of seconds since 1400000000 and sixteen random ones.
///
/// Ids name diff files and order them. The order of ids, of their ``bytes`` and of their text is one and the same,
/// so a sorted folder listing is a sorted list of ids. The format is that of
/// [segmentio/ksuid](https://github.com/segmentio/ksuid).
///
/// ```swift
/// let id = try KSUID(parsing: "0ujtsYcgvSTl8PAuAdqWYSMnLOv")
/// print(id.unixSeconds)  // 1507608047
/// ```
public struct KSUID: Hashable, Sendable {
  /// Seconds since ``epoch``.
  public let timestamp: UInt32
  /// The random part, first half.
  public let payloadHigh: UInt64
  /// The random part, second half.
  public let payloadLow: UInt64

  /// The second at which timestamps start, in Unix time: 13 May 2014, 16:53:20 UTC.
  public static let epoch: Int64 = 1_400_000_000
  /// How many bytes an id has.
  public static let byteCount = 20
  /// How many characters the text of an id has.
  public static let textLength = 27
  /// The smallest id: all bits zero.
  public static let minimum = KSUID(timestamp: 0, payloadHigh: 0, payloadLow: 0)
  /// The greatest id: all bits one, `aWgEPTl1tmebfsQzFP4bxwgy80V` as text.
  public static let maximum = KSUID(timestamp: .max, payloadHigh: .max, payloadLow: .max)

  /// Makes an id from its parts.
  ///
  /// - Parameters:
  ///   - timestamp: Seconds since ``epoch``.
  ///   - payloadHigh: The first eight random bytes, big-endian.
  ///   - payloadLow: The last eight random bytes, big-endian.
  public init(timestamp: UInt32, payloadHigh: UInt64, payloadLow: UInt64) {
    self.timestamp = timestamp
    self.payloadHigh = payloadHigh
    self.payloadLow = payloadLow
  }

  /// The moment of the id in seconds of Unix time.
  public var unixSeconds: Int64 { Self.epoch + Int64(timestamp) }
}

extension KSUID: Comparable {
  /// Orders ids by time, then by payload: the order of their bytes and of their text.
  public static func < (one: KSUID, other: KSUID) -> Bool {
    (one.timestamp, one.payloadHigh, one.payloadLow) < (other.timestamp, other.payloadHigh, other.payloadLow)
  }
}

// MARK: Bytes

extension KSUID {
  /// Reads an id from its 20 bytes: timestamp, then payload, both big-endian.
  ///
  /// - Throws: `KSUIDError` with code `wrongByteCount` for any other number of bytes.
  public init(bytes: [UInt8]) throws(KSUIDError) {
    guard bytes.count == Self.byteCount else {
      throw KSUIDError(.wrongByteCount, text: "\(bytes.count)")
    }
    func number(_ range: Range<Int>) -> UInt64 { bytes[range].reduce(0) { $0 << 8 | UInt64($1) } }
    self.init(
      timestamp: UInt32(truncatingIfNeeded: number(0..<4)),
      payloadHigh: number(4..<12), payloadLow: number(12..<20))
  }

  /// The id as 20 bytes: timestamp, then payload, both big-endian.
  public var bytes: [UInt8] {
    func bigEndian(_ number: some FixedWidthInteger) -> [UInt8] {
      withUnsafeBytes(of: number.bigEndian) { Array($0) }
    }
    return bigEndian(timestamp) + bigEndian(payloadHigh) + bigEndian(payloadLow)
  }
}
