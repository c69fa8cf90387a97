import Buckia
import BuckiaDiff
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Copies of a user's database, one of them with random changes to its rows.
///
/// The database itself is only read, once. All else happens to copies in the caller's folder.
package final class UserDatabase {
  /// A table that was changed.
  package struct Table: Sendable {
    /// Its name.
    package let name: String
    /// How many rows it has.
    package let rows: Int
    /// How many of them changed.
    package let counts: ChangeCounts
  }

  /// The file that was copied.
  package let path: String
  /// The size of the copy in bytes.
  package let bytes: Int
  /// The tables that were changed, the largest first.
  package let tables: [Table]
  /// The tables that were left out, each with the reason.
  package let leftOut: [SkippedItem]
  /// The copies before and after the changes.
  let older: String
  let newer: String
  /// What SQLite's session extension recorded of the changes.
  let recorded: StockChangeset

  /// Copies a database and changes random rows of the copy: the same rows in every run.
  ///
  /// - Parameters:
  ///   - path: The database. It is opened for reading only.
  ///   - changing: How many rows to change in all; one in a hundred for nil.
  ///   - folder: Where the copies go. Three stay; each run makes one more for a while.
  ///   - progress: Called with the name of each step.
  /// - Throws: `BuckiaError` when there is no such file; `SQLiteError` when it cannot be read or copied; `BuckiaError` with `nothingToMeasure` when
  ///   none of its tables can be measured.
  package init(
    copying path: String, changing: Int? = nil, in folder: ScratchFolder, progress: (String) -> Void = { _ in }
  ) throws {
    self.path = path
    try DatabaseManager(path).requireFile()
    let original = folder.newFile()
    (older, newer) = (folder.newFile(), folder.newFile())
    progress("Copying \(path)…")
    try SQLiteConnection.reading(path).copy(to: original)
    try Self.copy(original, to: older)
    let selection = try TableSelection(of: original)
    var random = SeededGenerator(seed: 3)
    let total = selection.candidates.reduce(0) { $0 + $1.rows }
    let wanted = changing ?? max(20, total / 100)
    var alterations: [(table: TableSelection.Candidate, rows: RowSample)] = []
    var leftOut = selection.leftOut
    for candidate in selection.candidates {
      progress("Choosing rows of \(candidate.definition.name)…")
      let share = max(1, Int(Double(wanted) * Double(candidate.rows) / Double(max(1, total))))
      let rows = try RowSample(min(share, candidate.rows), of: candidate, in: original, using: &random)
      do {
        try rows.deleteInsertions(from: older)
        alterations.append((candidate, rows))
      } catch {
        leftOut.append(
          SkippedItem(name: candidate.definition.name, reason: "its rows cannot be changed: \(error.message)"))
      }
    }
    try Self.copy(older, to: newer)
    progress("Changing rows…")
    let recorder = try ChangeRecorder(changing: newer, with: original)
    var tables: [Table] = []
    for (candidate, rows) in alterations {
      do {
        let counts = try recorder.change(rows)
        guard counts.total > 0 else { continue }
        tables.append(Table(name: candidate.definition.name, rows: candidate.rows, counts: counts))
      } catch {
        leftOut.append(
          SkippedItem(name: candidate.definition.name, reason: "its rows cannot be changed: \(error.message)"))
      }
    }
    recorded = StockChangeset(try recorder.changeset())
    guard !tables.isEmpty else {
      let reasons = leftOut.map { "\($0.name): \($0.reason)" }.joined(separator: "; ")
      throw BuckiaError(
        .nothingToMeasure,
        "\(path): none of its tables can be measured\(reasons.isEmpty ? ", since it has none" : " (\(reasons))")")
    }
    self.tables = tables
    self.leftOut = leftOut
    let reader = try SQLiteConnection(opening: older, as: .readOnly)
    bytes = try Int((reader.integer("PRAGMA page_count") ?? 0) * (reader.integer("PRAGMA page_size") ?? 0))
  }

  private static func copy(_ path: String, to copy: String) throws {
    try SQLiteConnection(opening: path, as: .readOnly).copy(to: copy)
  }

  /// One hash for all measured tables of a database.
  func content(on connection: borrowing SQLiteConnection) throws -> UInt64 {
    var sum: UInt64 = 0
    for table in tables { sum = sum &* 31 &+ (try ContentHash.of(table.name, on: connection)) }
    return sum
  }
}
