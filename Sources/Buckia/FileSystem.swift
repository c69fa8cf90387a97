import BuckiaByteStreams

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// The few things the façade asks of the file system.
package enum FileSystem {
  /// Whether anything has this path; links are not followed.
  static func exists(_ path: String) -> Bool {
    var status = stat()
    return lstat(path, &status) == 0
  }

  /// How many bytes a file has; 0 when there is none.
  package static func byteCount(of path: String) -> Int64 {
    var status = stat()
    return lstat(path, &status) == 0 ? Int64(status.st_size) : 0
  }

  /// Whether the path is a folder, or a link to one.
  static func isFolder(_ path: String) -> Bool {
    var status = stat()
    return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
  }

  /// The names in a folder, in no order.
  static func names(in folder: String) throws(BuckiaError) -> [String] {
    guard let listing = opendir(folder) else {
      throw BuckiaError(.unreadableFolder, "the folder cannot be read: \(lastError)", path: folder)
    }
    defer { closedir(listing) }
    var names: [String] = []
    while let entry = readdir(listing) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
        // Sound: d_name ends with a NUL inside the entry, which lives until the next readdir.
        pointer.withMemoryRebound(to: CChar.self, capacity: MemoryLayout.size(ofValue: pointer.pointee)) {
          String(cString: $0)
        }
      }
      if name != ".", name != ".." { names.append(name) }
    }
    return names
  }

  /// Makes a folder and those around it; folders that are there stay as they are.
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

  /// Removes a file; one that is gone already is fine.
  ///
  /// - Returns: Why the system does not remove it; nil when it is gone.
  static func remove(_ path: String) -> String? {
    unlink(path) == 0 || errno == ENOENT ? nil : lastError
  }

  /// The path of a file in a folder, as a person would write it: plainly in the current one, without a second slash.
  static func path(of name: String, in folder: String) -> String {
    folder == "." ? name : folder.utf8.last == UInt8(ascii: "/") ? folder + name : "\(folder)/\(name)"
  }

  /// The last part of a path.
  static func name(of path: String) -> String {
    let last = path.utf8.split(separator: UInt8(ascii: "/")).last
    return last.map { String(Substring($0)) } ?? path
  }

  /// The first bytes of a file; empty when it cannot be read.
  static func beginning(of path: String, count: Int) -> [UInt8] {
    do {
      let file = try PosixFile(reading: path)
      return try [UInt8](unsafeUninitializedCapacity: count) { buffer, found in
        found = try file.readFully(into: UnsafeMutableRawBufferPointer(buffer))
      }
    } catch {
      // Whoever reads it wholly says why that cannot be done.
      return []
    }
  }

  private static var lastError: String { String(cString: strerror(errno)) }
}
