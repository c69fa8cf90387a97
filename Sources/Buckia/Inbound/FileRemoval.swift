import BuckiaBytes
import BuckiaFormat
import BuckiaLedger
import Dispatch

/// Removes a file that has been read, if it is still that file: whoever delivers files may have put another in its place.
struct FileRemoval: Sendable {
  /// What became of the file.
  enum Outcome: Equatable {
    /// It is gone, by us or by another process.
    case removed
    /// Another file has its place, and stays for the next time.
    case replaced
    /// It stays, for this reason.
    case failed(String)
  }

  /// Where it is.
  let path: String
  /// Its own name, without its folder.
  let name: String
  /// Which file was read.
  let identity: FileIdentity

  /// Removes the file.
  ///
  /// No call removes a file only if it is a certain one. So it is renamed first, to a name that nobody else uses, and looked
  /// at there; another file that has been caught in this way gets its name back. Whenever the process ends, each file is there
  /// under one name at least, and the next listing finds it.
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

  /// Gives a file its name back, unless a third one has it by now: then it waits under the private one.
  func putBack(_ moved: String) {
    // A second name is made only where the name is free; renaming would replace.
    if link(moved, path) == 0 { unlink(moved) }
  }

  private var lastError: String { String(cString: strerror(errno)) }
}
