#if GRDB
  import Buckia
  import Foundation
  import GRDB

  /// A diff file or a changeset that was applied, is held or waits: a row of `buckia_ledger`.
  ///
  /// ```swift
  /// let held = try LoggedDiff.filter { $0.state == DiffState.held }.fetchAll(db)
  /// ```
  ///
  /// The table is there once the ledger is: see ``ReplicatedDatabase/initialize(trust:)``. Only Buckia writes to
  /// it.
  public struct LoggedDiff: FetchableRecord, TableRecord, Identifiable, Hashable, Sendable {
    /// The ledger's table.
    public static let databaseTableName = "buckia_ledger"

    /// The number of the entry in this database. Later entries have greater ones.
    public let id: Int64
    /// The diff's id; nil for a changeset without one.
    public let diff: KSUID?
    /// The verified key of the sender in hex; empty for an unsigned file, `own` for an undo, `merge` for a merged
    /// database.
    public let sender: String
    /// Whether it is a raw changeset or a merge.
    public let isRaw: Bool
    /// What became of it.
    public let state: DiffState
    /// Rows inserted.
    public let inserted: Int
    /// Rows updated.
    public let updated: Int
    /// Rows deleted.
    public let deleted: Int
    /// Conflicts met.
    public let conflicts: Int
    /// Changes that were not written.
    public let omitted: Int
    /// Why it waits or is held, or which undo has taken it back.
    public let reason: String?
    /// The name of the file, without its folder.
    public let file: String
    /// When it was recorded.
    public let recordedAt: Date

    /// The columns that requests can use.
    public enum Columns {
      /// The number of the entry.
      public static let id = Column("entry")
      /// The diff's id, as text.
      public static let diff = Column("diff")
      /// The verified key of the sender.
      public static let sender = Column("sender")
      /// Whether it is a raw changeset or a merge.
      public static let isRaw = Column("raw")
      /// What became of it.
      public static let state = Column("state")
      /// Rows inserted.
      public static let inserted = Column("inserted")
      /// Rows updated.
      public static let updated = Column("updated")
      /// Rows deleted.
      public static let deleted = Column("deleted")
      /// Conflicts met.
      public static let conflicts = Column("conflicts")
      /// Changes that were not written.
      public static let omitted = Column("omitted")
      /// Why it waits or is held.
      public static let reason = Column("reason")
      /// The name of the file.
      public static let file = Column("file")
      /// When it was recorded, in milliseconds since 1970.
      public static let recordedAt = Column("recorded_at")
    }

    /// The conflicts that it has caused.
    public static let loggedConflicts = hasMany(
      LoggedConflict.self, using: ForeignKey([LoggedConflict.Columns.diffID], to: [Columns.id]))

    /// Decodes a row of a request.
    public init(row: Row) throws {
      id = try row.decode(forColumn: Columns.id)
      diff = try row.decode(String?.self, forColumn: Columns.diff).flatMap { KSUID($0) }
      sender = try row.decode(forColumn: Columns.sender)
      isRaw = try row.decode(forColumn: Columns.isRaw)
      state = try row.decode(forColumn: Columns.state)
      inserted = try row.decode(forColumn: Columns.inserted)
      updated = try row.decode(forColumn: Columns.updated)
      deleted = try row.decode(forColumn: Columns.deleted)
      conflicts = try row.decode(forColumn: Columns.conflicts)
      omitted = try row.decode(forColumn: Columns.omitted)
      reason = try row.decode(forColumn: Columns.reason)
      file = try row.decode(forColumn: Columns.file)
      recordedAt = try Date(milliseconds: Columns.recordedAt, of: row)
    }
  }

  extension Date {
    /// Decodes a time of the ledger: milliseconds since 1970.
    init(milliseconds column: Column, of row: Row) throws {
      self.init(timeIntervalSince1970: Double(try row.decode(Int64.self, forColumn: column)) / 1_000)
    }
  }
#endif
