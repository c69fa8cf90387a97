/// A local row that has got a new key, because the incoming changes insert another row with the one it had.
public struct RemappedKey: Equatable, Sendable {
  /// The table.
  public let table: String
  /// The key that the row had.
  public let key: Int64
  /// The key that it has now.
  public let newKey: Int64
}
