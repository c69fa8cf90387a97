/// A key that nothing is taken from any more, whatever else is trusted. That is final.
public struct EndedKey: Equatable, Sendable {
  /// Why it has ended.
  public enum Reason: String, Sendable {
    /// Its contact was removed.
    case removed
    /// Its contact has other keys now.
    case replaced
  }

  /// What its contact was called.
  public let name: String
  /// The key as 64 hexadecimal digits.
  public var key: String { signingKey.description }
  let signingKey: SigningKey
  /// The fingerprint of the keys that it was one of.
  public let fingerprint: Fingerprint
  /// Why.
  public let reason: Reason
  /// When, in milliseconds since 1970.
  public let endedAt: Int64

  init(name: String, signingKey: SigningKey, fingerprint: Fingerprint, reason: Reason, endedAt: Int64) {
    self.name = name
    self.signingKey = signingKey
    self.fingerprint = fingerprint
    self.reason = reason
    self.endedAt = endedAt
  }
}
