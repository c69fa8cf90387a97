import BuckiaDiffFiles
import Foundation
import SQLiteChangesets

extension RawChangeset {
  /// Writes changes as a raw changeset: complete under its name, or not at all.
  ///
  /// - Returns: How many bytes were written.
  /// - Throws: `DiffFileError` with code `alreadyExists` when something has the name and `replacing` is not set, or
  ///   `unwritable`. Nothing is left behind.
  static func write(_ changeset: ChangesetSpool, to path: String, replacing: Bool) throws -> Int {
    let temporary = URL(fileURLWithPath: path).deletingLastPathComponent()
      .appendingPathComponent(".buckia-\(UUID().uuidString).tmp").path
    let descriptor = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o644)
    guard descriptor >= 0 else { throw unwritable(path, errno) }
    defer { unlink(temporary) }
    let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
    try changeset.withBytes { bytes in
      try bytes.withUnsafeBytes { try file.write(contentsOf: Data($0)) }
    }
    try file.synchronize()
    // A link does not replace what is there; a rename does.
    let result = replacing ? rename(temporary, path) : link(temporary, path)
    guard result == 0 else {
      let number = errno
      guard number == EEXIST else { throw unwritable(path, number) }
      throw DiffFileError(.alreadyExists, "there is a file of that name already (--force replaces it)", path: path)
    }
    return changeset.count
  }

  private static func unwritable(_ path: String, _ number: Int32) -> DiffFileError {
    DiffFileError(
      .unwritable, "it cannot be written: \(String(cString: strerror(number)))", path: path, systemError: number)
  }
}
