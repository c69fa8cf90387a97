import SQLiteConnections

/// The error that Buckia throws. It says what happened, to which file, table or column, and what to do.
///
/// Errors of a resolver or a progress closure are thrown unchanged, and so is `CancellationError`.
///
/// ```swift
/// do {
///   try database.processInboundChanges(["inbound"])
/// } catch let error as BuckiaError where error.isBusy {
///   // Another program writes to the database; try again later.
/// }
/// ```
public struct BuckiaError: Error, Sendable, CustomStringConvertible {
  /// The objects that an error is about, as far as they are known.
  public struct Context: Sendable, Equatable {
    /// The file.
    public var path: String?
    /// The table.
    public var table: String?
    /// The column.
    public var column: String?
    /// The offset in the file, in bytes.
    public var offset: Int?
  }

  /// What kind of error.
  public let code: BuckiaErrorCode
  /// A sentence for people: what happened and what to do.
  public let message: String
  /// The objects that the error is about.
  public let context: Context
  /// The underlying error, if there is one.
  public let cause: (any Error)?

  /// True if another program has locked the database. The same call may succeed later.
  public var isBusy: Bool { code == .busy }

  package init(_ code: BuckiaErrorCode, _ message: String, path: String? = nil) {
    self.init(code, message, Context(path: path))
  }

  private init(_ code: BuckiaErrorCode, _ message: String, _ context: Context, cause: (any Error)? = nil) {
    self.code = code
    self.message = message
    self.context = context
    self.cause = cause
  }

  /// The message, preceded by the file if the message does not name it.
  public var description: String {
    guard cause == nil, let path = context.path else { return message }
    return "\(path): \(message)"
  }
}

extension BuckiaError {
  /// Runs a call of the public interface: errors of lower modules become a `BuckiaError`, those of the caller's
  /// closures stay unchanged.
  static func wrapping<Result: ~Copyable>(_ body: () throws -> Result) throws -> Result {
    do { return try body() } catch { throw wrapped(error) }
  }

  /// The `BuckiaError` for an error of a lower module; any other error unchanged.
  package static func wrapped(_ error: any Error) -> any Error {
    func make(_ code: BuckiaErrorCode, _ message: String, _ context: Context = Context()) -> BuckiaError {
      BuckiaError(code, message, context, cause: error)
    }
    func make(_ code: String, _ message: String, _ context: Context = Context()) -> BuckiaError {
      make(BuckiaErrorCode(rawValue: code), message, context)
    }
    switch error {
    case let error as SQLiteError:
      if let ledger = LedgerError(error) { return wrapped(ledger) }
      return make(BuckiaErrorCode(error), error.description, Context(path: error.path))
    case let error as ReplicationError:
      return make(error.code, error.description, Context(table: error.table, column: error.column))
    case let error as LedgerError: return make(error.code, error.description, Context(path: error.path))
    case let error as DiffFileError:
      return make(error.code.rawValue, error.description, Context(path: error.path, offset: error.offset))
    case let error as ByteStreamError:
      return make(error.code.rawValue, error.description, Context(path: error.path))
    case let error as ChangesetError:
      return make(error.code.rawValue, error.description, Context(table: error.table, offset: error.offset))
    case let error as IdentityError:
      return make(error.code.rawValue, error.description, Context(path: error.path))
    case let error as KSUIDError: return make(error.code.rawValue, error.description)
    default: return error
    }
  }
}
