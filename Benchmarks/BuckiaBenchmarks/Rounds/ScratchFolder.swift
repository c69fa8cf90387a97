import BuckiaBytes

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A folder for temporary databases, removed when this is deinitialized.
package final class ScratchFolder {
  /// Where it is.
  package let path: String
  private var files = 0

  /// Makes a folder.
  ///
  /// - Parameter parent: The folder around it; for nil the system's temporary folder (`TMPDIR`).
  package convenience init(in parent: ScratchFolder? = nil) throws {
    try self.init(below: parent?.path ?? FileManager.default.temporaryDirectory.path)
  }

  /// Makes a folder in memory if the system has `/dev/shm`, else in the temporary folder.
  ///
  /// - Parameter byteCount: How much room in memory there has to be for it.
  package static func inMemory(roomFor byteCount: Int = 0) throws -> ScratchFolder {
    let memory = "/dev/shm"
    guard FileManager.default.isWritableFile(atPath: memory), freeBytes(of: memory) >= byteCount else {
      return try ScratchFolder()
    }
    return try ScratchFolder(below: memory)
  }

  /// How much room is left on the file system of a folder, in bytes; 0 where the system does not tell.
  private static func freeBytes(of folder: String) -> Int {
    var status = statvfs()
    guard statvfs(folder, &status) == 0 else { return 0 }
    let (bytes, isOverflow) = UInt64(status.f_bavail).multipliedReportingOverflow(by: UInt64(status.f_frsize))
    return isOverflow ? .max : Int(clamping: bytes)
  }

  private init(below folder: String) throws {
    path = "\(folder)/buckia-bench-\(UUID().uuidString)"
    try FileManager.default.createDirectory(
      atPath: path, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
  }

  /// The path of a file in the folder.
  package func file(_ name: String) -> String { "\(path)/\(name)" }

  /// The path of a file that does not exist yet.
  package func newFile(_ suffix: String = ".sqlite") -> String {
    files += 1
    return file("\(files)\(suffix)")
  }

  /// Copies a file or folder and synchronizes it with the disk, so that the cost is not part of a later measurement.
  package func copy(of original: String, suffix: String = ".sqlite") throws -> String {
    let copy = newFile(suffix)
    try FileManager.default.copyItem(atPath: original, toPath: copy)
    try Self.synchronize(copy)
    return copy
  }

  /// Waits until a file is on disk; a folder is left to the system.
  private static func synchronize(_ path: String) throws {
    var status = stat()
    guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return }
    let file = open(path, O_RDWR | O_CLOEXEC)
    guard file >= 0 else { throw CocoaError(.fileReadUnknown) }
    defer { close(file) }
    guard fsync(file) == 0 else { throw CocoaError(.fileWriteUnknown) }
  }

  deinit {
    // It is gone already when its parent was removed first.
    guard FileManager.default.fileExists(atPath: path) else { return }
    do { try FileManager.default.removeItem(atPath: path) } catch {
      let message = Array("left behind: \(path): \(error)\n".utf8)
      _ = write(STDERR_FILENO, message, message.count)
    }
  }
}
