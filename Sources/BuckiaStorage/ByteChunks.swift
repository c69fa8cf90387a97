/// Bytes that come one piece after the other, and are read once.
///
/// Nothing is read before somebody asks for it, so memory stays at one piece however many there are.
public struct ByteChunks: AsyncSequence, Sendable {
  /// A piece: at least one byte.
  public typealias Element = [UInt8]

  private let makeNext: @Sendable () -> Iterator.Next

  /// Makes a sequence.
  ///
  /// - Parameter makeNext: Begins anew and returns what gives the next piece, which is never empty, or nil at the end. What that throws is
  ///   a `StorageError` or `CancellationError`.
  public init(_ makeNext: @escaping @Sendable () -> (() async throws -> [UInt8]?)) { self.makeNext = makeNext }

  /// All bytes in one piece.
  public init(_ bytes: [UInt8]) {
    self.init {
      var rest: [UInt8]? = bytes.isEmpty ? nil : bytes
      return {
        defer { rest = nil }
        return rest
      }
    }
  }

  /// Begins to read.
  public func makeAsyncIterator() -> Iterator { Iterator(produce: makeNext()) }

  /// Goes through the pieces.
  public struct Iterator: AsyncIteratorProtocol {
    typealias Next = () async throws -> [UInt8]?
    let produce: Next

    /// The next piece; nil at the end.
    ///
    /// - Throws: `StorageError`; `CancellationError` when the task is cancelled.
    public mutating func next() async throws -> [UInt8]? {
      try Task.checkCancellation()
      return try await produce()
    }
  }

  /// All bytes in one array.
  ///
  /// - Parameter limit: How many bytes there may be.
  /// - Throws: `StorageError` with `invalidAnswer` when there are more.
  public func bytes(upTo limit: Int) async throws -> [UInt8] {
    var bytes: [UInt8] = []
    for try await chunk in self {
      guard bytes.count + chunk.count <= limit else {
        throw StorageError(.invalidAnswer, "more than \(limit) bytes came, where a short answer was expected")
      }
      bytes += chunk
    }
    return bytes
  }
}
