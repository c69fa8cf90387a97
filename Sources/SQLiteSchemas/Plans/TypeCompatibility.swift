import SQLiteChangesets

/// Whether the values of an incoming column survive in a local column of another type.
///
/// SQLite converts values by the affinity of the column they are stored in
/// (<https://sqlite.org/datatype3.html#type_affinity>). A value that would be altered is no longer what its author
/// wrote, so it is a conflict, or held, not silently changed. Numbers that stay equal (1 and 1.0) are fine.
package enum TypeCompatibility: Equatable {
  /// Every value stays what it is.
  case safe
  /// Some values could be altered: each must be looked at.
  case dependsOnValues
  /// Text on one side, numbers on the other: an application's own upgrade will convert what is there.
  case contradictory

  /// Judges the affinities of two columns.
  package init(incoming: Affinity, local: Affinity) {
    switch (incoming, local) {
    case (_, .blob): self = .safe
    case (let first, let second) where first == second: self = .safe
    case (.integer, .numeric), (.numeric, .integer), (.real, .integer), (.real, .numeric): self = .safe
    case (.text, .integer), (.text, .real), (.integer, .text), (.real, .text): self = .contradictory
    default: self = .dependsOnValues
    }
  }

  /// Whether a column of this affinity would store the value as something else.
  package static func alters(_ value: ValueSlice, in bytes: RawSpan, affinity: Affinity) -> Bool {
    switch (value.kind, affinity) {
    case (.integer, .text), (.real, .text): return true
    case (.integer, .real):
      let integer = value.integer(in: bytes)
      return Int64(exactly: Double(integer)) != integer
    case (.text, .integer), (.text, .real), (.text, .numeric):
      return SQLText.trimmedNumber(bytes.array(value.payloadRange)) != nil
    default: return false
    }
  }
}
