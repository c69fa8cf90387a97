/// A K-sortable unique identifier: a timestamp of 4 bytes and a random payload of 16 bytes.
///
/// Ids name diff files and order them. Ids, their ``bytes`` and their text sort in the same order, so a sorted folder
/// listing is a sorted list of ids. The format is that of [segmentio/ksuid](https://github.com/segmentio/ksuid).
///
/// ```swift
/// let id = try KSUID(parsing: "0ujtsYcgvSTl8PAuAdqWYSMnLOv")
/// print(id.unixSeconds)  // 1507608047
/// ```
public struct KSUID: Hashable, Sendable {
  /// Seconds since ``epoch``.
  public let timestamp: UInt32
  /// The first 8 bytes of the payload, big-endian.
  public let payloadHigh: UInt64
  /// The last 8 bytes of the payload, big-endian.
  public let payloadLow: UInt64

  /// The start of timestamps in seconds of Unix time: 13 May 2014, 16:53:20 UTC.
  public static let epoch: Int64 = 1_400_000_000
  /// The size of an id in bytes.
  public static let byteCount = 20
  /// The length of the text of an id in characters.
  public static let textLength = 27
  /// The smallest id: all bits are zero.
  public static let minimum = KSUID(timestamp: 0, payloadHigh: 0, payloadLow: 0)
  /// The greatest id: all bits are one. Its text is `aWgEPTl1tmebfsQzFP4bxwgy80V`.
  public static let maximum = KSUID(timestamp: .max, payloadHigh: .max, payloadLow: .max)

  /// Creates an id from its parts.
  ///
  /// - Parameters:
  ///   - timestamp: Seconds since ``epoch``.
  ///   - payloadHigh: The first 8 bytes of the payload, big-endian.
  ///   - payloadLow: The last 8 bytes of the payload, big-endian.
  public init(timestamp: UInt32, payloadHigh: UInt64, payloadLow: UInt64) {
    self.timestamp = timestamp
    self.payloadHigh = payloadHigh
    self.payloadLow = payloadLow
  }

  /// The time of the id in seconds of Unix time.
  public var unixSeconds: Int64 { Self.epoch + Int64(timestamp) }
}

extension KSUID: Comparable {
  /// Whether an id sorts before another: by timestamp, then by payload.
  public static func < (one: KSUID, other: KSUID) -> Bool {
    (one.timestamp, one.payloadHigh, one.payloadLow) < (other.timestamp, other.payloadHigh, other.payloadLow)
  }
}

// MARK: Bytes

extension KSUID {
  /// Reads an id from 20 bytes: the timestamp, then the payload, both big-endian.
  ///
  /// - Parameter bytes: The bytes, exactly ``byteCount`` of them.
  /// - Throws: `KSUIDError` with `wrongByteCount`.
  public init(bytes: [UInt8]) throws(KSUIDError) {
    guard bytes.count == Self.byteCount else {
      throw KSUIDError(.wrongByteCount, text: "\(bytes.count)")
    }
    func number(_ range: Range<Int>) -> UInt64 { bytes[range].reduce(0) { $0 << 8 | UInt64($1) } }
    self.init(
      timestamp: UInt32(truncatingIfNeeded: number(0..<4)),
      payloadHigh: number(4..<12), payloadLow: number(12..<20))
  }

  /// The id as 20 bytes: the timestamp, then the payload, both big-endian.
  public var bytes: [UInt8] {
    func bigEndian(_ number: some FixedWidthInteger) -> [UInt8] {
      withUnsafeBytes(of: number.bigEndian) { Array($0) }
    }
    return bigEndian(timestamp) + bigEndian(payloadHigh) + bigEndian(payloadLow)
  }
}

extension KSUID: Codable {
  /// Reads the text.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    guard let id = KSUID(try container.decode(String.self)) else {
      throw DecodingError.dataCorruptedError(in: container, debugDescription: "it is no KSUID")
    }
    self = id
  }

  /// Writes the text.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(description)
  }
}
