/// Why bytes could not be read or written.
package struct ByteStreamError: Error, Equatable, Sendable, CustomStringConvertible {
  /// What went wrong. The set is open: a layer that decompresses or decrypts has codes of its own.
  package struct Code: RawRepresentable, Hashable, Sendable {
    package let rawValue: String
    package init(rawValue: String) { self.rawValue = rawValue }

    /// The code of a system's error number, or another when that says nothing particular.
    package init(errno number: Int32, otherwise: Code) {
      self =
        switch number {
        case ENOSPC, EDQUOT: .fullDisk
        case EMFILE, ENFILE: .tooManyOpenFiles
        case ENOMEM: .outOfMemory
        case EEXIST: .alreadyExists
        default: otherwise
        }
    }
  }

  package let code: Code
  /// What could not be done or what was found instead, as in "it cannot be opened".
  package let action: String
  /// The file, when it has a name that people know.
  package var path: String?
  /// Where, in bytes from 0 of the innermost input.
  package var offset: Int64?
  /// The system's error number, when a call failed.
  package let errno: Int32?

  package init(_ code: Code, _ action: String, path: String? = nil, offset: Int64? = nil) {
    self.code = code
    self.action = action
    self.path = path
    self.offset = offset
    errno = nil
  }

  /// A system call failed.
  ///
  /// - Parameter otherwise: The code when the error number says nothing particular.
  package init(_ action: String, errno number: Int32, path: String?, otherwise: Code) {
    code = Code(errno: number, otherwise: otherwise)
    self.action = action
    self.path = path
    errno = number
  }

  /// Whether there is no file of that name, or no folder that it could be in.
  package var isMissingFile: Bool { errno == ENOENT || errno == ENOTDIR }

  /// What happened and the system's reason, without the file.
  package var message: String { errno.map { "\(action): \(String(cString: strerror($0)))" } ?? action }

  package var description: String {
    (path.map { "\($0): " } ?? "") + message + (offset.map { " (at byte \($0))" } ?? "") + (advice ?? "")
  }

  private var advice: String? {
    guard code == .fullDisk else { return nil }
    // Only temporary files have no name.
    return "; free some space" + (path == nil ? " or set TMPDIR to a larger volume" : " and try again")
  }
}

extension ByteStreamError.Code {
  /// It is a link, a folder, a pipe, a device or a socket.
  package static let notRegularFile = Self(rawValue: "notRegularFile")
  /// The system does not let us read it.
  package static let unreadable = Self(rawValue: "unreadable")
  /// The system does not let us write there.
  package static let unwritable = Self(rawValue: "unwritable")
  /// A file of that name exists.
  package static let alreadyExists = Self(rawValue: "alreadyExists")
  /// The volume or the user's quota is full.
  package static let fullDisk = Self(rawValue: "fullDisk")
  /// The process or the system has too many files open.
  package static let tooManyOpenFiles = Self(rawValue: "tooManyOpenFiles")
  /// No memory.
  package static let outOfMemory = Self(rawValue: "outOfMemory")
}
