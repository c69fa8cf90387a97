import BuckiaBytes
import BuckiaStorage

/// Makes keys of Backblaze B2 that allow the same in one folder of a bucket, or in all of it, and end by themselves.
///
/// It uses the native API: <https://www.backblaze.com/apidocs/b2-create-key>. With such a key an ``S3Bucket`` is opened.
public struct B2KeyFactory: TokenFactory {
  private let account: B2Account
  private let bucket: String
  private let clock: TokenClock

  /// Names a bucket.
  ///
  /// - Parameters:
  ///   - bucket: The bucket's name.
  ///   - key: A key that may make others (`writeKeys`), delete them (`deleteKeys`) and look buckets up (`listBuckets`).
  ///   - transport: What brings requests there.
  ///   - endpoint: The address of the service.
  ///   - clock: What time it is.
  /// - Throws: `TokenError` with `invalidSetting`.
  public init(
    bucket: String, key: B2ApplicationKey, transport: any HTTPTransport,
    endpoint: String = "https://api.backblazeb2.com", clock: TokenClock = .system
  ) throws(TokenError) {
    account = try B2Account(key: key, transport: transport, endpoint: endpoint)
    self.bucket = bucket
    self.clock = clock
  }

  /// B2 wants less than 1,000 days.
  private static let secondsLimit: Int64 = 1000 * 86_400 - 1

  /// Makes a key, for less than 1,000 days. One that allows something else than was asked for is deleted again.
  public func makeToken(_ options: AccessTokenOptions) async throws -> B2ApplicationKey {
    let rule = try options.onlyRule(of: "a key of B2")
    let prefix: String?
    switch rule.place {
    case .everywhere: prefix = nil
    case .folder(let folder): prefix = "\(folder)/"
    case .object(let path):
      // Its name as a prefix would cover longer names, too.
      throw TokenError(
        .inexpressible, "a key of B2 is for a folder, not for one object (\(path)); make a presigned address")
    }
    guard options.name.utf8.count <= 100, !options.name.isEmpty,
      options.name.utf8.allSatisfy({ Self.isNameByte($0) })
    else {
      throw TokenError(.invalidSetting, "the name of a key of B2 has 1 to 100 letters of English, digits and hyphens")
    }
    _ = try options.expiry(from: clock.now(), limit: Self.secondsLimit)
    return try await account.makeKey(
      named: options.name, B2Account.capabilities(rule.actions), bucket: bucket, prefix: prefix,
      seconds: options.validSeconds)
  }

  /// Ends a key at once.
  ///
  /// - Parameter id: The key's id. One that has ended already is no error.
  /// - Throws: `TokenError`; `CancellationError`.
  public func deleteKey(_ id: String) async throws { try await account.deleteKey(id) }

  private static func isNameByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"),
      UInt8(ascii: "-"):
      true
    default: false
    }
  }
}

/// A key of Backblaze B2, with its secret.
public struct B2ApplicationKey: Sendable, Hashable {
  /// The key's id, which is no secret.
  public let id: String
  /// The secret part.
  public let secret: SecretText
  /// What B2 lets it do, in B2's words; empty where that is not known.
  public var capabilities: [String] = []
  /// The beginning that names have which it may use; nil for all.
  public var namePrefix: String?
  /// Until when it is good, in milliseconds since 1970; nil for no end.
  public var expires: Int64?

  /// Takes a key.
  public init(id: String, secret: SecretText) {
    self.id = id
    self.secret = secret
  }

  /// The key for the endpoint that speaks S3.
  public var s3Credentials: S3Credentials { S3Credentials(accessKey: id, secret: secret.value) }
}
