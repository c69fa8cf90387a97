import SQLiteSchemas
import SQLiteChangesets

/// Which values a table stores as they are.
///
/// An R-tree makes a number of 32 bits of anything it gets, and a key of anything
/// (<https://sqlite.org/rtree.html#roundoff_error>). A column that has another type here than its author gave it converts what
/// does not suit it. What would be altered is refused, as a value that cannot be a rowid is in any table.
struct LosslessStorageRules {
  private enum Rule {
    case anything
    /// An integer of 64 bits: a key.
    case key
    case real32
    case integer32
    /// What a column of this affinity leaves as it is.
    case affinity(Affinity)
  }

  /// For each column of the changeset.
  private let rules: [Rule]
  private let match: TableMatch

  /// - Returns: nil for an ordinary table of the author's types, of which SQLite itself says what it does not take.
  init?(_ match: TableMatch) {
    self.match = match
    switch match.local.module {
    case nil:
      guard !match.checkedValues.isEmpty else { return nil }
      let affinities = Dictionary(match.checkedValues.map { ($0.place, $0.affinity) }) { first, _ in first }
      rules = match.columns.map { affinities[$0].map(Rule.affinity) ?? .anything }
    case .fullText: rules = match.columns.map { $0 == 0 ? .key : .anything }
    case .spatial(let index):
      rules = match.columns.map { place in
        if place == 0 { return .key }
        guard place <= index.coordinates else { return .anything }
        return index.kind == .real ? .real32 : .integer32
      }
    }
  }

  /// Whether a value comes out as it went in.
  func admits(_ value: ValueSlice, at column: Int, in bytes: RawSpan) -> Bool {
    switch rules[column] {
    case .anything: return true
    case .key: return value.kind == .integer
    case .integer32: return value.kind == .integer && Int32(exactly: value.integer(in: bytes)) != nil
    case .real32:
      // An integer comes out as a real, as it does of any column of type REAL.
      if value.kind == .integer { return Float(exactly: value.integer(in: bytes)) != nil }
      guard value.kind == .real else { return false }
      let number = value.real(in: bytes)
      return Double(Float(number)) == number
    case .affinity(let affinity): return !TypeCompatibility.alters(value, in: bytes, affinity: affinity)
    }
  }

  /// The first column of the changeset whose new value would be altered; nil when none would.
  func refusedColumn(of change: DecodedChange, in bytes: RawSpan) -> Int? {
    guard change.operation != .delete else { return nil }
    return rules.indices.first { column in
      change.new(column).isDefined && !admits(change.new(column), at: column, in: bytes)
    }
  }

  /// Why the value of a column is refused, for people.
  func reason(ofRefusing column: Int) -> String {
    let local = match.local
    guard local.module == nil else {
      return "the virtual table \(local.name) would store another value than the one that came"
    }
    let place = match.columns[column]
    let declared = local.columns[place - (local.isKeyedByRowID ? 1 : 0)]
    let type = declared.declaredType.isEmpty ? "no type" : "the type \(declared.declaredType)"
    return "column \(local.name).\(declared.name) has \(type) here and would store another value than the one that came"
  }
}
