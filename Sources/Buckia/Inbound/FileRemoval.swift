import Dispatch

/// Removes a file that was read, unless another file has taken its place since.
struct FileRemoval: Sendable {
  /// The result of the removal.
  enum Outcome: Equatable {
    /// The file was removed, by this or another process.
    case removed
    /// Another file has its place, and stays for the next time.
    case replaced
    /// It stays, for this reason.
    case failed(String)
  }

  /// The path.
  let path: String
  /// Its own name, without its folder.
  let name: String
  /// The identity of the read file.
  let identity: FileIdentity

  /// Removes the file.
  ///
  /// No system call removes a file only if it is a given one. The file is therefore renamed first, to a private name,
  /// and examined there; another file that was renamed in this way gets its name back. Whenever the process ends, each
  /// file exists under one name at least, and the next listing finds it.
  func run() -> Outcome {
    do throws(ByteStreamError) {
      guard let present = try FileIdentity.current(at: path) else { return .removed }
      guard present == identity else { return .replaced }
      guard let privateName = Self.privateName(for: name) else {
        return unlink(path) == 0 || errno == ENOENT ? .removed : .failed(lastError)
      }
      let moved = FileSystem.path(of: privateName, in: FileSystem.folder(of: path))
      guard rename(path, moved) == 0 else { return errno == ENOENT ? .removed : .failed(lastError) }
      guard let caught = try FileIdentity.current(at: moved) else { return .removed }
      guard caught == identity else {
        putBack(moved)
        return .replaced
      }
      return unlink(moved) == 0 || errno == ENOENT ? .removed : .failed(lastError)
    } catch {
      return .failed(error.message)
    }
  }

  /// Gives a file its name back, unless a third file has that name now. Then it stays under the private one.
  func putBack(_ moved: String) {
    // A link is created only if the name is free; renaming would replace.
    if link(moved, path) == 0 { unlink(moved) }
  }

  private var lastError: String { String(cString: strerror(errno)) }
}
