import SQLiteSchemas

/// How the difference of two tables is found. All methods find the same one.
public enum DiffMethod: String, Sendable, CaseIterable {
  /// Reads both files once, and looks only at rows on pages that differ. Tables that it cannot compare take `rows`.
  case pages
  /// A merge join of two ordered scans. Works for every table.
  case rows
  /// `sqlite3session_diff`. Tables that it cannot compare, and those that it would get wrong, take `rows`.
  case session
}

/// What identifies the rows of tables without a primary key.
public enum KeylessIdentity: String, Sendable, CaseIterable {
  /// Their rowid: the other side becomes a mirror, rowids included.
  case rowid
  /// Their content, each row as often as it is there: for databases that have given their rows rowids of their own. Nothing
  /// is an UPDATE then.
  case content
}

/// What to compare, and how.
public struct DiffOptions: Sendable {
  /// The tables to compare, or nil for all of them.
  public var tables: [TableName]?
  /// Tables that are never compared, such as those in which a library notes what it has done to this very file.
  ///
  /// As with chosen tables, the schema as a whole does not travel then.
  public var excludedTables: Set<TableName> = []
  /// Which rows and columns of a table to compare: all of them where a table is not named.
  ///
  /// They apply to both databases. Conditions make a table take `rows`.
  public var selections: [TableName: RowSelection]
  /// The method, or nil to choose the best for each table.
  public var method: DiffMethod?
  /// Whether the result is to travel without table definitions, as a raw changeset: then nothing that needs them is
  /// included.
  public var isRaw: Bool
  /// Columns that have another name in the newer database: else such a column is a new one, and the old one is dropped.
  public var renames: [ColumnRename]
  /// What identifies the rows of tables without a primary key.
  public var keyless: KeylessIdentity
  /// Whether a difference from a snapshot has everything since that was made, also what was sent before.
  ///
  /// If the database keeps clocks, it only has what is new, unless tables or rows are selected: what is sent once more
  /// counts as later than what others have changed since. Of a database without clocks a difference always has
  /// everything.
  public var includesSent = false
  /// Tables without a primary key whose rows go by their content, whatever `keyless` says.
  package var contentTables: Set<TableName> = []
  /// Tables whose rows are told apart by the key of another definition, where both sources have its columns.
  package var keys: [TableName: TableDefinition] = [:]
  /// Columns, by their names in the newer database, whose values are compared and travel as a column of another affinity stores them, if
  /// that loses nothing of them.
  package var affinities: [TableName: [String: Affinity]] = [:]
  /// The rows of tables that may differ, as far as that is known.
  package var candidates: [TableName: CandidateRows] = [:]
  /// Whether a raw changeset that would have to leave rows out for want of definitions is an error, before anything is
  /// written, or noted as sent.
  package var refusesIncomplete = false
  /// Whether databases that share no table may be compared. Otherwise the paths are taken for mixed up.
  public var allowsUnrelated = false

  /// Makes options.
  public init(
    tables: [TableName]? = nil, selections: [TableName: RowSelection] = [:], method: DiffMethod? = nil,
    isRaw: Bool = false, renames: [ColumnRename] = [], keyless: KeylessIdentity = .rowid
  ) {
    self.tables = tables
    self.selections = selections
    self.method = method
    self.isRaw = isRaw
    self.renames = renames
    self.keyless = keyless
  }
}

/// The rows of a table that may differ: elsewhere they are not looked at.
package enum CandidateRows: Equatable, Sendable {
  /// None.
  case none
  /// Those with a key, one integer, in an interval.
  case within(KeyIntervals)
  /// Those with a key in a list.
  case listed(in: KeyList)
}

/// A TEMP table with keys of another table.
package struct KeyList: Equatable, Sendable {
  /// Its name in the schema `temp`.
  package let name: String
  /// How many columns the key has.
  package let columnCount: Int

  package init(name: String, columnCount: Int) {
    self.name = name
    self.columnCount = columnCount
  }

  /// The column that has a column of the key. No other table has one with this name.
  package static func column(_ place: Int) -> String { "buckia_key_\(place)" }

  /// The list as SQL.
  package var sql: String { "temp.\(SQLText.identifier(name))" }
  /// Its columns as SQL, in the order of the key.
  package var columns: [String] { (0..<columnCount).map(Self.column) }
}

/// How far a comparison has come.
public struct DiffProgress: Equatable, Sendable {
  /// The table that is being compared; empty before the first.
  public let table: String
  /// How many rows have been looked at, those of the tables before included.
  public let rows: Int
  /// How many bytes of both files have been read as pages. Where tables are compared row by row, SQLite reads, and they are not
  /// counted.
  public let bytes: Int64
}

/// Tells the caller how far a comparison has come, which is also when the caller can stop it.
final class ProgressReporter {
  private let report: (DiffProgress) throws -> Void
  private var table = ""
  private var rows = 0
  private var bytes: Int64 = 0
  /// How many of the bytes were read since the last poll for them.
  private var bytesSincePoll = 0

  init(_ report: @escaping (DiffProgress) throws -> Void) { self.report = report }

  func beginTable(_ name: String) throws {
    table = name
    try poll()
  }

  /// Notes that so many rows have been looked at.
  func add(rows count: Int) { rows += count }

  /// Notes that so many bytes of pages have been read; polls now and then.
  func add(bytes count: Int) throws {
    bytes += Int64(count)
    bytesSincePoll += count
    guard bytesSincePoll >= 16 << 20 else { return }
    bytesSincePoll = 0
    try poll()
  }

  /// Reports to the caller, who may throw to stop the comparison.
  func poll() throws { try report(DiffProgress(table: table, rows: rows, bytes: bytes)) }
}

/// Counts rows in a loop, and reports every few thousand.
struct RowCounter {
  private let progress: ProgressReporter
  private var rows = 0
  private var turns = 0

  private static let interval = 4_096

  init(_ progress: ProgressReporter) { self.progress = progress }

  /// Counts a row.
  @inline(__always)
  mutating func count() throws {
    rows += 1
    guard rows == Self.interval else { return }
    finish()
    try progress.poll()
  }

  /// Lets the caller stop work on rows that have been counted already.
  @inline(__always)
  mutating func poll() throws {
    turns += 1
    if turns % Self.interval == 0 { try progress.poll() }
  }

  /// Adds the rows since the last report to the next one.
  mutating func finish() {
    progress.add(rows: rows)
    rows = 0
  }
}
