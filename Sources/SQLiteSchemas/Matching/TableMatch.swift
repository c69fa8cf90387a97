import SQLiteChangesets

/// How the columns of one incoming table meet those of the local one.
package struct TableMatch: Sendable {
  /// A column whose values must be looked at.
  package struct Check: Sendable {
    /// Its index in the changeset as it arrives.
    package let column: Int
    /// Its place in the local layout.
    package let place: Int
    /// The affinity it has there.
    package let affinity: Affinity
  }

  /// The local table, as it will be once the steps have been carried out.
  package let local: TableDefinition
  /// For each column of the changeset, without those that are held, its place in the local layout:
  /// `local.changesetColumns`.
  package let columns: [Int]
  /// Columns whose values must be looked at.
  package let checkedValues: [Check]
  /// Rows that come in and cannot be stored, since a column would make another value of theirs. What the same diff deletes
  /// under their identity stays: else a row whose key has another type here would be gone.
  package internal(set) var unstorableRows: Set<RowIdentity> = []

  /// True if the changes name all columns of the local rows.
  package var isComplete: Bool { columns.count == local.columns.count + (local.isKeyedByRowID ? 1 : 0) }
  /// The local names of the columns of the changes.
  package var columnNames: [String] {
    let names = local.changesetColumns
    return columns.map { names[$0] }
  }
}

extension TableMatch {
  /// Matches a table with itself.
  package init(unchanged table: TableDefinition) {
    self.init(table, columns: Array(table.changesetColumns.indices))
  }

  /// Matches some columns of a table with itself.
  ///
  /// - Parameter columns: Their places in the local layout.
  package init(_ table: TableDefinition, columns: [Int]) {
    self.init(local: table, columns: columns, checkedValues: [])
  }
}

/// What of an incoming table has no place here and is to be held.
package struct HeldTable: Sendable {
  /// The table as its author has it.
  package let definition: TableDefinition
  /// Which of its columns are unknown: indexes into `definition.columns`. All of them where the table is.
  package let columns: [Int]
  /// True if nothing of the table can be applied.
  package let isWhole: Bool
  /// Why, for people.
  package let reason: String

  /// All of a table.
  package init(whole definition: TableDefinition, because reason: String) {
    self.definition = definition
    self.reason = reason
    columns = Array(definition.columns.indices)
    isWhole = true
  }

  /// Some columns of a table.
  package init(_ columns: [Int], of definition: TableDefinition, because reason: String) {
    self.definition = definition
    self.columns = columns
    self.reason = reason
    isWhole = false
  }

  /// The table without what is unknown.
  package var known: TableDefinition {
    var known = definition
    for column in columns { known.removeColumn(named: definition.columns[column].name) }
    return known
  }
}

/// True if the values of an incoming column survive in a local column of another type.
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

  /// True if a column of this affinity would store the value as something else.
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

/// What identifies a row, whatever the types of its columns: `'5'`, `5` and `5.0` are the same.
///
/// An author who gives a column another type converts its values, and a row whose key was converted travels as a DELETE and
/// an INSERT. This is how the two are known to be about one row. It is a hash: two rows can have the same one by chance.
package struct RowIdentity: Hashable, Sendable {
  private let hash: Int

  /// - Parameters:
  ///   - values: The values that identify the row, in the order of their columns.
  ///   - bytes: The bytes in which they lie.
  package init(_ values: [ValueSlice], in bytes: RawSpan) {
    var hasher = Hasher()
    for value in values {
      switch value.kind {
      case .undefined, .null: hasher.combine(0)
      case .integer: Self.combine(value.integer(in: bytes), into: &hasher)
      case .real: Self.combine(value.real(in: bytes), into: &hasher)
      case .text:
        let text = bytes.array(value.payloadRange)
        if let number = SQLText.trimmedNumber(text) {
          Self.combine(number, into: &hasher)
        } else {
          hasher.combine(text)
        }
      case .blob:
        hasher.combine(1)
        hasher.combine(bytes.array(value.payloadRange))
      }
    }
    hash = hasher.finalize()
  }

  private static func combine(_ number: String, into hasher: inout Hasher) {
    if let integer = Int64(number) {
      combine(integer, into: &hasher)
    } else {
      combine(Double(number) ?? .nan, into: &hasher)
    }
  }

  private static func combine(_ number: Int64, into hasher: inout Hasher) {
    hasher.combine(2)
    hasher.combine(number)
  }

  private static func combine(_ number: Double, into hasher: inout Hasher) {
    if let integer = Int64(exactly: number) { return combine(integer, into: &hasher) }
    hasher.combine(3)
    hasher.combine(number.bitPattern)
  }
}
