import BuckiaBytes

/// Hands bytes to a closure, and keeps what it throws.
final class ClosureOutput: ByteOutput {
  private let body: (UnsafeRawBufferPointer) throws -> Void
  /// What the closure has thrown.
  private(set) var failure: (any Error)?

  init(_ body: @escaping (UnsafeRawBufferPointer) throws -> Void) { self.body = body }

  func write(_ bytes: UnsafeRawBufferPointer) throws(ByteStreamError) {
    do { try body(bytes) } catch {
      failure = error
      throw ByteStreamError(.unwritable, "it cannot be written: \(error)")
    }
  }
}
