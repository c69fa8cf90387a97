import BuckiaDiff

/// How far a merge has come.
public enum MergeProgress: Sendable {
  /// The other database is compared with the base.
  case comparing(DiffProgress)
  /// So many changes have been applied.
  case applying(rows: Int)
}
