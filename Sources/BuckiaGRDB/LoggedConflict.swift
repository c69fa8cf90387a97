#if GRDB
  import Buckia
  import GRDB

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
    /// What became of it.
    public let outcome: ConflictOutcome
    /// SQLite's or the engine's words, where there are any.
    public let reason: String?
    /// Whether nobody has decided about it in particular.
    public let isOpen: Bool

    /// The columns that requests can use.
    public enum Columns {
      /// The number of the conflict.
      public static let id = Column("conflict")
      /// The diff that has caused it: ``LoggedDiff/id``.
      public static let diffID = Column("entry")
      /// Why the change did not fit.
      public static let kind = Column("kind")
      /// What became of it.
      public static let outcome = Column("outcome")
      /// SQLite's or the engine's words.
      public static let reason = Column("reason")
    }

    /// The diff that has caused it.
    public static let diff = belongsTo(
      LoggedDiff.self, using: ForeignKey([Columns.diffID], to: [LoggedDiff.Columns.id]))

    /// What is read of a conflict: columns of its record, and what other tables say of it.
    public static var databaseSelection: [any SQLSelectable] {
      [
        Columns.id, Columns.diffID, Columns.kind, Columns.outcome, Columns.reason, tableName.forKey("table_name"),
        openness.forKey("is_open"),
      ]
    }

    // In the subqueries no column has the name of one of this table, so those need no name of the table before them.

    /// The name of the row's table.
    static var tableName: SQL {
      """
      (SELECT name FROM (SELECT layout AS id, table_name AS name FROM buckia_layout) WHERE id = \(Column("layout")))
      """
    }

    /// Whether neither a person nor a rule, nor the app's resolver with a row of its own, has decided about it.
    static var openness: SQL {
      """
      (\(Columns.outcome) <> 'resolved'
        AND NOT EXISTS (SELECT 1 FROM (SELECT conflict AS id FROM buckia_resolution) WHERE id = \(Columns.id))
        AND NOT EXISTS (
          SELECT 1 FROM (SELECT conflict AS id FROM buckia_conflict_detail WHERE rule IS NOT NULL)
          WHERE id = \(Columns.id)))
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
    /// The conflicts that nobody has decided about in particular.
    public func open() -> Self { filter(LoggedConflict.openness) }

    /// The conflicts of a table, whatever the case of its name.
    public func inTable(_ name: String) -> Self {
      filter(SQL("\(LoggedConflict.tableName) = \(name) COLLATE NOCASE"))
    }
  }
#endif
