import BuckiaApply
import BuckiaLedger

/// Goes through the names of the rows of a diff, change by change.
struct NameRuns {
  /// What a replica calls a row.
  struct Name {
    let replica: [UInt8]
    /// Its integer key there, where it is another one than in the change.
    let key: Int64?
    /// The hash of the row as it was last taken from there; nil where it has not changed since.
    let version: UInt64?
    /// The counts of rows with its content; nil for a row with a key.
    let copies: CopyCounts.Count?
  }

  private let runs: [RowNaming.Run]
  private var index = 0
  private var place = 0

  init(_ runs: [RowNaming.Run]) { self.runs = runs }

  /// What the row of the next change is called.
  mutating func next() -> [Name] {
    while index < runs.count, Int64(place) == runs[index].count {
      index += 1
      place = 0
    }
    guard index < runs.count else { return [] }
    defer { place += 1 }
    return runs[index].names.map {
      Name(
        replica: $0.replica, key: $0.keys.isEmpty ? nil : $0.keys[place],
        version: $0.versions.isEmpty ? nil : $0.versions[place], copies: $0.copies)
    }
  }
}
