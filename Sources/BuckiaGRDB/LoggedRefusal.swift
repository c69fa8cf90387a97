#if GRDB
  import Buckia
  import Foundation
  import GRDB

  /// A file that was refused: a row of `buckia_refused`. It is tried again as long as it is in its folder, and the
  /// row goes when it is applied.
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
    /// The diff's id, where the file could be read that far.
    public let diff: KSUID?
    /// The verified key of the sender in hex; empty where there is none.
    public let sender: String
    /// `rejected`, or `quarantined` if the file does what its sender may not do.
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
#endif
