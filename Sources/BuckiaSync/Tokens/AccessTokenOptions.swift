import BuckiaStorage

/// The permissions and the validity of a new token for others.
///
/// Each factory makes a kind of its own: ``BunnyTokenFactory`` and ``S3AddressFactory`` signed addresses, ``B2KeyFactory`` keys of Backblaze B2,
/// ``SignedTokenFactory`` bearer tokens (JWT).
public struct AccessTokenOptions: Sendable, Hashable {
  /// The permissions. A kind of token that cannot express them refuses them, and never widens them.
  public var permissions: StoragePermissions
  /// For how long, in seconds.
  public var validSeconds: Int64
  /// For whom, as lists of tokens show it: letters, digits and hyphens for B2.
  public var name: String

  /// Describes a token.
  ///
  /// - Parameters:
  ///   - permissions: The permissions.
  ///   - validSeconds: For how long, in seconds.
  ///   - name: For whom.
  public init(_ permissions: StoragePermissions, validSeconds: Int64 = 3600, name: String = "buckia") {
    self.permissions = permissions
    self.validSeconds = validSeconds
    self.name = name
  }

  /// When a token ends that begins now.
  ///
  /// - Parameter now: The present time in milliseconds since 1970.
  /// - Throws: `StorageError` with `invalidSetting` for a time that is none.
  func expiry(from now: Int64, limit: Int64) throws(StorageError) -> Int64 {
    guard (1...limit).contains(validSeconds) else {
      throw StorageError(.invalidSetting, "such a token is good for 1 to \(limit) seconds, not \(validSeconds)")
    }
    return now + validSeconds * 1000
  }

  /// The one rule, for tokens that can express no more.
  ///
  /// - Parameter kind: What errors call such tokens.
  func onlyRule(of kind: String) throws(StorageError) -> StoragePermissions.Rule {
    guard permissions.rules.count == 1, let rule = permissions.rules.first else {
      throw StorageError(
        .inexpressible,
        "\(kind) allows the same in one place, and cannot say \"\(permissions)\"; make a token for each place")
    }
    return rule
  }
}

/// An address that allows one operation for a while without credentials.
public struct SignedAddress: Sendable, Hashable {
  /// The address. Anyone with the address can use it.
  public let address: SecretText
  /// The permissions.
  public let permissions: StoragePermissions
  /// Until when, in milliseconds since 1970.
  public let expires: Int64
}

/// Makes presigned addresses: with each, one thing can be done with one object of a bucket.
public struct S3AddressFactory: Sendable {
  private let bucket: S3Bucket
  private let clock: TokenClock

  /// Takes a bucket.
  ///
  /// - Parameters:
  ///   - bucket: The bucket, with credentials that allow what the addresses are to allow.
  ///   - clock: What time it is.
  public init(_ bucket: S3Bucket, clock: TokenClock = .system) {
    self.bucket = bucket
    self.clock = clock
  }

  /// Makes the address of an object, for at most a week.
  public func makeToken(_ options: AccessTokenOptions) throws -> SignedAddress {
    let rule = try options.onlyRule(of: "a presigned address")
    guard case .object(let path) = rule.place else {
      throw StorageError(.inexpressible, "a presigned address is for one object, not for \(rule.place)")
    }
    let permission: PresignedPermission
    switch rule.actions {
    case .read: permission = .read
    case .write: permission = .write
    case .delete: permission = .delete
    default:
      throw StorageError(
        .inexpressible, "a presigned address allows one of read, write and delete, not: \(rule.actions)")
    }
    let expires = try options.expiry(from: clock.now(), limit: 604_800)
    let address = try bucket.presignedAddress(of: path, for: permission, seconds: Int(options.validSeconds))
    return SignedAddress(address: SecretText(address), permissions: options.permissions, expires: expires)
  }
}
