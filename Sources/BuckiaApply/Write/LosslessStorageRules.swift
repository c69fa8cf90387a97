import BuckiaSchemaPlans
import SQLiteChangesets
import SQLiteSchemas

/// Which values a virtual table stores as they are.
///
/// An R-tree makes a number of 32 bits of anything it gets, and a key of anything; what it would alter is refused, as a
/// value that cannot be a rowid is in an ordinary table. See <https://sqlite.org/rtree.html#roundoff_error>.
struct LosslessStorageRules {
  private enum Rule {
    case anything
    /// An integer of 64 bits: a key.
    case key
    case real32
    case integer32
  }

  /// For each column of the changeset.
  private let rules: [Rule]

  /// - Returns: nil for an ordinary table, of which SQLite itself says what it does not take.
  init?(_ match: TableMatch) {
    guard let module = match.local.module else { return nil }
    switch module {
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
    }
  }

  /// Whether all new values of a change do.
  func admit(_ change: DecodedChange, in bytes: RawSpan) -> Bool {
    guard change.operation != .delete else { return true }
    return rules.indices.allSatisfy { column in
      !change.new(column).isDefined || admits(change.new(column), at: column, in: bytes)
    }
  }
}
