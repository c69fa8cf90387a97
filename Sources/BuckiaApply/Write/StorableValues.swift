import BuckiaBytes
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Finds incoming values that the local columns would convert to other values, before anything is written.
struct ValueCompatibilityCheck {
  let schema: SchemaPlan
  let mode: SchemaMode
  let renames: ColumnRenames
  let session: ApplySession
  var withheld: SchemaPlan.Withheld = [:]

  /// The plan, once all values have been looked at.
  ///
  /// - Returns: In the mode `hold` a plan that holds the columns with such values, too. In other modes such a value refuses its
  ///   change alone, when that is applied; the plan then knows the rows that cannot be stored.
  func run(_ incoming: IncomingChanges, _ summary: ChangesetSummary) throws -> SchemaPlan {
    let checks = summary.tables.map { schema.matches[TableName($0.table.name)]?.checkedValues ?? [] }
    guard checks.contains(where: { !$0.isEmpty }) else { return schema }
    let sections = TableSections(summary, of: incoming.changeset)
    guard mode == .hold else { return try notingUnstorableRows(summary, sections, checks) }
    var withheld = self.withheld
    var isAnyAltered = false
    for (index, table) in summary.tables.enumerated() where !checks[index].isEmpty {
      let name = TableName(table.table.name)
      guard let match = schema.matches[name] else { continue }
      for check in try altered(name, in: sections, checks[index]) {
        isAnyAltered = true
        withheld[name, default: [:]][check.column - match.local.columnOffset] =
          "is of type \(ASCIIName.uppercased(check.affinity.rawValue)) here, which would alter incoming values"
      }
    }
    guard isAnyAltered, let definitions = incoming.definitions else { return schema }
    return try SchemaPlan(
      definitions: definitions, mode: mode, withholding: withheld, renames: renames, local: session.schema())
  }

  /// The columns with values that would be altered.
  private func altered(
    _ table: TableName, in sections: TableSections, _ checks: [TableMatch.Check]
  ) throws -> [TableMatch.Check] {
    var open = checks
    var found: [TableMatch.Check] = []
    try sections.forEachChange(of: table) { change, bytes in
      guard change.operation != .delete else { return }
      for check in open where Self.alters(change, check, bytes) {
        found.append(check)
        open.removeAll { $0.column == check.column }
      }
    }
    return found
  }

  private static func alters(_ change: DecodedChange, _ check: TableMatch.Check, _ bytes: RawSpan) -> Bool {
    TypeCompatibility.alters(change.new(check.column), in: bytes, affinity: check.affinity)
  }

  /// The plan with the incoming rows that cannot be stored, for tables that also lose rows.
  private func notingUnstorableRows(
    _ summary: ChangesetSummary, _ sections: TableSections, _ checks: [[TableMatch.Check]]
  ) throws -> SchemaPlan {
    var plan = schema
    for (index, table) in summary.tables.enumerated() where table.inserted > 0 && table.deleted > 0 {
      guard !checks[index].isEmpty else { continue }
      var rows: Set<RowIdentity> = []
      let name = TableName(table.table.name)
      try sections.forEachChange(of: name) { change, bytes in
        guard change.operation == .insert, checks[index].contains(where: { Self.alters(change, $0, bytes) }) else {
          return
        }
        rows.insert(RowIdentity(of: change, in: table.table, bytes))
      }
      plan.note(unstorable: rows, in: name)
    }
    return plan
  }
}

/// The values that a table stores without conversion.
///
/// An R-tree converts every value to a number of 32 bits, and every key to an integer
/// (<https://sqlite.org/rtree.html#roundoff_error>). A column with another type here than at the author converts
/// unsuitable values. A value that would be altered is refused, like a value that cannot be a rowid in any table.
struct LosslessStorageRules {
  private enum Rule {
    case anything
    /// An integer of 64 bits: a key.
    case key
    case real32
    case integer32
    /// The values that a column with this affinity stores unchanged.
    case affinity(Affinity)
  }

  /// For each column of the changeset.
  private let rules: [Rule]
  private let match: TableMatch

  /// - Returns: nil for an ordinary table with the author's types, where SQLite itself refuses unsuitable values.
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

  /// True if a value is stored unchanged.
  func admits(_ value: ValueSlice, at column: Int, in bytes: RawSpan) -> Bool {
    switch rules[column] {
    case .anything: return true
    case .key: return value.kind == .integer
    case .integer32: return value.kind == .integer && Int32(exactly: value.integer(in: bytes)) != nil
    case .real32:
      // An integer becomes a real, as in any column of type REAL.
      if value.kind == .integer { return Float(exactly: value.integer(in: bytes)) != nil }
      guard value.kind == .real else { return false }
      let number = value.real(in: bytes)
      return Double(Float(number)) == number
    case .affinity(let affinity): return !TypeCompatibility.alters(value, in: bytes, affinity: affinity)
    }
  }

  /// The first column of the changeset whose new value would be altered; nil if none would.
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
    let declared = local.columns[place - local.columnOffset]
    let type = declared.declaredType.isEmpty ? "no type" : "the type \(declared.declaredType)"
    return "column \(local.name).\(declared.name) has \(type) here and would store another value than the one that came"
  }
}

extension ValueSlice {
  /// True if a database that stores UTF-16 returns the text unchanged.
  ///
  /// Text in a UTF-8 database can be any bytes. On conversion SQLite writes U+FFFD for bytes that are not UTF-8, and
  /// also for U+FFFE and U+FFFF, which are not characters.
  func survivesUTF16(in bytes: RawSpan) -> Bool {
    bytes.extracting(payloadRange).withUnsafeBytes { text in
      guard text.contains(where: { $0 >= 0x80 }) else { return true }
      guard String(decoding: text, as: UTF8.self).utf8.elementsEqual(text) else { return false }
      return !text.indices.dropLast(2).contains {
        text[$0] == 0xef && text[$0 + 1] == 0xbf && text[$0 + 2] >= 0xbe
      }
    }
  }
}
