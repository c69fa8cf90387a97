/// Writes a page while its contents are being read: it is never held whole.
package final class PageWriter {
  private let output: (UnsafeRawBufferPointer) throws -> Void
  private var pending: [UInt8] = []
  /// How many bytes are gathered before they are handed on.
  private static let pieceBytes = 64 << 10

  /// How many bytes have been written.
  package private(set) var byteCount: Int64 = 0

  /// - Parameter output: Takes the bytes, piece by piece.
  package init(_ output: @escaping (UnsafeRawBufferPointer) throws -> Void) { self.output = output }

  /// Writes markup.
  ///
  /// - Throws: What the output throws.
  package func write(_ markup: Markup) throws {
    byteCount += Int64(markup.utf8.count)
    pending.append(contentsOf: markup.utf8)
    if pending.count >= Self.pieceBytes { try flush() }
  }

  /// Hands on everything that was written.
  ///
  /// - Throws: What the output throws.
  package func flush() throws {
    try pending.withUnsafeBytes { try output($0) }
    pending.removeAll(keepingCapacity: true)
  }
}
