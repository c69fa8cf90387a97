import BuckiaBytes
import BuckiaFormat

extension Invitation {
  /// Reads an invitation and verifies its signature. Whether it has expired ``DatabaseManager/accept(_:named:answer:as:)`` looks at.
  ///
  /// - Parameter text: The line that begins with `buckia-invitation-1:`. White space in it is ignored.
  /// - Throws: `BuckiaError`: `invalidInvitation`, `badSignature`, or `unsupportedFormat` for one of a newer version.
  public init(_ text: String) throws {
    self = try BuckiaError.wrapping { try Invitation(verifying: text) }
  }

  /// Reads the invitation in a file.
  ///
  /// - Throws: As ``init(_:)``; `BuckiaError` when the file cannot be read.
  public init(contentsOf path: String) throws {
    self = try BuckiaError.wrapping {
      do {
        return try Invitation(verifying: SmallText.contents(of: PosixFile(reading: path), path))
      } catch let error as IdentityError {
        throw IdentityError(error.code, error.message, path: path)
      }
    }
  }

  /// The folder that it names, where it is one here. A relative one would be another than the author's.
  package var localFolder: String? { folder.flatMap { $0.hasPrefix("/") && FileSystem.isFolder($0) ? $0 : nil } }

  /// Writes the line into a file that nobody else can read: whoever has it can answer it.
  ///
  /// - Parameters:
  ///   - path: The file.
  ///   - replacing: Whether a file that is there already may be replaced.
  /// - Throws: `BuckiaError`: `alreadyExists`; when it cannot be written.
  public func write(to path: String, replacing: Bool = false) throws {
    try BuckiaError.wrapping {
      let file = try AtomicFileOutput(at: path, replacing: replacing, isPrivate: true)
      try file.write(Array("\(text)\n".utf8))
      try file.publish()
    }
  }
}

/// Reads a file that can only be a line of text.
enum SmallText {
  /// The text.
  ///
  /// - Throws: `IdentityError` with code `invalidInvitation` for more bytes than an invitation or an answer can have;
  ///   `ByteStreamError`.
  static func contents(of input: any ByteInput, _ path: String) throws -> String {
    let limit = Int(Invitation.textByteLimit)
    var count = 0
    let bytes = try [UInt8](unsafeUninitializedCapacity: limit + 1) { buffer, filled in
      filled = try input.readFully(into: UnsafeMutableRawBufferPointer(buffer))
      count = filled
    }
    guard count <= limit else {
      throw IdentityError(
        .invalidInvitation, "it is neither an invitation nor the answer to one: neither is that long", path: path)
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}
