import BuckiaBytes
import BuckiaFormat
import BuckiaStorage

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Keeps tokens as long as the program runs: for tests, and for those who sign in each time.
public actor MemoryTokenStore: TokenStore {
  private var tokens: [TokenContext: AccessToken]

  /// Creates a store.
  ///
  /// - Parameter tokens: What it holds at first.
  public init(_ tokens: [TokenContext: AccessToken] = [:]) { self.tokens = tokens }

  /// Reads the token of a context; nil if there is none.
  public func token(for context: TokenContext) -> AccessToken? { tokens[context] }
  /// Keeps a token, in place of the one that the context had.
  public func save(_ token: AccessToken, for context: TokenContext) { tokens[context] = token }
  /// Removes the token of a context, if it is there.
  public func remove(_ context: TokenContext) { tokens[context] = nil }
}

/// Keeps tokens in a file that only its owner can read.
///
/// The file is a JSON document, `{"version":1,"tokens":{CONTEXT:TOKEN,…}}`. A token has the members `value`, `issued`, `expires`
/// (milliseconds since 1970), `refreshToken` and `scopes`; those that it lacks are left out. It is replaced as a whole, so a reader sees the old or the new one, and
/// programs that change it at the same time wait for each other at the file with `.lock` behind its name, and those that renew a token at
/// the file with `.renewal.lock`. A file that others can read or write is not used.
public actor FileTokenStore: RenewalLocking {
  /// Where it is.
  public nonisolated let path: String

  private let file: PrivateDocument
  private let executor = BlockingExecutor()
  /// A queue of its own, since it waits for the disk and for other programs.
  public nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  /// How large the file may be, in bytes.
  private static let byteLimit = 8 << 20
  private static let version: Int64 = 1

  /// Names a file, which is made when the first token is saved.
  ///
  /// - Parameter path: Where it is. Its folder exists.
  public init(path: String) {
    self.path = path
    file = PrivateDocument(
      path: path, subject: "the file of tokens", byteLimit: Self.byteLimit,
      remedy: "`chmod 600` makes it private, but sign in again: they may know what is in it")
  }

  /// Reads the token of a context; nil if there is none.
  public func token(for context: TokenContext) throws -> AccessToken? {
    guard let document = try mappingKeys(tokens)[context.rawValue] else { return nil }
    guard let token = AccessToken(document) else { throw fault("the token for \(context) is damaged") }
    return token
  }

  /// Keeps a token, in place of the one that the context had.
  public func save(_ token: AccessToken, for context: TokenContext) throws {
    try change { tokens in
      tokens.members.removeAll { $0.name == context.rawValue }
      tokens.append(context.rawValue, token.document)
      return true
    }
  }

  /// Removes the token of a context, if it is there.
  public func remove(_ context: TokenContext) throws {
    try change { tokens in
      guard tokens[context.rawValue] != nil else { return false }
      tokens.members.removeAll { $0.name == context.rawValue }
      return true
    }
  }

  /// The number of checks for another program's renewal of the token, and the milliseconds between them.
  private static let lockAttempts = 300
  private static let lockPause = 100

  /// Waits half a minute, which is longer than any server takes.
  func renewalLock() async throws -> HandedOver<PosixFile>? {
    for _ in 0..<Self.lockAttempts {
      let file = try StorageError.wrapping { try PosixFile(updating: "\(path).renewal.lock") }
      if file.tryLock() { return HandedOver(file) }
      try await Task.sleep(for: .milliseconds(Self.lockPause))
    }
    return nil
  }

  // MARK: The file

  private func fault(_ reason: String, _ cause: (any Error)? = nil) -> StorageError {
    StorageError(.invalidStore, "\(path): \(reason); move the file away and sign in again", cause: cause)
  }

  private func tokens() throws -> JSONObject {
    guard let bytes = try file.bytes() else { return JSONObject() }
    let document: JSONValue
    do { document = try JSONParser.parse(bytes) } catch { throw fault("it is no file of tokens: \(error)", error) }
    guard case .object(let members) = document, case .integer(let version)? = members["version"] else {
      throw fault("it is no file of tokens")
    }
    guard version == Self.version else {
      throw StorageError(.invalidStore, "\(path): a later version has written it (\(version)); update this program")
    }
    guard case .object(let tokens)? = members["tokens"] else { throw fault("it is no file of tokens") }
    return tokens
  }

  /// Does something with the file, and turns what it throws into errors of ours.
  private func mappingKeys<Result>(_ body: () throws -> Result) throws -> Result {
    do { return try StorageError.wrapping(body) } catch let error as IdentityError {
      switch error.code {
      case .notPrivate: throw StorageError(.notPrivate, error.description)
      case .notLocked: throw StorageError(.storeUnavailable, error.description)
      default: throw fault("it is larger than it can be")
      }
    }
  }

  /// Changes what is there now while no other program does.
  ///
  /// - Parameter body: Returns true if there is something to write.
  private func change(_ body: (inout JSONObject) -> Bool) throws {
    try mappingKeys {
      try file.locked {
        var tokens = try tokens()
        guard body(&tokens) else { return }
        let document: JSONValue = ["version": .integer(Self.version), "tokens": .object(tokens)]
        try file.write(document.bytes(), replacing: true)
      }
    }
  }
}

/// The best place for tokens that this system has: the keychain on Apple's, the desktop's secret service on Linux, or else a file that only
/// its owner can read.
public struct SystemTokenStore: RenewalLocking {
  private let store: any TokenStore
  /// Why tokens are in a file; nil if they are not.
  public let fallbackReason: String?

  /// Looks for the place.
  ///
  /// - Parameters:
  ///   - service: What the system calls the app, such as `com.example.notes`.
  ///   - file: The file, where there is nothing better. Its folder exists.
  ///   - environment: The variables for the paths of programs and for the desktop.
  public init(
    service: String, file: String, environment: [String: String] = ProcessInfo.processInfo.environment
  ) async {
    #if canImport(Security)
      store = KeychainTokenStore(service: service)
      fallbackReason = nil
    #elseif os(Linux)
      do {
        guard environment["DBUS_SESSION_BUS_ADDRESS"] != nil else {
          throw StorageError(.storeUnavailable, "there is no desktop session (DBUS_SESSION_BUS_ADDRESS is not set)")
        }
        store = try await SecretServiceTokenStore(service: service, searchPath: environment["PATH"] ?? "")
        fallbackReason = nil
      } catch {
        store = FileTokenStore(path: file)
        fallbackReason = "tokens are kept in \(file): \(error)"
      }
    #else
      store = FileTokenStore(path: file)
      fallbackReason = "tokens are kept in \(file): this system has no other place for them"
    #endif
  }

  /// Reads the token of a context; nil if there is none.
  public func token(for context: TokenContext) async throws -> AccessToken? { try await store.token(for: context) }

  /// Keeps a token, in place of the one that the context had.
  public func save(_ token: AccessToken, for context: TokenContext) async throws {
    try await store.save(token, for: context)
  }

  /// Removes the token of a context, if it is there.
  public func remove(_ context: TokenContext) async throws { try await store.remove(context) }

  func renewalLock() async throws -> HandedOver<PosixFile>? { try await (store as? any RenewalLocking)?.renewalLock() }
}
