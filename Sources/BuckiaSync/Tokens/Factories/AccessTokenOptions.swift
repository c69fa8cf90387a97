/// What a new token is to allow, and for how long.
public struct AccessTokenOptions: Sendable, Hashable {
  /// What it allows. Not every kind of token can express everything: what cannot be expressed is refused, never widened.
  public var permissions: StoragePermissions
  /// For how long, in seconds.
  public var validSeconds: Int64
  /// For whom, as lists of tokens show it: letters, digits and hyphens for B2.
  public var name: String

  /// Describes a token.
  ///
  /// - Parameters:
  ///   - permissions: What it allows.
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
  /// - Throws: `TokenError` with `invalidSetting` for a time that is none.
  func expiry(from now: Int64, limit: Int64) throws(TokenError) -> Int64 {
    guard (1...limit).contains(validSeconds) else {
      throw TokenError(.invalidSetting, "such a token is good for 1 to \(limit) seconds, not \(validSeconds)")
    }
    return now + validSeconds * 1000
  }

  /// The one rule, for tokens that can express no more.
  ///
  /// - Parameter kind: What errors call such tokens.
  func onlyRule(of kind: String) throws(TokenError) -> StoragePermissions.Rule {
    guard permissions.rules.count == 1, let rule = permissions.rules.first else {
      throw TokenError(
        .inexpressible,
        "\(kind) allows the same in one place, and cannot say \"\(permissions)\"; make a token for each place")
    }
    return rule
  }
}
