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
    /// True if it is a raw changeset or a merge.
    public let isRaw: Bool
    /// The outcome.
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
      /// True if it is a raw changeset or a merge.
      public static let isRaw = Column("raw")
      /// The outcome.
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

  /// A recorded conflict without the versions of its row: a row of `buckia_conflict`.
  ///
  /// ```swift
  /// let open = try LoggedConflict.all().open().inTable("notes").fetchAll(db)
  /// ```
  ///
  /// ``ReplicatedDatabase/conflicts(matching:)`` has the versions, ``ReplicatedDatabase/resolve(_:taking:options:)``
  /// resolves conflicts. The table is there once the ledger is: see ``ReplicatedDatabase/initialize(trust:)``.
  /// Only Buckia writes to it.
  public struct LoggedConflict: FetchableRecord, TableRecord, Identifiable, Hashable, Sendable {
    /// The ledger's table.
    public static let databaseTableName = "buckia_conflict"

    /// The number of the conflict in this database.
    public let id: Int64
    /// The diff that has caused it: ``LoggedDiff/id``.
    public let diffID: Int64
    /// The table of the row.
    public let table: String
    /// Why the change did not fit.
    public let kind: ConflictKind
    /// The outcome.
    public let outcome: ConflictOutcome
    /// The message of SQLite or of the engine; nil for none.
    public let reason: String?
    /// True if no decision about this conflict is recorded.
    public let isOpen: Bool

    /// The columns that requests can use.
    public enum Columns {
      /// The number of the conflict.
      public static let id = Column("conflict")
      /// The diff that has caused it: ``LoggedDiff/id``.
      public static let diffID = Column("entry")
      /// Why the change did not fit.
      public static let kind = Column("kind")
      /// The outcome.
      public static let outcome = Column("outcome")
      /// SQLite's or the engine's words.
      public static let reason = Column("reason")
    }

    /// The diff that has caused it.
    public static let diff = belongsTo(
      LoggedDiff.self, using: ForeignKey([Columns.diffID], to: [LoggedDiff.Columns.id]))

    /// The columns of a conflict's record, with values from other tables.
    public static var databaseSelection: [any SQLSelectable] {
      [
        Columns.id, Columns.diffID, Columns.kind, Columns.outcome, Columns.reason, tableName.forKey("table_name"),
        openness.forKey("is_open"),
      ]
    }

    // No column in the subqueries has the name of one of this table, which is why these are not qualified.

    /// The name of the row's table.
    static var tableName: SQL {
      """
      (SELECT name FROM (SELECT layout AS id, table_name AS name FROM buckia_layout) WHERE id = \(Column("layout")))
      """
    }

    /// True if neither a person nor a rule, nor the app's resolver with a row of its own, has decided about it.
    static var openness: SQL {
      """
      (\(Columns.outcome) <> 'resolved'
        AND \(Column("rule")) IS NULL
        AND NOT EXISTS (SELECT 1 FROM (SELECT conflict AS id FROM buckia_resolution) WHERE id = \(Columns.id)))
      """
    }

    /// Decodes a row of a request.
    public init(row: Row) throws {
      id = try row.decode(forColumn: Columns.id)
      diffID = try row.decode(forColumn: Columns.diffID)
      table = try row.decode(forColumn: "table_name")
      kind = try row.decode(forColumn: Columns.kind)
      outcome = try row.decode(forColumn: Columns.outcome)
      reason = try row.decode(forColumn: Columns.reason)
      isOpen = try row.decode(forColumn: "is_open")
    }
  }

  extension DerivableRequest<LoggedConflict> {
    /// The conflicts without a recorded decision.
    public func open() -> Self { filter(LoggedConflict.openness) }

    /// The conflicts of a table, whatever the case of its name.
    public func inTable(_ name: String) -> Self {
      filter(SQL("\(LoggedConflict.tableName) = \(name) COLLATE NOCASE"))
    }
  }

  /// A file that was refused: a row of `buckia_refused`. It is tried again while it is in its folder, and the row is
  /// deleted when it is applied.
  ///
  /// ```swift
  /// let refusals = try LoggedRefusal.order { $0.lastAt.desc }.fetchAll(db)
  /// ```
  ///
  /// The table is there once the ledger is: see ``ReplicatedDatabase/initialize(trust:)``. Only Buckia writes to
  /// it.
  public struct LoggedRefusal: FetchableRecord, TableRecord, Identifiable, Hashable, Sendable {
    /// The ledger's table.
    public static let databaseTableName = "buckia_refused"

    /// SHA-256 of the file's bytes.
    public let id: Data
    /// The diff's id, if that part of the file was readable.
    public let diff: KSUID?
    /// The verified key of the sender in hex; empty if there is none.
    public let sender: String
    /// `rejected`, or `quarantined` if the file exceeds its sender's rights.
    public let state: DiffState
    /// Why.
    public let reason: String
    /// The name of the file, without its folder.
    public let file: String
    /// When it was refused first.
    public let firstAt: Date
    /// When it was refused last.
    public let lastAt: Date
    /// How often it was refused.
    public let times: Int

    /// The columns that requests can use.
    public enum Columns {
      /// SHA-256 of the file's bytes.
      public static let id = Column("digest")
      /// The diff's id, as text.
      public static let diff = Column("diff")
      /// The verified key of the sender.
      public static let sender = Column("sender")
      /// `rejected` or `quarantined`.
      public static let state = Column("state")
      /// Why.
      public static let reason = Column("reason")
      /// The name of the file.
      public static let file = Column("file")
      /// When it was refused first, in milliseconds since 1970.
      public static let firstAt = Column("first_at")
      /// When it was refused last, in milliseconds since 1970.
      public static let lastAt = Column("last_at")
      /// How often it was refused.
      public static let times = Column("times")
    }

    /// Decodes a row of a request.
    public init(row: Row) throws {
      id = try row.decode(forColumn: Columns.id)
      diff = try row.decode(String?.self, forColumn: Columns.diff).flatMap { KSUID($0) }
      sender = try row.decode(forColumn: Columns.sender)
      state = try row.decode(forColumn: Columns.state)
      reason = try row.decode(forColumn: Columns.reason)
      file = try row.decode(forColumn: Columns.file)
      firstAt = try Date(milliseconds: Columns.firstAt, of: row)
      lastAt = try Date(milliseconds: Columns.lastAt, of: row)
      times = try row.decode(forColumn: Columns.times)
    }
  }

  // The values of the ledger's columns. GRDB reads and compares them by their raw values.
  extension DiffState: DatabaseValueConvertible {}
  extension ConflictKind: DatabaseValueConvertible {}
  extension ConflictOutcome: DatabaseValueConvertible {}
#endif
