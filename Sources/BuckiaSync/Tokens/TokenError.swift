import BuckiaBytes
import BuckiaStorage

/// Why there is no token, or why one was not accepted: what happened, and what to do.
///
/// What a server or the network does comes with the code and the sentence of the `StorageError` that is its ``cause``.
public struct TokenError: Error, Sendable, CustomStringConvertible {
  /// What kind of error. Each code is a word that stays. More may come.
  public struct Code: RawRepresentable, Hashable, Sendable {
    /// The word.
    public let rawValue: String
    /// Makes a code.
    public init(rawValue: String) { self.rawValue = rawValue }
  }

  /// What kind of error.
  public let code: Code
  /// A sentence for people: what happened and what to do. It never holds a secret.
  public let message: String
  /// The error behind it, when there is one.
  public let cause: (any Error)?

  /// Makes an error.
  ///
  /// - Parameters:
  ///   - code: What kind of error.
  ///   - message: A sentence for people, without a full stop.
  ///   - cause: The error behind it.
  public init(_ code: Code, _ message: String, cause: (any Error)? = nil) {
    self.code = code
    self.message = message
    self.cause = cause
  }

  /// The sentence.
  public var description: String { message }

  /// The error of a server, of the network or of a setting.
  init(_ error: StorageError) {
    self.init(Code(rawValue: error.code.rawValue), error.description, cause: error)
  }

  /// A file of tokens could not be read or written.
  init(_ error: ByteStreamError) { self.init(StorageError(error)) }

  /// What a storage that uses the token throws.
  package var storageError: StorageError {
    if let error = cause as? StorageError { return error }
    let isSetting = code == .invalidSetting
    return StorageError(isSetting ? .invalidSetting : .unauthorized, message, cause: self)
  }
}

extension TokenError.Code {
  // MARK: Having a token

  /// Nobody has signed in, or no token was stored.
  public static let noToken = Self(rawValue: "no-token")
  /// The token has expired, and nothing renews it.
  public static let expired = Self(rawValue: "token-expired")
  /// The place where tokens are kept cannot be used.
  public static let storeUnavailable = Self(rawValue: "token-store-unavailable")
  /// Others can read the file of tokens.
  public static let notPrivate = Self(rawValue: "not-private")
  /// What is stored is no token.
  public static let invalidStore = Self(rawValue: "invalid-token-store")

  // MARK: Signing in

  /// The person, or the server, has refused the sign-in.
  public static let accessDenied = Self(rawValue: "access-denied")
  /// The sign-in was not finished in time.
  public static let signInExpired = Self(rawValue: "sign-in-expired")
  /// The sign-in has ended, or was withdrawn: a new one is needed.
  public static let signInEnded = Self(rawValue: "sign-in-ended")
  /// The server does not know this app, or does not let it sign in this way.
  public static let unknownClient = Self(rawValue: "unknown-client")
  /// What came back belongs to another sign-in.
  public static let wrongState = Self(rawValue: "wrong-state")
  /// No port of this computer could be opened for the browser's answer.
  public static let noListener = Self(rawValue: "no-listener")

  // MARK: Signed tokens

  /// The text is no token, or is not signed by who it should be.
  public static let invalidToken = Self(rawValue: "invalid-token")
  /// The token does not hold yet; a clock may be wrong.
  public static let notYetValid = Self(rawValue: "token-not-yet-valid")

  // MARK: The rest

  /// The permissions cannot be expressed by this kind of token.
  public static let inexpressible = Self(rawValue: "inexpressible-permissions")
  /// A setting is not in order.
  public static let invalidSetting = Self(rawValue: "invalid-setting")
  /// The server's answer is not as its protocol says.
  public static let invalidAnswer = Self(rawValue: "invalid-answer")
  /// The server cannot do this.
  public static let unsupported = Self(rawValue: "unsupported-by-storage")
  /// The server has a fault, or is overloaded.
  public static let unavailable = Self(rawValue: "server-unavailable")
}
