import BuckiaBytes

/// Where encrypted or decrypted bytes go.
package enum CipherTarget: Sendable {
  /// A file, which appears complete or not at all.
  case path(String, replacing: Bool)
  /// A closure that gets them piece by piece.
  case stream(@Sendable (UnsafeRawBufferPointer) throws -> Void)

  /// Writes to it.
  ///
  /// - Parameters:
  ///   - source: Where the bytes come from: a file is not more open than that.
  ///   - body: Writes everything. What it has written is taken back where it throws, and where that can be.
  /// - Returns: How many bytes there are.
  /// - Throws: What `body` throws, a `ByteStreamError`, or what the closure of a stream throws.
  func write(from source: CipherSource, _ body: (any ByteOutput) throws -> Void) throws -> Int64 {
    switch self {
    case .path(let path, let isReplacing):
      let file = try AtomicFileOutput(
        at: path, replacing: isReplacing, followingLinks: true, isPrivate: source.isPrivate)
      let counting = CountingOutput(file)
      try body(counting)
      try file.publish()
      return counting.byteCount
    case .stream(let closure):
      let output = ClosureOutput(closure)
      let counting = CountingOutput(output)
      do { try body(counting) } catch { throw output.failure ?? error }
      return counting.byteCount
    }
  }
}
