import BuckiaByteStreams
import BuckiaDiffFiles
import BuckiaKSUID
import BuckiaLedger
import BuckiaSchemaPlans
import SQLiteChangesets
import SQLiteConnections

/// The one error that Buckia throws: what happened, to which file, table or column, and what to do.
///
/// Errors of a resolver or of a progress closure are thrown as they are, and so is `CancellationError`.
///
/// ```swift
/// do {
///   try database.processInboundChanges(["inbound"])
/// } catch let error as BuckiaError where error.isBusy {
///   // Another program writes to the database; try again later.
/// }
/// ```
public struct BuckiaError: Error, Sendable, CustomStringConvertible {
  /// What kind of error. Each code is a word that stays, as `--json` prints it. More may come.
  public struct Code: RawRepresentable, Hashable, Sendable {
    /// The word.
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
    /// The sender is not trusted in this database.
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
    /// A borrowed database was used outside its closure, or on another thread.
    public static let misuse = Code(rawValue: "misuse")
    /// The database is locked by another program.
    public static let busy = Code(rawValue: "busy")
    /// A newer version of Buckia made the ledger tables.
    public static let newerLedger = Code(rawValue: "newer-ledger")
    /// A conflict was met under the policy `abort`, or a resolver said so.
    public static let conflict = Code(rawValue: "conflict")
    /// A table that was named is in neither database.
    public static let noSuchTable = Code(rawValue: "no-such-table")
    /// Two files describe one table differently.
    public static let definitionsDiffer = Code(rawValue: "definitions-differ")
    /// A diff file needs the definitions of its tables, and what it is to be made of has none.
    public static let noDefinitions = Code(rawValue: "no-definitions")
    /// A file holds more than a new one made of it can keep.
    public static let carriesMore = Code(rawValue: "carries-more")
    /// SQLite has rolled back the app's transaction, with all the app did in it.
    public static let transactionLost = Code(rawValue: "transaction-lost")
  }

  /// What an error is about, as far as that is known.
  public struct Context: Sendable, Equatable {
    /// The file.
    public var path: String?
    /// The table.
    public var table: String?
    /// The column.
    public var column: String?
    /// The offset in the file, in bytes.
    public var offset: Int?

    /// Makes a context.
    public init(path: String? = nil, table: String? = nil, column: String? = nil, offset: Int? = nil) {
      self.path = path
      self.table = table
      self.column = column
      self.offset = offset
    }
  }

  /// What kind of error.
  public let code: Code
  /// A sentence for people: what happened and what to do.
  public let message: String
  /// What it is about.
  public let context: Context
  /// The error behind it, when there is one.
  public let cause: (any Error)?

  /// Whether another program has locked the database: the same call may succeed later.
  public var isBusy: Bool { code == .busy }

  package init(_ code: Code, _ message: String, path: String? = nil) {
    self.init(code, message, Context(path: path))
  }

  private init(_ code: Code, _ message: String, _ context: Context, cause: (any Error)? = nil) {
    self.code = code
    self.message = message
    self.context = context
    self.cause = cause
  }

  /// What this version says of every encrypted file.
  static let encryptedReason = "it is encrypted, and this version of Buckia cannot open encrypted files"

  /// The sentence, with the file before it where the sentence does not name it.
  public var description: String {
    guard cause == nil, let path = context.path else { return message }
    return "\(path): \(message)"
  }
}

extension BuckiaError {
  /// Runs a call of the public interface: errors of the modules below become a `BuckiaError`, those of the caller's own
  /// closures stay as they are.
  static func wrapping<Result: ~Copyable>(_ body: () throws -> Result) throws -> Result {
    do { return try body() } catch { throw wrapped(error) }
  }

  /// An error of a module below as a `BuckiaError`; any other as it is.
  static func wrapped(_ error: any Error) -> any Error {
    func make(_ code: String, _ message: String, _ context: Context = Context()) -> BuckiaError {
      BuckiaError(Code(rawValue: code), message, context, cause: error)
    }
    switch error {
    case let error as SQLiteError:
      return make(error.isBusy ? "busy" : "sqlite-\(error.code)", error.description, Context(path: error.path))
    case let error as ReplicationError:
      return make(error.code.rawValue, error.description, Context(table: error.table, column: error.column))
    case let error as LedgerError: return make(error.code.rawValue, error.description, Context(path: error.path))
    case let error as DiffFileError:
      return make(error.code.rawValue, error.description, Context(path: error.path, offset: error.offset))
    case let error as ByteStreamError:
      return make(error.code.rawValue, error.description, Context(path: error.path))
    case let error as ChangesetError:
      return make(error.code.rawValue, error.description, Context(table: error.table, offset: error.offset))
    case let error as KSUIDError: return make(error.code.rawValue, error.description)
    default: return error
    }
  }
}
