/// Text that is not printed: a token, a password, a key.
///
/// Whatever prints or mirrors a value that holds one shows `hidden` in its place.
public struct SecretText: Sendable, Hashable {
  /// The secret itself.
  public let value: String

  /// Takes a secret.
  public init(_ value: String) { self.value = value }

  /// Whether it is empty.
  public var isEmpty: Bool { value.isEmpty }
}

extension SecretText: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  /// Always the same word.
  public var description: String { "hidden" }
  /// Always the same word.
  public var debugDescription: String { description }
  /// Shows nothing.
  public var customMirror: Mirror { Mirror(self, children: []) }
}
