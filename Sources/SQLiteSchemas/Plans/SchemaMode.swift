/// How far a diff may change the local schema.
public enum SchemaMode: String, Sendable, CaseIterable, Codable {
  /// Missing tables are created and missing columns added; nothing is ever dropped or altered.
  case additive
  /// Any difference refuses the diff.
  case exact
  /// Nothing is created: what is unknown here is kept in the database until the application's own upgrade has made a
  /// place for it. The rest is applied.
  case hold
  /// The schema becomes the author's: tables are rebuilt and dropped, and indexes, views and triggers made, by the author's own
  /// statements, in the transaction that applies the changes. What exists here and never was the author's stays, and no row is lost.
  ///
  /// Only for files of one's own replicas and of people who may decide about this database. A file without its author's
  /// statements is applied as with ``additive``.
  case adopt
}
