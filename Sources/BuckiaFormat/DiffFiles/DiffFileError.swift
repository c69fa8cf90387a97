import BuckiaBytes
import SQLiteChangesets
import SQLiteSchemas

/// Why a diff file, or a raw changeset, could not be read or written.
///
/// ``code`` is stable, for programs and ledgers; ``description`` is a sentence with the file, the place and the remedy.
package struct DiffFileError: Error, Equatable, Sendable, CustomStringConvertible {
  /// What went wrong. The set is open: new codes may come, existing ones keep their text.
  package struct Code: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    /// The stable text of the code.
    package let rawValue: String
    /// Creates a code from its text.
    package init(rawValue: String) { self.rawValue = rawValue }
    /// The same code here as below: their texts are one set.
    init(_ code: ByteStreamError.Code) { rawValue = code.rawValue }
    /// The stable text of the code.
    package var description: String { rawValue }
  }

  /// What went wrong.
  package let code: Code
  /// The file, when known.
  package var path: String?
  /// The member inside the file, such as `manifest.json`, when it is about one.
  package var member: String?
  /// The table's name in the file, not escaped.
  package var table: String?
  /// The position in bytes from 0: in the member if there is one, else in the unpacked archive or in the file.
  package var offset: Int?
  /// True if `message` contains the offset already.
  var hasOffsetInMessage = false
  /// The system's error number, when a call failed.
  package var systemError: Int32?
  /// True if the file could be read as far as its signature.
  package var isSignerKnown = false
  /// The signer, if it is signed.
  package var signer: SigningKey?
  /// What happened, without file and advice.
  package let message: String

  /// Creates an error.
  package init(
    _ code: Code, _ message: String, path: String? = nil, member: String? = nil, table: String? = nil,
    offset: Int? = nil, systemError: Int32? = nil
  ) {
    self.code = code
    self.message = message
    self.path = path
    self.member = member
    self.table = table
    self.offset = offset
    self.systemError = systemError
  }

  /// True if the machine may be the cause, and not the file. Ledgers do not record it, since a later attempt may
  /// succeed.
  package var isTransient: Bool {
    [.fullDisk, .tooManyOpenFiles, .outOfMemory, .unreadable, .unwritable].contains(code)
  }

  /// True if only the machine is the cause, and only for now: the same file may be read later. A full disk does not
  /// count, since a file can require more space than there is each time.
  package var isPassing: Bool {
    switch code {
    case .tooManyOpenFiles, .outOfMemory: true
    case .unreadable: systemError == EIO || systemError == ESTALE || systemError == ETIMEDOUT
    default: false
    }
  }

  /// The file, the place, the error and the remedy.
  package var description: String {
    var text = path.map { EscapedText.line($0) + ": " } ?? ""
    if let member { text += EscapedText.line(member) + ": " }
    text += message
    if let offset, !hasOffsetInMessage { text += " (at byte \(offset))" }
    if let advice { text += "; \(advice)" }
    return text
  }

  /// The same error with its file named, unless it already names one.
  func naming(path: String) -> DiffFileError {
    var error = self
    error.path = error.path ?? path
    return error
  }

  private var advice: String? {
    switch code {
    case .truncated, .notZstd, .badZstd, .trailingData, .badTarHeader, .badTarPadding, .badJSON, .digestMismatch:
      "the file is damaged or was not made by Buckia; fetch it again"
    case .unsupportedFormat: "update Buckia to read it"
    case .idMismatch: "give the file its own name back"
    case .badSignature: "do not trust it; ask its sender to send it again"
    case .fullDisk: "free some space and try again"
    case .tooManyOpenFiles, .outOfMemory: "close other programs and try again"
    case .tooLarge: "ask its sender whether this is meant"
    case .overLimit: "if its sender means it, let it through by applying it by its path"
    case .unreadable, .unwritable: "check the path and its permissions"
    case .badManifest, .badSchema, .badAnnotations, .badChangeset, .badName, .contradiction:
      "nothing of it was used; its sender's program has to make it again"
    default: nil
    }
  }
}

