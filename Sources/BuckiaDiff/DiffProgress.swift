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
