import SQLiteChangesets

/// How changes are rebased.
public struct RebaseOptions: Sendable {
  /// Who wins where local and incoming changes of a row contradict each other.
  public var policy: RebasePolicy
  /// Whether a local row gets a new key if the incoming changes insert another row with the integer key that it has. The rows of the local
  /// changes that refer to it, by foreign keys that are declared, follow.
  public var remapsKeys: Bool
  /// A database with the tables of the changes, if the files do not bring their definitions. It is only read: for the definitions, and for
  /// the keys in use.
  public var schema: String?

  /// Creates options.
  public init(policy: RebasePolicy = .keepLocal, remapsKeys: Bool = false, schema: String? = nil) {
    self.policy = policy
    self.remapsKeys = remapsKeys
    self.schema = schema
  }
}
