/// An error of a storage, with the object and the remedy.
public struct StorageError: Error, Sendable, CustomStringConvertible {
  /// What kind of error. Each code is a word that stays, as `--json` prints it. More may come.
  public struct Code: RawRepresentable, Hashable, Sendable {
    /// The word.
    public let rawValue: String
    /// Creates a code.
    public init(rawValue: String) { self.rawValue = rawValue }
  }

  /// What kind of error.
  public let code: Code
  /// A sentence with the error and the remedy.
  public let message: String
  /// The object that it is about.
  public var path: RemotePath?
  /// The status that an HTTP server has answered with.
  public var status: Int?
  /// How long the server wants to be left alone, in milliseconds.
  public var retryAfter: Int64?
  /// The underlying error, if any.
  public let cause: (any Error)?

  /// Creates an error.
  ///
  /// - Parameters:
  ///   - code: What kind of error.
  ///   - message: A sentence for people, without a full stop, that does not name the object.
  ///   - path: The object.
  ///   - cause: The underlying error.
  public init(_ code: Code, _ message: String, path: RemotePath? = nil, cause: (any Error)? = nil) {
    self.code = code
    self.message = message
    self.path = path
    self.cause = cause
  }

  /// The sentence, with the object before it.
  public var description: String { path.map { "\($0): \(message)" } ?? message }

  /// True if the same request may well succeed in a moment.
  public var isTransient: Bool { Self.transient.contains(code) }

  private static let transient: Set<Code> = [
    .unreachable, .interrupted, .timedOut, .truncated, .damaged, .tooManyRequests, .unavailable,
  ]

  /// The same error with a path, unless it has one.
  public func about(_ path: RemotePath) -> StorageError {
    var error = self
    error.path = error.path ?? path
    return error
  }
}

extension StorageError.Code {
  // MARK: The object

  /// There is no such object.
  public static let notFound = Self(rawValue: "not-found")
  /// There is an object of that name, which was not to be replaced.
  public static let alreadyExists = Self(rawValue: "object-exists")
  /// The object is not the expected one: it was replaced meanwhile.
  public static let changed = Self(rawValue: "object-changed")
  /// A name that no object can have.
  public static let invalidName = Self(rawValue: "invalid-object-name")
  /// A file was changed while it was sent.
  public static let sourceChanged = Self(rawValue: "source-changed")

  // MARK: Who may do what

  /// Authentication failed: a key, token or password is wrong or has expired.
  public static let unauthorized = Self(rawValue: "unauthorized")
  /// The user is authenticated, and lacks the permission.
  public static let forbidden = Self(rawValue: "forbidden")
  /// The clock of this device differs too much from the server's.
  public static let clockSkew = Self(rawValue: "clock-skew")

  // MARK: The storage

  /// The server cannot be reached.
  public static let unreachable = Self(rawValue: "unreachable")
  /// The connection broke.
  public static let interrupted = Self(rawValue: "connection-interrupted")
  /// The server did not go on in time.
  public static let timedOut = Self(rawValue: "timed-out")
  /// Fewer bytes came, or more, than the server had announced.
  public static let truncated = Self(rawValue: "wrong-length")
  /// The received or stored bytes have a wrong digest.
  public static let damaged = Self(rawValue: "damaged-transfer")
  /// The server wants fewer requests.
  public static let tooManyRequests = Self(rawValue: "too-many-requests")
  /// The server has a fault of its own, or is overloaded.
  public static let unavailable = Self(rawValue: "server-unavailable")
  /// Another operation on the object or folder is in progress.
  public static let conflict = Self(rawValue: "storage-conflict")
  /// The server sends on to other addresses, or in circles.
  public static let redirected = Self(rawValue: "redirected")
  /// The server's certificate is not one to be trusted.
  public static let untrustedServer = Self(rawValue: "untrusted-server")
  /// The storage has no room left.
  public static let fullStorage = Self(rawValue: "full-storage")
  /// The server's answer breaks its protocol.
  public static let invalidAnswer = Self(rawValue: "invalid-answer")
  /// The storage cannot do this.
  public static let unsupported = Self(rawValue: "unsupported-by-storage")
  /// A setting that contradicts another, or cannot be honoured.
  public static let invalidSetting = Self(rawValue: "invalid-setting")

  // MARK: This device

  /// A file or folder here cannot be read.
  public static let unreadable = Self(rawValue: "unreadable")
  /// A file or folder here cannot be written.
  public static let unwritable = Self(rawValue: "unwritable")
  /// The disk here is full.
  public static let fullDisk = Self(rawValue: "fullDisk")
}
