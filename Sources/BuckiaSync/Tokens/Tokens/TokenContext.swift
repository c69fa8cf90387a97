/// What a token is for: one's own storage, the inbound folder of somebody, or what an app names.
public struct TokenContext: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
  /// The context as it is stored.
  public let rawValue: String

  /// Takes a context of one's own.
  public init(rawValue: String) { self.rawValue = rawValue }

  /// One's own storage.
  public static let storage = Self(rawValue: "storage")
  /// The storage that is used where one's own does not answer.
  public static let fallbackStorage = Self(rawValue: "fallback-storage")

  /// The inbound folder of somebody.
  ///
  /// - Parameter name: Their name among one's contacts.
  public static func inbound(of name: String) -> Self { Self(rawValue: "inbound of \(name)") }

  /// The context as it is stored.
  public var description: String { rawValue }
}
