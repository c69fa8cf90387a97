import SQLiteConnections

/// How to merge a database that has been changed apart.
public struct MergeOptions: Sendable {
  /// The policies for conflicts, by table and column.
  public var conflicts: ConflictPolicies
  /// True if a file at the output may be replaced that is neither of the two databases.
  public var replacesOutput: Bool
  /// True if only a report is wanted: everything is tried and taken back.
  public var isDryRun: Bool
  /// True if the other database may have no table in common with the base. Otherwise the paths are taken for mixed up.
  public var allowsUnrelated = false
  /// Columns that were renamed in one of the two databases since their base, besides those that the definitions show: a
  /// column at the same place and of the same type.
  public var renames: [ColumnRename] = []
  /// True if rows that both sides have added under one number are different rows, unless they are equal: the incoming ones get other numbers.
  /// Otherwise they are a conflict. Only for tables whose numbers SQLite gives out.
  public var remapsKeys = true
  /// By which columns rows are the same that both sides have added under different numbers. Rows that are equal but for their number, and have
  /// a UNIQUE value, are the same without being named here.
  public var matches: [TableName: [String]] = [:]
  /// Columns in which nothing is taken from the other side but with new rows, and nothing is a conflict.
  public var ignoredColumns: [TableName: [String]] = [:]
  /// The name of the other database in the records; nil for its file's name.
  public var incomingName: String?
  /// The most bytes for SQLite's page cache and the sorting of indexes together; 256 MiB by default.
  public var memoryLimit = ApplySession.defaultMemoryLimit

  /// Creates options; the defaults are those of the command line.
  public init(conflicts: ConflictPolicies = .keepLocal, replacesOutput: Bool = false, isDryRun: Bool = false) {
    self.conflicts = conflicts
    self.replacesOutput = replacesOutput
    self.isDryRun = isDryRun
  }
}
