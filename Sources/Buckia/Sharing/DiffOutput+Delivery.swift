import BuckiaBytes

extension DiffOutput.File {
  /// Writes a file that is complete. One that is there already with the same bytes is the same delivery: a crash may have come
  /// between the two notes of it.
  ///
  /// - Parameters:
  ///   - contents: The bytes.
  ///   - database: What they were made from: a file is not more open than that.
  /// - Throws: `ByteStreamError` with `alreadyExists` when there is another file; whatever a stream throws.
  func write(_ contents: TemporaryBuffer, madeFrom database: String) throws {
    switch self {
    case .stream(let body): try contents.forEachPiece { try body($0) }
    case .path(let path, let replacing):
      if !replacing, FileSystem.isFile(path), try contents.isEqual(toFile: path) { return }
      let file = try AtomicFileOutput(
        at: path, replacing: replacing, isPrivate: !FileSystem.isReadableByAll(database))
      try contents.forEachPiece { try file.write($0) }
      try file.publish()
    }
  }
}

extension TemporaryBuffer {
  /// Whether a file has the very same bytes.
  fileprivate func isEqual(toFile path: String) throws -> Bool {
    let file = try PosixFile(reading: path)
    guard file.initialByteCount == Int64(count) else { return false }
    var isEqual = true
    try forEachPiece { piece in
      guard isEqual else { return }
      let found = try [UInt8](unsafeUninitializedCapacity: piece.count) { buffer, count in
        count = try file.readFully(into: UnsafeMutableRawBufferPointer(buffer))
      }
      isEqual = piece.elementsEqual(found)
    }
    return isEqual
  }
}
