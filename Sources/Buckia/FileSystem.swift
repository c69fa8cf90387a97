/// The few things the façade asks of the file system.
package enum FileSystem {
  /// The kind of a path.
  enum Kind: Equatable {
    case file
    case folder
    /// Nothing has the path.
    case nothing
    /// The system refuses to tell, with the reason. Something may exist.
    case unknown(String)
  }

  /// The kind of a path. A link to a folder counts as one, every other link as a file.
  static func kind(of path: String) -> Kind {
    var status = stat()
    guard lstat(path, &status) == 0 else { return errno == ENOENT ? .nothing : .unknown(lastError) }
    if status.st_mode & S_IFMT == S_IFLNK, stat(path, &status) != 0 { return .file }
    return status.st_mode & S_IFMT == S_IFDIR ? .folder : .file
  }

  /// True if something exists at a path, as far as the system tells; links are not followed.
  package static func exists(_ path: String) -> Bool { kind(of: path) != .nothing }

  /// The size of a file in bytes; 0 if there is none.
  package static func byteCount(of path: String) -> Int64 {
    var status = stat()
    return lstat(path, &status) == 0 ? Int64(status.st_size) : 0
  }

  /// True if the permissions of a file let everybody read it, and for a file that does not exist.
  package static func isReadableByAll(_ path: String) -> Bool {
    var status = stat()
    return stat(path, &status) != 0 || status.st_mode & 0o004 != 0
  }

  /// True if a file and its folder, where SQLite keeps the journal, may be written.
  static func isWritableDatabase(_ path: String) -> Bool {
    access(path, W_OK) == 0 && access(folder(of: PosixFile.target(ofLink: path)), W_OK) == 0
  }

  /// When a file was last written, in nanoseconds since 1970; 0 when there is none.
  static func modificationTime(of path: String) -> Int {
    var status = stat()
    guard lstat(path, &status) == 0 else { return 0 }
    #if canImport(Darwin)
      let time = status.st_mtimespec
    #else
      let time = status.st_mtim
    #endif
    return time.tv_sec * 1_000_000_000 + time.tv_nsec
  }

  /// True if two paths lead to one file, by links of either kind or because they are equal.
  static func isOneFile(_ path: String, _ other: String) -> Bool {
    var mine = stat()
    var theirs = stat()
    guard stat(path, &mine) == 0, stat(other, &theirs) == 0 else { return false }
    return mine.st_ino == theirs.st_ino && mine.st_dev == theirs.st_dev
  }

  /// True if a file has this path, or a link that leads to no folder.
  static func isFile(_ path: String) -> Bool { kind(of: path) == .file }

  /// True if the path is a folder, or a link to one.
  static func isFolder(_ path: String) -> Bool { kind(of: path) == .folder }

  /// The names in a folder, in no order.
  ///
  /// - Throws: `BuckiaError` with `unreadableFolder` when it cannot be read to its end.
  package static func names(in folder: String) throws(BuckiaError) -> [String] {
    do throws(ByteStreamError) { return try FolderNames.all(in: folder) } catch {
      throw BuckiaError(.unreadableFolder, error.message, path: folder)
    }
  }

  /// Creates a folder and its parents; existing folders stay unchanged.
  ///
  /// - Throws: `BuckiaError` with `unwritable` when one cannot be made.
  static func makeFolders(_ path: String, permissions: mode_t = 0o777) throws(BuckiaError) {
    guard !isFolder(path) else { return }
    var end = path.utf8.startIndex
    while end < path.utf8.endIndex {
      let next = path.utf8.index(after: end)
      end = path.utf8[next...].firstIndex(of: UInt8(ascii: "/")) ?? path.utf8.endIndex
      let folder = String(Substring(path.utf8[..<end]))
      guard !isFolder(folder), mkdir(folder, permissions) != 0, errno != EEXIST || !isFolder(folder) else { continue }
      throw BuckiaError(.unwritable, "the folder cannot be made: \(lastError)", path: folder)
    }
  }

  /// The path of a file in a folder, as a person would write it: plainly in the current one, without a second slash.
  static func path(of name: String, in folder: String) -> String {
    folder == "." ? name : folder.utf8.last == UInt8(ascii: "/") ? folder + name : "\(folder)/\(name)"
  }

  /// The folder that a path lies in, as a person would write it.
  package static func folder(of path: String) -> String {
    guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return "." }
    return slash == path.startIndex ? "/" : String(path[..<slash])
  }

  /// The absolute path without links; nil if it does not exist.
  package static func resolved(_ path: String) -> String? {
    guard let found = realpath(path, nil) else { return nil }
    defer { free(found) }
    return String(cString: found)
  }

  /// The last part of a path.
  package static func name(of path: String) -> String {
    let last = path.utf8.split(separator: UInt8(ascii: "/")).last
    return last.map { String(Substring($0)) } ?? path
  }

  private static var lastError: String { String(cString: strerror(errno)) }
}
