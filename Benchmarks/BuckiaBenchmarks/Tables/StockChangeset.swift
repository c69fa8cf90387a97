/// A changeset that SQLite's call can take without a copy, which would otherwise be timed.
final class StockChangeset {
  /// The bytes.
  var bytes: [UInt8]

  /// Takes the bytes.
  init(_ bytes: [UInt8]) {
    self.bytes = bytes
    // The first mutable access copies an array that is shared: force that copy now, outside the timing.
    self.bytes.withUnsafeMutableBytes { _ in }
  }

  /// How many bytes it has.
  var count: Int { bytes.count }
}
