import BuckiaByteStreams

/// Bytes that are to be stored: a file, or bytes in memory. They can be read again, from any place on.
public struct StorageContents: Sendable {
  private enum Source: Sendable {
    case bytes([UInt8])
    case file(String, FileIdentity)
  }

  private let source: Source
  /// How many bytes.
  public let byteCount: Int64
  /// The SHA-256 of the bytes in lower-case hexadecimal, where it is known already: it need not be computed then.
  public var sha256: String?
  /// Sees the bytes whenever all of them are read; nil for nobody.
  private var watcher: (any ContentsWatcher)?

  /// How many bytes are read at once.
  private static let chunkBytes = 128 << 10

  /// Takes bytes.
  public init(_ bytes: [UInt8], sha256: String? = nil) {
    source = .bytes(bytes)
    byteCount = Int64(bytes.count)
    self.sha256 = sha256
  }

  /// Takes a file, which must stay as it is until it is stored.
  ///
  /// - Parameters:
  ///   - path: The file. A symbolic link is refused.
  ///   - sha256: Its SHA-256 in lower-case hexadecimal, where it is known.
  /// - Throws: `StorageError` when it cannot be read.
  public init(file path: String, sha256: String? = nil) throws(StorageError) {
    let file: PosixFile
    do { file = try PosixFile(reading: path) } catch { throw StorageError(error) }
    guard let identity = file.identity else { throw Self.changed(path) }
    source = .file(path, identity)
    byteCount = file.initialByteCount
    self.sha256 = sha256
  }

  /// The bytes in a range, in pieces. Each reader has its own position.
  ///
  /// What they throw: `StorageError` with `sourceChanged` when the file has been changed since, or when it cannot be read.
  ///
  /// - Parameter range: Which bytes; nil for all.
  public func chunks(in range: Range<Int64>? = nil) -> ByteChunks {
    let range = (range ?? 0..<byteCount).clamped(to: 0..<byteCount)
    let chunks = unwatchedChunks(in: range)
    guard let watcher, range == 0..<byteCount else { return chunks }
    return ByteChunks {
      var iterator = chunks.makeAsyncIterator()
      watcher.begin()
      return {
        let chunk = try await iterator.next()
        if let chunk { watcher.add(chunk) }
        return chunk
      }
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
        var file: PosixFile?
        var offset = range.lowerBound
        return {
          do {
            let open = try file ?? PosixFile(reading: path)
            file = open
            guard open.identity == identity else { throw Self.changed(path) }
            let count = Int(Swift.min(Int64(Self.chunkBytes), range.upperBound - offset))
            guard count > 0 else {
              // What was written while it was read shows in the file of that name now.
              let present = try PosixFile(reading: path)
              guard present.identity == identity else { throw Self.changed(path) }
              return nil
            }
            let chunk = try [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
              initialized = try open.read(into: UnsafeMutableRawBufferPointer(buffer), at: Int(offset))
            }
            guard chunk.count == count else { throw Self.changed(path) }
            offset += Int64(count)
            return chunk
          } catch let error as ByteStreamError {
            throw StorageError(error)
          }
        }
      }
    }
  }

  /// The same bytes, which somebody sees when all of them are read, once or several times: so they need not be read for that alone.
  package func watched(by watcher: any ContentsWatcher) -> StorageContents {
    var contents = self
    contents.watcher = watcher
    return contents
  }

  private static func changed(_ path: String) -> StorageError {
    StorageError(.sourceChanged, "\(path) was changed while it was being sent; nothing of it was stored")
  }
}

/// Sees the bytes of contents while they are read.
package protocol ContentsWatcher: Sendable {
  /// They are read from the beginning on.
  func begin()
  /// The next ones.
  func add(_ chunk: [UInt8])
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
}
