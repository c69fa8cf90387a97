import SQLiteSchemas

/// How the difference of two tables is found. All methods find the same one.
public enum DiffMethod: String, Codable, Sendable, CaseIterable {
  /// Reads both files once, and looks only at rows on pages that differ. Tables that it cannot compare take `rows`.
  case pages
  /// A merge join of two ordered scans. Works for every table.
  case rows
  /// `sqlite3session_diff`. Tables that it cannot compare, and those that it would get wrong, take `rows`.
  case session
}

/// The progress of a comparison.
public struct DiffProgress: Equatable, Sendable {
  /// The table that is being compared; empty before the first.
  public let table: String
  /// The number of compared rows, with those of earlier tables.
  public let rows: Int
  /// The number of bytes of both files that were read as pages. Rows that SQLite reads are not counted.
  public let bytes: Int64
}

/// Reports the progress of a comparison to the caller, who can also stop it then.
final class ProgressReporter {
  private let report: (DiffProgress) throws -> Void
  private var table = ""
  private var rows = 0
  private var bytes: Int64 = 0
  /// The number of bytes read since the last report.
  private var bytesSincePoll = 0

  init(_ report: @escaping (DiffProgress) throws -> Void) { self.report = report }

  func beginTable(_ name: String) throws {
    table = name
    try poll()
  }

  /// Adds compared rows.
  func add(rows count: Int) { rows += count }

  /// Adds bytes of read pages, and reports at intervals.
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
