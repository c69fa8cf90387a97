/// A sign-in on another device that has begun (RFC 8628): the person opens the address there and types the code.
public struct DeviceSignIn: Sendable {
  /// The address that the person opens, on any device.
  public let address: String
  /// The code that they type there.
  public let code: String
  /// The address with the code in it, for a QR code; nil when the server has none.
  public let addressWithCode: String?
  /// Until when they have time, in milliseconds since 1970.
  public let expires: Int64
  let deviceCode: SecretText
  /// How long to wait between two questions, in milliseconds.
  let interval: Int64
}
