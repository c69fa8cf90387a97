/// How far a diff may change the local schema.
public enum SchemaMode: String, Sendable, CaseIterable {
  /// Missing tables are created and missing columns added; nothing is ever dropped or altered.
  case additive
  /// Any difference refuses the diff.
  case exact
  /// Nothing is created: what is unknown here is kept in the database until the application's own upgrade has made a
  /// place for it. The rest is applied.
  case hold
}
