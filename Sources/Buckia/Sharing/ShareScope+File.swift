import BuckiaBytes
import BuckiaSharing

extension ShareScope {
  /// Reads the document in a file; `Schemas/scope.md` describes it.
  ///
  /// - Parameter path: The file, of at most 1 MiB.
  /// - Throws: `BuckiaError` when it cannot be read; with `invalidScope` when it is no scope.
  public init(contentsOf path: String) throws {
    self = try BuckiaError.wrapping { try ShareScope(reading: PosixFile(reading: path), path) }
  }

  /// Reads the document that standard input gives.
  ///
  /// - Throws: As for a file.
  package static func standardInput() throws -> ShareScope {
    try BuckiaError.wrapping { try ShareScope(reading: PosixFile.standardInput(), "standard input") }
  }

  private init(reading input: any ByteInput, _ name: String) throws {
    let limit = 1 << 20
    var count = 0
    let bytes = try [UInt8](unsafeUninitializedCapacity: limit + 1) { buffer, filled in
      filled = try input.readFully(into: UnsafeMutableRawBufferPointer(buffer))
      count = filled
    }
    guard count <= limit else { throw BuckiaError(.invalidScope, "it has more than 1 MiB", path: name) }
    guard let text = String(validating: bytes, as: UTF8.self) else {
      throw BuckiaError(.invalidScope, "it is no text in UTF-8", path: name)
    }
    try self.init(json: text)
  }
}
