import BuckiaStorage

/// Makes presigned addresses: with each, one thing can be done with one object of a bucket.
public struct S3AddressFactory: TokenFactory {
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
      throw TokenError(.inexpressible, "a presigned address is for one object, not for \(rule.place)")
    }
    let permission: PresignedPermission
    switch rule.actions {
    case .read: permission = .read
    case .write: permission = .write
    case .delete: permission = .delete
    default:
      throw TokenError(.inexpressible, "a presigned address allows one of read, write and delete, not: \(rule.actions)")
    }
    let expires = try options.expiry(from: clock.now(), limit: 604_800)
    do throws(StorageError) {
      let address = try bucket.presignedAddress(of: path, for: permission, seconds: Int(options.validSeconds))
      return SignedAddress(address: SecretText(address), permissions: options.permissions, expires: expires)
    } catch { throw TokenError(error) }
  }
}
