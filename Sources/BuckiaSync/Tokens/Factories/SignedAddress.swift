/// An address with which somebody without credentials can do one thing, for a while.
public struct SignedAddress: Sendable, Hashable {
  /// The address. Whoever has it can do it.
  public let address: SecretText
  /// What it allows.
  public let permissions: StoragePermissions
  /// Until when, in milliseconds since 1970.
  public let expires: Int64
}