extension DiffFileError.Code {
  /// The file ends too early.
  package static let truncated = Self(rawValue: "truncated")
  /// The file is no zstd frame.
  package static let notZstd = Self(rawValue: "notZstd")
  /// The zstd frame is damaged, or breaks the rules of the format (no dictionary, a checksum, a window of at most 8
  /// MiB).
  package static let badZstd = Self(rawValue: "badZstd")
  /// Bytes follow the end.
  package static let trailingData = Self(rawValue: "trailingData")
  /// It is larger than the limits allow, or unpacks to improbably much.
  package static let tooLarge = Self(rawValue: "tooLarge")
  /// It is larger than the limit for files that no person has approved.
  package static let overLimit = Self(rawValue: "overLimit")
  /// A tar header is not the one we would write for the member that belongs there.
  package static let badTarHeader = Self(rawValue: "badTarHeader")
  /// The padding after a member or at the end of the archive is not zero.
  package static let badTarPadding = Self(rawValue: "badTarPadding")
  /// A document inside is no strict JSON.
  package static let badJSON = Self(rawValue: "badJSON")
  /// The manifest breaks a rule.
  package static let badManifest = Self(rawValue: "badManifest")
  /// It was made by a newer version: with an unknown format or an unknown critical field.
  package static let unsupportedFormat = Self(rawValue: "unsupportedFormat")
  /// The id in the manifest is not the file's name.
  package static let idMismatch = Self(rawValue: "idMismatch")
  /// A member's bytes do not match their digest in the manifest.
  package static let digestMismatch = Self(rawValue: "digestMismatch")
  /// The signature is not the sender's over this manifest.
  package static let badSignature = Self(rawValue: "badSignature")
  /// The table definitions break a rule.
  package static let badSchema = Self(rawValue: "badSchema")
  /// The annotations break a rule.
  package static let badAnnotations = Self(rawValue: "badAnnotations")
  /// The changeset is not well-formed.
  package static let badChangeset = Self(rawValue: "badChangeset")
  /// A table's name may not be used in a diff.
  package static let badName = Self(rawValue: "badName")
  /// Manifest, schema, annotations and changeset disagree.
  package static let contradiction = Self(rawValue: "contradiction")
  /// It is a link, a folder, a pipe or a device.
  package static let notRegularFile = Self(.notRegularFile)
  /// It is a file of another kind.
  package static let otherKind = Self(rawValue: "otherKind")
  /// The system would not let us read it.
  package static let unreadable = Self(.unreadable)
  /// The system would not let us write there.
  package static let unwritable = Self(.unwritable)
  /// A file of that name exists.
  package static let alreadyExists = Self(.alreadyExists)
  /// The volume or the user's quota is full.
  package static let fullDisk = Self(.fullDisk)
  /// Reading stopped halfway, because the receiver gave up.
  package static let abandoned = Self(rawValue: "abandoned")
  /// The process or the system has too many files open.
  package static let tooManyOpenFiles = Self(.tooManyOpenFiles)
  /// No memory.
  package static let outOfMemory = Self(.outOfMemory)
}

extension DiffFileError {
  /// The file is not wanted any more.
  static let abandoned = DiffFileError(.abandoned, "the receiver has stopped reading")

  /// Bytes that could not be read, decompressed or written.
  init(_ error: ByteStreamError) {
    self.init(
      Code(error.code), error.message, path: error.path, offset: error.offset.map { Int($0) }, systemError: error.errno)
  }

  /// A changeset that is not well-formed.
  init(_ error: ChangesetError) {
    self.init(.badChangeset, "\(error)", member: MemberName.changeset, table: error.table, offset: error.offset)
    hasOffsetInMessage = true
  }

  /// Whatever came out of a closure over the bytes of a changeset.
  init(spooling error: any Error) {
    switch error {
    case let error as DiffFileError: self = error
    case let error as ChangesetError: self.init(error)
    case let error as ByteStreamError: self.init(error)
    default: self.init(.unreadable, "\(error)")
    }
  }
}
