/// Where a new file goes.
public enum DiffOutput: Sendable {
  /// Into this folder, named by its id. The folder is made when it is missing.
  case folder(String)
  /// Under this exact name. With `replacing`, it replaces an existing file.
  case file(String, replacing: Bool)
  /// To a closure, piece by piece, such as one that writes to a pipe or a socket. It is called when all is known to be well.
  case stream(@Sendable (UnsafeRawBufferPointer) throws -> Void)

  /// Where a path leads that a person has typed.
  ///
  /// A folder that exists is meant as one. A path that ends in `.bdiff`, `.bdiff.age` or `.changeset`, or that names an existing
  /// file, is the file itself. Any other path is a folder, which is made when there is something to write.
  ///
  /// ```swift
  /// let report = try database.createDatabaseDiff(since: "before.sqlite", output: .path("outbox"))
  /// ```
  ///
  /// - Parameters:
  ///   - path: The path.
  ///   - replacing: True if a file that is there already may be replaced.
  public static func path(_ path: String, replacing: Bool = false) -> DiffOutput {
    var folder = path.utf8[...]
    while folder.count > 1, folder.last == UInt8(ascii: "/") { folder.removeLast() }
    let isMeantAsFolder = folder.count < path.utf8.count || FileSystem.isFolder(path)
    let isFile = DiffFileName.suffixes.contains { path.utf8.ends(with: $0.utf8) } || FileSystem.isFile(path)
    return isMeantAsFolder || !isFile ? .folder(String(Substring(folder))) : .file(path, replacing: replacing)
  }
}

extension DiffOutput {
  /// The one file that an output is, once its id is known; also where encrypted or decrypted bytes go.
  package enum File: Sendable {
    /// A file, which appears complete or not at all.
    case path(String, replacing: Bool)
    /// A closure that gets the bytes piece by piece.
    case stream(@Sendable (UnsafeRawBufferPointer) throws -> Void)

    /// Where the file is; nil for a stream.
    var path: String? { if case .path(let path, _) = self { path } else { nil } }
  }

  /// The file. A folder is made when it is missing.
  ///
  /// - Parameters:
  ///   - name: The name of the file in a folder.
  ///   - part: Which of the files of one diff it is: all have the same name, so those behind the first are in folders of their own.
  /// - Throws: `BuckiaError` when the folder cannot be made.
  func file(named name: String, part: Int = 1) throws(BuckiaError) -> File {
    switch self {
    case .folder(let parent):
      let folder = part == 1 ? parent : FileSystem.path(of: "group-\(part)", in: parent)
      try FileSystem.makeFolders(folder)
      return .path(FileSystem.path(of: name, in: folder), replacing: false)
    case .file(let path, let replacing): return .path(path, replacing: replacing)
    case .stream(let body): return .stream(body)
    }
  }
}

extension DiffFileWriter {
  /// Writes a diff file where an output says.
  ///
  /// - Returns: The size of the file in bytes.
  /// - Throws: `DiffFileError`; whatever a stream throws.
  func write(_ draft: DiffFileDraft, changeset: TemporaryBuffer, to file: DiffOutput.File) throws -> Int64 {
    switch file {
    case .path(let path, let replacing):
      var writer = self
      writer.replacesExisting = replacing
      return try writer.write(draft, changeset: changeset, to: path).bytes
    case .stream(let body):
      // Gathered first: what a stream has got cannot be taken back.
      let gathered = TemporaryBuffer()
      let written = try write(draft, changeset: changeset, to: gathered)
      try gathered.forEachPiece { try body($0) }
      return written.bytes
    }
  }
}

extension Collection where Element: Equatable {
  /// True if the collection ends with these elements.
  fileprivate func ends(with end: some Collection<Element>) -> Bool { suffix(end.count).elementsEqual(end) }
}

extension DiffOutput.File {
  /// Writes a raw changeset.
  ///
  /// - Returns: Its size in bytes.
  /// - Throws: `ByteStreamError`; whatever a stream throws.
  func write(raw changeset: TemporaryBuffer, isPrivate: Bool) throws -> Int64 {
    switch self {
    case .path(let path, let replacing):
      return try RawChangeset.write(changeset, to: path, replacing: replacing, isPrivate: isPrivate)
    case .stream(let body):
      try changeset.forEachPiece { try body($0) }
      return Int64(changeset.count)
    }
  }

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
  /// True if a file has the very same bytes.
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
