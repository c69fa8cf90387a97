import BuckiaBytes

/// Bytes that are to be stored: a file, or bytes in memory. They can be read again, from any place on.
public struct StorageContents: Sendable {
  private enum Source: Sendable {
    case bytes([UInt8])
    case file(String, FileIdentity)
  }

  private let source: Source
  /// The number of bytes.
  public let byteCount: Int64
  /// The SHA-256 of the bytes in lowercase hexadecimal, if known, which saves computing it.
  public var sha256: String?
  /// True for the contents of a private file, whose copies must be private, too.
  package private(set) var isPrivate = false
  /// Called with the bytes of each full read; nil for no calls.
  private var watcher: (begin: @Sendable () -> Void, add: @Sendable ([UInt8]) -> Void)?

  /// The size of a read in bytes.
  private static let chunkBytes = 128 << 10

  /// Creates contents from bytes.
  public init(_ bytes: [UInt8], sha256: String? = nil) {
    source = .bytes(bytes)
    byteCount = Int64(bytes.count)
    self.sha256 = sha256
  }

  /// Creates contents from a file, which must not change until it is stored.
  ///
  /// - Parameters:
  ///   - path: The file. A symbolic link is refused.
  ///   - sha256: Its SHA-256 in lowercase hexadecimal, if known.
  /// - Throws: `StorageError` when it cannot be read.
  public init(file path: String, sha256: String? = nil) throws(StorageError) {
    let file: PosixFile
    do { file = try PosixFile(reading: path) } catch { throw StorageError(error) }
    guard let identity = file.identity else { throw Self.changed(path) }
    source = .file(path, identity)
    byteCount = file.initialByteCount
    self.sha256 = sha256
    do { isPrivate = try !file.isReadableByAll() } catch { throw StorageError(error) }
  }

  /// The bytes in a range, in pieces. Each reader has its own position.
  ///
  /// Iterating throws `StorageError` with `sourceChanged` when the file has changed since, or when it cannot be read.
  ///
  /// - Parameter range: The range; nil for all bytes.
  public func chunks(in range: Range<Int64>? = nil) -> ByteChunks {
    let range = (range ?? 0..<byteCount).clamped(to: 0..<byteCount)
    let chunks = unwatchedChunks(in: range)
    guard let watcher, range == 0..<byteCount else { return chunks }
    return chunks.checked {
      watcher.begin()
      return { if let chunk = $0 { watcher.add(chunk) } }
    }
  }

  private func unwatchedChunks(in range: Range<Int64>) -> ByteChunks {
    switch source {
    case .bytes(let bytes):
      return ByteChunks {
        var offset = Int(range.lowerBound)
        return {
          let end = Swift.min(offset + Self.chunkBytes, Int(range.upperBound))
          guard offset < end else { return nil }
          defer { offset = end }
          return Array(bytes[offset..<end])
        }
      }
    case .file(let path, let identity):
      return ByteChunks {
        // One thread after the other uses it.
        nonisolated(unsafe) var file: PosixFile?
        var offset = range.lowerBound
        return {
          let (start, open) = (offset, file)
          nonisolated(unsafe) let known = open
          let (found, chunk) = try await runBlocking {
            try Self.chunk(of: path, identity, known, from: start, upTo: range.upperBound)
          }
          file = found.value
          offset += Int64(chunk?.count ?? 0)
          return chunk
        }
      }
    }
  }

  /// The next bytes of a file; nil at the end.
  private static func chunk(
    of path: String, _ identity: FileIdentity, _ known: PosixFile?, from offset: Int64, upTo end: Int64
  ) throws -> (HandedOver<PosixFile>, [UInt8]?) {
    let open = try known ?? PosixFile(reading: path)
    guard open.identity == identity else { throw changed(path) }
    let count = Int(min(Int64(chunkBytes), end - offset))
    guard count > 0 else {
      // A write during the read changes the identity of the file.
      guard try PosixFile(reading: path).identity == identity else { throw changed(path) }
      return (HandedOver(open), nil)
    }
    let chunk = try [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
      initialized = try open.read(into: UnsafeMutableRawBufferPointer(buffer), at: Int(offset))
    }
    guard chunk.count == count else { throw changed(path) }
    return (HandedOver(open), chunk)
  }

  /// The same bytes, with an observer of each full read: it can digest them without an additional read.
  ///
  /// - Parameters:
  ///   - begin: Called when a read from the beginning starts.
  ///   - add: Receives the next ones.
  package func watched(
    begin: @escaping @Sendable () -> Void, add: @escaping @Sendable ([UInt8]) -> Void
  ) -> StorageContents {
    var contents = self
    contents.watcher = (begin, add)
    return contents
  }

  private static func changed(_ path: String) -> StorageError {
    StorageError(.sourceChanged, "\(path) was changed while it was being sent; nothing of it was stored")
  }
}

extension StorageError {
  /// A file here could not be read or written.
  package init(_ error: ByteStreamError) {
    let code: Code =
      switch error.code {
      case .fullDisk: .fullDisk
      case .alreadyExists: .alreadyExists
      case .unwritable: .unwritable
      default: .unreadable
      }
    self.init(code, error.description, cause: error)
  }

  /// Works with files here, whose errors become those of a storage.
  package static func wrapping<Result>(_ work: () throws -> Result) throws -> Result {
    do { return try work() } catch let error as ByteStreamError { throw StorageError(error) }
  }
}

extension StorageContents {
  /// Finds an object with these bytes, or with only the first of them: a broken upload leaves such an object on servers
  /// that write in place.
  ///
  /// - Returns: The object; nil if it has other bytes.
  /// - Throws: `StorageError` when either cannot be read.
  package func objectWithBeginning(at path: RemotePath, in storage: any StorageProvider) async throws -> StoredObject? {
    let download = try await storage.get(path, GetRequest())
    guard download.object.byteCount <= byteCount else { return nil }
    var own = chunks().makeAsyncIterator()
    var rest: ArraySlice<UInt8> = []
    for try await chunk in download.chunks {
      var chunk = chunk[...]
      while !chunk.isEmpty {
        if rest.isEmpty { rest = (try await own.next() ?? [])[...] }
        let count = min(rest.count, chunk.count)
        guard count > 0, rest.prefix(count) == chunk.prefix(count) else { return nil }
        rest = rest.dropFirst(count)
        chunk = chunk.dropFirst(count)
      }
    }
    return download.object
  }
}

/// Bytes that come one piece after the other, and are read once.
///
/// A piece is only read on demand: memory stays at one piece, whatever their number.
public struct ByteChunks: AsyncSequence, Sendable {
  /// A piece: at least one byte.
  public typealias Element = [UInt8]

  private let makeNext: @Sendable () -> Iterator.Next

  /// Creates a sequence.
  ///
  /// - Parameter makeNext: Begins an iteration, and returns a function that returns the next piece, which is never
  ///   empty, or nil at the end. The function throws `StorageError` or `CancellationError`.
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

  /// The same pieces, which are looked at on their way.
  ///
  /// - Parameter begin: Is called when reading begins, and gives what looks at each piece, and at nil at the end. An error that it throws
  ///   ends the reading.
  package func checked(
    _ begin: @escaping @Sendable () -> (_ chunk: [UInt8]?) async throws -> Void
  ) -> ByteChunks {
    ByteChunks {
      var iterator = makeAsyncIterator()
      let check = begin()
      return {
        let chunk = try await iterator.next()
        try await check(chunk)
        return chunk
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
  /// - Parameter limit: The maximum number of bytes.
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
