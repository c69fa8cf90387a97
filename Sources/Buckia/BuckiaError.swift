/// An error of the façade: what happened, to which file, and what to do.
public struct BuckiaError: Error, Sendable, CustomStringConvertible {
  /// The kinds that are told apart. More may come.
  public struct Code: RawRepresentable, Hashable, Sendable {
    /// The code as it appears in JSON.
    public let rawValue: String
    /// Makes a code.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// A path that was named does not exist.
    public static let noSuchFile = Code(rawValue: "no-such-file")
    /// A folder cannot be listed.
    public static let unreadableFolder = Code(rawValue: "unreadable-folder")
    /// A file that was applied cannot be removed.
    public static let cannotRemove = Code(rawValue: "cannot-remove")
    /// The file is encrypted, and this version cannot open it.
    public static let encrypted = Code(rawValue: "encrypted")
    /// The sender is not believed in this database.
    public static let untrusted = Code(rawValue: "untrusted")
    /// The id lies in the future.
    public static let fromTheFuture = Code(rawValue: "from-the-future")
    /// Another file with the same sender and id was applied.
    public static let equivocation = Code(rawValue: "equivocation")
    /// The file names table definitions that did not travel along.
    public static let unknownSchema = Code(rawValue: "unknown-schema")
    /// The file asks for something this version cannot do.
    public static let unsupported = Code(rawValue: "unsupported")
    /// The database does not exist.
    public static let noDatabase = Code(rawValue: "no-database")
  }

  /// What kind of error.
  public let code: Code
  /// A sentence for people.
  public let message: String
  /// The file, when there is one.
  public let path: String?

  /// Makes an error.
  public init(_ code: Code, _ message: String, path: String? = nil) {
    self.code = code
    self.message = message
    self.path = path
  }

  /// What this version says of every encrypted file.
  static let encryptedReason = "it is encrypted, and this version of Buckia cannot open encrypted files"

  /// The file and the sentence.
  public var description: String { path.map { "\($0): \(message)" } ?? message }
}
