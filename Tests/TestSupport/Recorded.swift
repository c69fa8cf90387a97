/// A value that a `@Sendable` closure of a test changes.
///
/// `@unchecked Sendable`: the tests that use it only call such closures on their own thread.
public final class Recorded<Value>: @unchecked Sendable {
  /// The value.
  public var value: Value

  /// Creates a record with a value.
  public init(_ value: Value) { self.value = value }
}
