/// A K-sortable unique id: four bytes of seconds since 1400000000 and sixteen random ones.
public struct KSUID: Hashable, Sendable {
  /// Seconds since 1400000000.
  public let timestamp: UInt32
  /// The random part, first half.
  public let payloadHigh: UInt64
  /// The random part, second half.
  public let payloadLow: UInt64
}
