import Buckia
import BuckiaDiff
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// A person's own database to measure with: copies of it, and changes to its rows that could have happened.
///
/// The file itself is only read, once. Everything else happens to copies in a folder of the caller's.
public final class OwnDatabase {
  /// A table that was changed.
  public struct Table: Sendable {
    /// Its name.
    public let name: String
    /// How many rows it has.
    public let rows: Int
    /// How many of them changed.
    public let counts: ChangeCounts
  }

  /// How many tables are measured at most: the largest.
  public static let tableLimit = 5

  /// The file that was copied.
  public let path: String
  /// The size of the copy in bytes.
  public let bytes: Int
  /// The tables that were changed, the largest first.
  public let tables: [Table]
  /// Tables that were left alone, and why.
  public let leftOut: [SkippedItem]
  /// The copy as it was before the changes, and as it is after them.
  let older: String
  let newer: String
  /// What SQLite's session extension recorded of the changes.
  let recorded: StockChangeset

  /// Copies a database and changes rows of the copy at random, the same rows in every run.
  ///
  /// - Parameters:
  ///   - path: The database. It is opened for reading only.
  ///   - changing: How many rows to change in all; one in a hundred for nil.
  ///   - folder: Where the copies go: three of them stay, and each run makes one more for a while.
  ///   - progress: Is told what happens.
  /// - Throws: `BuckiaError` when there is no such file; `SQLiteError` when it cannot be read or copied; `BenchmarkError` with `nothingToMeasure` when
  ///   none of its tables can be measured.
  public init(
    copying path: String, changing: Int? = nil, in folder: ScratchFolder, progress: (String) -> Void = { _ in }
  ) throws {
    self.path = path
    try DatabaseManager(path).requireFile()
    let original = folder.newFile()
    (older, newer) = (folder.newFile(), folder.newFile())
    progress("Copying \(path)…")
    try SnapshotReader.open(path).copy(to: original)
    try Self.copy(original, to: older)
    let choice = try TableChoice(of: original)
    var random = SeededGenerator(seed: 3)
    let total = choice.candidates.reduce(0) { $0 + $1.rows }
    let wanted = changing ?? max(20, total / 100)
    var alterations: [(table: TableChoice.Candidate, rows: ChosenRows)] = []
    var leftOut = choice.leftOut
    for candidate in choice.candidates {
      progress("Choosing rows of \(candidate.definition.name)…")
      let share = max(1, Int(Double(wanted) * Double(candidate.rows) / Double(max(1, total))))
      let rows = try ChosenRows(min(share, candidate.rows), of: candidate, in: original, using: &random)
      do {
        try rows.withholdInsertions(from: older)
        alterations.append((candidate, rows))
      } catch {
        leftOut.append(
          SkippedItem(name: candidate.definition.name, reason: "its rows cannot be changed: \(error.message)"))
      }
    }
    try Self.copy(older, to: newer)
    progress("Changing rows…")
    let author = try Author(changing: newer, with: original)
    var tables: [Table] = []
    for (candidate, rows) in alterations {
      do {
        let counts = try author.change(rows)
        guard counts.total > 0 else { continue }
        tables.append(Table(name: candidate.definition.name, rows: candidate.rows, counts: counts))
      } catch {
        leftOut.append(
          SkippedItem(name: candidate.definition.name, reason: "its rows cannot be changed: \(error.message)"))
      }
    }
    recorded = StockChangeset(try author.recorded())
    guard !tables.isEmpty else {
      let reasons = leftOut.map { "\($0.name): \($0.reason)" }.joined(separator: "; ")
      throw BenchmarkError(
        .nothingToMeasure,
        "\(path): none of its tables can be measured\(reasons.isEmpty ? ", since it has none" : " (\(reasons))")")
    }
    self.tables = tables
    self.leftOut = leftOut
    let reader = try SQLiteConnection(opening: older, as: .readOnly)
    bytes = try Int((reader.integer("PRAGMA page_count") ?? 0) * (reader.integer("PRAGMA page_size") ?? 0))
  }

  private static func copy(_ path: String, to copy: String) throws(SQLiteError) {
    try SQLiteConnection(opening: path, as: .readOnly).copy(to: copy)
  }

  /// One hash for all measured tables of a database.
  func content(on connection: borrowing SQLiteConnection) throws -> UInt64 {
    var sum: UInt64 = 0
    for table in tables { sum = sum &* 31 &+ (try ContentHash.of(table.name, on: connection)) }
    return sum
  }
}
