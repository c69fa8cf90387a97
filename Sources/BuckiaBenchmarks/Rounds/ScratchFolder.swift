import Foundation

/// A folder for the databases of one run, gone afterwards.
public final class ScratchFolder {
  /// Where it is.
  public let path: String
  private var files = 0

  /// Makes a folder.
  ///
  /// - Parameter parent: Where; the system's place for temporary files (`TMPDIR`) for nil.
  public convenience init(in parent: ScratchFolder? = nil) throws {
    try self.init(below: parent?.path ?? FileManager.default.temporaryDirectory.path)
  }

  /// Makes a folder in memory, where the system has a place for that, else where folders are made otherwise.
  static func inMemory() throws -> ScratchFolder {
    let memory = "/dev/shm"
    guard FileManager.default.isWritableFile(atPath: memory) else { return try ScratchFolder() }
    return try ScratchFolder(below: memory)
  }

  private init(below folder: String) throws {
    path = "\(folder)/buckia-bench-\(UUID().uuidString)"
    try FileManager.default.createDirectory(
      atPath: path, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
  }

  /// The path of a file in the folder.
  public func file(_ name: String) -> String { "\(path)/\(name)" }

  /// The path of a file that does not exist yet.
  public func newFile(_ suffix: String = ".sqlite") -> String {
    files += 1
    return file("\(files)\(suffix)")
  }

  /// A copy of a file or folder, on disk to the last byte: whoever works on it must not pay for writing it.
  public func copy(of original: String, suffix: String = ".sqlite") throws -> String {
    let copy = newFile(suffix)
    try FileManager.default.copyItem(atPath: original, toPath: copy)
    var isFolder: ObjCBool = false
    if FileManager.default.fileExists(atPath: copy, isDirectory: &isFolder), !isFolder.boolValue {
      try Self.synchronize(copy)
    }
    return copy
  }

  private static func synchronize(_ path: String) throws {
    let handle = try FileHandle(forUpdating: URL(fileURLWithPath: path))
    try handle.synchronize()
    try handle.close()
  }

  deinit {
    // Somebody else may have removed what it is in.
    guard FileManager.default.fileExists(atPath: path) else { return }
    do { try FileManager.default.removeItem(atPath: path) } catch {
      FileHandle.standardError.write(Data("left behind: \(path): \(error)\n".utf8))
    }
  }
}
