/// A value that a `@Sendable` closure of a test changes.
///
/// `@unchecked Sendable`: the tests that use it call such closures on their own thread only.
public final class Recorded<Value>: @unchecked Sendable {
  /// The value.
  public var value: Value

  /// Begins with a value.
  public init(_ value: Value) { self.value = value }
}
