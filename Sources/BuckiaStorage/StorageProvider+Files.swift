import BuckiaBytes

/// What must be true of a download before it gets its name.
public struct DownloadExpectation: Sendable, Equatable {
  /// The version, as a listing has it; nil for any.
  public var version: ObjectVersion?
  /// The size in bytes, as a listing has it; nil for any.
  public var byteCount: Int64?

  /// Expects nothing, unless it is said otherwise.
  public init(version: ObjectVersion? = nil, byteCount: Int64? = nil) {
    self.version = version
    self.byteCount = byteCount
  }

  /// Expects the object that a listing has.
  public init(_ object: StoredObject) { self.init(version: object.version, byteCount: object.byteCount) }
}

extension StorageProvider {
  /// Stores a file.
  ///
  /// - Parameters:
  ///   - file: The file.
  ///   - path: The object.
  ///   - condition: What must be so, see ``putChecked(_:to:_:)``.
  /// - Returns: The object.
  /// - Throws: `StorageError`.
  @discardableResult
  public func upload(
    file: String, to path: RemotePath, _ condition: PutCondition = .none
  ) async throws -> StoredObject {
    try await putChecked(StorageContents(file: file), to: path, condition)
  }

  /// Reads an object into a file, which appears complete and safely on disk, or not at all.
  ///
  /// An interrupted transfer goes on where it stopped if the storage reads ranges and names versions; else it begins anew.
  ///
  /// - Parameters:
  ///   - path: The object.
  ///   - file: The file; one of that name is replaced.
  ///   - expectation: What must be true of it.
  ///   - isPrivate: True if only its owner may read the file.
  ///   - attempts: How often to try in a row: without a single further byte, or from the beginning.
  ///   - progress: Is told how many bytes have come, whenever some have.
  /// - Returns: The object.
  /// - Throws: `StorageError`: `truncated` when it has another size than the storage says, `changed` when it is not the expected version.
  @discardableResult
  public func download(
    _ path: RemotePath, to file: String, expecting expectation: DownloadExpectation = DownloadExpectation(),
    isPrivate: Bool = false, attempts: Int = 3, progress: (@Sendable (Int64) -> Void)? = nil
  ) async throws -> StoredObject {
    var transfer = FileTransfer(path, to: file, expectation, isPrivate)
    var failures = 0
    while true {
      let before = transfer.received
      do {
        let object = try await transfer.run(on: self, progress: progress)
        return object
      } catch let error as StorageError where error.isTransient {
        let goesOn = transfer.goesOn(with: capabilities)
        // What has to begin anew each time would never end.
        failures = goesOn && transfer.received > before ? 0 : failures + 1
        guard failures < attempts else { throw error.about(path) }
        if !goesOn { transfer = FileTransfer(path, to: file, expectation, isPrivate) }
        try await Task.sleep(for: .milliseconds(100 << failures))
      } catch let error as StorageError {
        throw error.about(path)
      }
    }
  }
}

/// A file on its way from one thread to the next, one of which uses it at a time.
struct OpenOutput: @unchecked Sendable {
  let output: AtomicFileOutput
}

/// One object on its way into a file.
private struct FileTransfer {
  private let path: RemotePath
  private let file: String
  private let expectation: DownloadExpectation
  private let isPrivate: Bool
  private var output: AtomicFileOutput?
  private var object: StoredObject?
  private(set) var received: Int64 = 0

  init(_ path: RemotePath, to file: String, _ expectation: DownloadExpectation, _ isPrivate: Bool) {
    self.isPrivate = isPrivate
    self.path = path
    self.file = file
    self.expectation = expectation
  }

  /// Whether what has come is a beginning that the rest can follow.
  func goesOn(with capabilities: StorageCapabilities) -> Bool {
    received > 0 && capabilities.readsRanges && object?.version?.isStrong == true
  }

  mutating func run(
    on storage: some StorageProvider, progress: (@Sendable (Int64) -> Void)?
  ) async throws -> StoredObject {
    let version = object?.version ?? expectation.version
    let download = try await storage.get(path, GetRequest(offset: received, version: version))
    let found = download.object
    if let wanted = version, let version = found.version, version != wanted { throw StorageError.changed(path) }
    if let wanted = object?.byteCount ?? expectation.byteCount, wanted != found.byteCount {
      throw StorageError.changed(path)
    }
    object = found
    for try await chunk in download.chunks {
      guard received + Int64(chunk.count) <= found.byteCount else {
        throw StorageError(.truncated, "more than the announced \(found.byteCount) bytes came", path: path)
      }
      let (file, isPrivate) = (file, isPrivate)
      nonisolated(unsafe) let known = output
      do {
        output = try await BlockingWork.run {
          let output = try known ?? AtomicFileOutput(at: file, replacing: true, isPrivate: isPrivate)
          try output.write(chunk)
          return OpenOutput(output: output)
        }.output
      } catch let error as ByteStreamError { throw StorageError(error) }
      received += Int64(chunk.count)
      progress?(received)
    }
    guard received == found.byteCount else {
      throw StorageError(.truncated, "only \(received) of \(found.byteCount) bytes came", path: path)
    }
    do {
      let (file, isPrivate) = (file, isPrivate)
      nonisolated(unsafe) let known = output
      try await BlockingWork.run {
        try (known ?? AtomicFileOutput(at: file, replacing: true, isPrivate: isPrivate)).publish()
      }
    } catch let error as ByteStreamError { throw StorageError(error) }
    return found
  }
}
