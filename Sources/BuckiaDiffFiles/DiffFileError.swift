/// Why a diff file, or a raw changeset, could not be read or written.
///
/// ``code`` is stable, for programs and ledgers; ``description`` is a sentence for people that names the file, the
/// place and what to do.
public struct DiffFileError: Error, Equatable, Sendable, CustomStringConvertible {
  /// What went wrong. The set is open: new codes may come, existing ones keep their text.
  public struct Code: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    /// The stable text of the code.
    public let rawValue: String
    /// Makes a code from its text.
    public init(rawValue: String) { self.rawValue = rawValue }
    /// The stable text of the code.
    public var description: String { rawValue }
  }

  /// What went wrong.
  public let code: Code
  /// The file, when known.
  public var path: String?
  /// The member inside the file, such as `manifest.json`, when it is about one.
  public var member: String?
  /// The table it is about, as the stranger wrote it.
  public var table: String?
  /// Where, in bytes from 0: of the member when there is one, else of the unpacked archive or of the file.
  public var offset: Int?
  /// Whether `message` says the offset already.
  var tellsOffset = false
  /// The system's error number, when a call failed.
  public var systemError: Int32?
  /// What happened, without file and advice.
  public let message: String

  /// Makes an error.
  public init(
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

  /// Whether the machine may be at fault and not the file: it may succeed later, and no ledger should record a refusal.
  public var isTransient: Bool {
    [.fullDisk, .tooManyOpenFiles, .outOfMemory, .unreadable, .unwritable].contains(code)
  }

  /// The file, the place, what happened and what to do.
  public var description: String {
    var text = path.map { ShownText.line($0) + ": " } ?? ""
    if let member { text += ShownText.line(member) + ": " }
    text += message
    if let offset, !tellsOffset { text += " (at byte \(offset))" }
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
    case .truncated, .notZstd, .badZstd, .trailingData, .badTarHeader, .badTarPadding, .badJSON, .digestMismatch,
      .sealMismatch:
      "the file is damaged or was not made by Buckia; fetch it again"
    case .unsupportedFormat: "update Buckia to read it"
    case .idMismatch: "give the file its own name back"
    case .badSignature: "do not trust it; ask its sender to send it again"
    case .fullDisk: "free some space and try again"
    case .tooManyOpenFiles, .outOfMemory: "close other programs and try again"
    case .tooLarge: "ask its sender whether this is meant"
    case .alreadyExists: "choose another name, or replace it explicitly"
    case .unreadable, .unwritable: "check the path and its permissions"
    case .badManifest, .badSchema, .badAnnotations, .badChangeset, .badName, .contradiction:
      "nothing of it was used; its sender's program has to make it anew"
    default: nil
    }
  }
}

extension DiffFileError.Code {
  /// The file ends before what it announces.
  public static let truncated = Self(rawValue: "truncated")
  /// The file is no zstd frame.
  public static let notZstd = Self(rawValue: "notZstd")
  /// The zstd frame is damaged, or uses what the format excludes (dictionary, no checksum, a window over 8 MiB).
  public static let badZstd = Self(rawValue: "badZstd")
  /// The compressed bytes are not the ones their seal speaks of.
  public static let sealMismatch = Self(rawValue: "sealMismatch")
  /// Something follows where the format ends.
  public static let trailingData = Self(rawValue: "trailingData")
  /// It is larger than the limits allow, or unpacks to improbably much.
  public static let tooLarge = Self(rawValue: "tooLarge")
  /// A tar header is not the one we would write for the member that belongs there.
  public static let badTarHeader = Self(rawValue: "badTarHeader")
  /// The padding behind a member or the end of the archive is not zero.
  public static let badTarPadding = Self(rawValue: "badTarPadding")
  /// A document inside is no strict JSON.
  public static let badJSON = Self(rawValue: "badJSON")
  /// The manifest breaks a rule.
  public static let badManifest = Self(rawValue: "badManifest")
  /// It was made by a newer version: an unknown format, or a critical field we do not know.
  public static let unsupportedFormat = Self(rawValue: "unsupportedFormat")
  /// The id in the manifest is not the file's name.
  public static let idMismatch = Self(rawValue: "idMismatch")
  /// A member's bytes are not the ones the manifest speaks of.
  public static let digestMismatch = Self(rawValue: "digestMismatch")
  /// The signature is not the sender's over this manifest.
  public static let badSignature = Self(rawValue: "badSignature")
  /// The table definitions break a rule.
  public static let badSchema = Self(rawValue: "badSchema")
  /// The annotations break a rule.
  public static let badAnnotations = Self(rawValue: "badAnnotations")
  /// The changeset is not well-formed.
  public static let badChangeset = Self(rawValue: "badChangeset")
  /// A table's name may not be used in a diff.
  public static let badName = Self(rawValue: "badName")
  /// Manifest, schema, annotations and changeset disagree.
  public static let contradiction = Self(rawValue: "contradiction")
  /// It is a link, a folder, a pipe or a device.
  public static let notRegularFile = Self(rawValue: "notRegularFile")
  /// The system would not let us read it.
  public static let unreadable = Self(rawValue: "unreadable")
  /// The system would not let us write there.
  public static let unwritable = Self(rawValue: "unwritable")
  /// A file of that name is there already.
  public static let alreadyExists = Self(rawValue: "alreadyExists")
  /// No room is left on the volume.
  public static let fullDisk = Self(rawValue: "fullDisk")
  /// Reading stopped halfway, because nobody wanted the rest any more.
  public static let abandoned = Self(rawValue: "abandoned")
  /// The process or the system has too many files open.
  public static let tooManyOpenFiles = Self(rawValue: "tooManyOpenFiles")
  /// No memory.
  public static let outOfMemory = Self(rawValue: "outOfMemory")
}
