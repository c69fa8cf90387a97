import BuckiaBytes

/// Which rows have which values under the UNIQUE constraints of a table in the end, and which side has given these to them.
struct UniqueClaims {
  /// The constraint and its values, the row's key, and which sides have set them.
  private static let record = ChangesetTable(name: "", keyFlags: [1, 0, 0])

  private struct Sides: OptionSet {
    let rawValue: Int64
    static let local = Sides(rawValue: 1)
    static let incoming = Sides(rawValue: 2)
  }

  /// The key of a row, and the sides that have set the values.
  private typealias Claim = (key: [UInt8], sides: Sides)

  /// The rows that have to give way, by key, with the columns that they lose.
  private(set) var losers: [[UInt8]: Set<Int>] = [:]
  private let rules: RebaseTable
  /// For each constraint the collating sequences of its columns.
  private let collations: [[RebaseTable.Collation]]
  private let limits: ChangeSorter.Limits
  private var records: SpooledChanges
  /// For each constraint, which sides have set columns of it.
  private var active: [Sides]
  /// The rows that share values, if it is undecided which of them gives way: by key, the constraints.
  private var undecided: [[UInt8]: Set<Int>] = [:]

  init(_ rules: RebaseTable, like source: TemporaryBuffer, limits: ChangeSorter.Limits) {
    self.rules = rules
    collations = rules.unique.map { $0.map(rules.collation) }
    self.limits = limits
    records = SpooledChanges(in: source.makeEmpty())
    active = Array(repeating: [], count: rules.unique.count)
  }

  /// Adds what a row has in the end.
  mutating func add(_ row: RebasedRow, in bytes: RawSpan) throws(ByteStreamError) {
    guard let merged = row.merge.merged else { return }
    for (constraint, columns) in rules.unique.enumerated() {
      let sides = Self.sides(of: row, columns, in: bytes)
      active[constraint].formUnion(sides)
      guard let tuple = merged.comparable(columns, collations[constraint], in: bytes) else { continue }
      records.writer.beginChange(.insert)
      records.writer.append(blob: withUnsafeBytes(of: UInt32(constraint).bigEndian) { Array($0) } + tuple)
      records.writer.append(blob: row.key)
      records.writer.append(integer: sides.rawValue)
      try records.endChange()
    }
  }

  private static func sides(of row: RebasedRow, _ columns: [Int], in bytes: RawSpan) -> Sides {
    var sides: Sides = []
    if row.merge.isSet(columns, by: .keepLocal, in: bytes) { sides.insert(.local) }
    if row.merge.isSet(columns, by: .takeIncoming, in: bytes) { sides.insert(.incoming) }
    return sides
  }

  /// Looks which rows share values, and decides who of them gives way.
  mutating func settle(_ policy: RebasePolicy, poll: () throws -> Void) throws {
    var sorter = try records.sorted(as: Self.record, limits: limits, poll: poll)
    while try sorter.advance() {
      try poll()
      sorter.bytes.withRawSpan { bytes in
        var tuple: [UInt8] = []
        var claims: [Claim] = []
        while let record = sorter.next(in: bytes) {
          var position = record.values
          let next = bytes.array(ValueSlice(verified: bytes, at: &position).payloadRange)
          let key = bytes.array(ValueSlice(verified: bytes, at: &position).payloadRange)
          let sides = Sides(rawValue: ValueSlice(verified: bytes, at: &position).integer(in: bytes))
          if next != tuple {
            decide(claims, on: tuple, policy)
            (tuple, claims) = (next, [])
          }
          claims.append((key, sides))
        }
        decide(claims, on: tuple, policy)
      }
    }
  }

  private mutating func decide(_ claims: [Claim], on tuple: [UInt8], _ policy: RebasePolicy) {
    guard claims.count > 1, tuple.count >= 4 else { return }
    let constraint = tuple[..<4].reduce(0) { $0 << 8 | Int($1) }
    let (winning, losing): (Sides, Sides) = policy == .keepLocal ? (.local, .incoming) : (.incoming, .local)
    let involved = claims.filter { $0.sides.contains(losing) }
    // A row that both sides have a part in stays, if others can give way.
    let only = involved.filter { !$0.sides.contains(winning) }
    // What one side alone has made is as it wants it.
    guard only.count < claims.count else { return }
    let giving = only.isEmpty ? Array(involved.dropFirst(involved.count == claims.count ? 1 : 0)) : only
    guard !giving.isEmpty else {
      for claim in claims { undecided[claim.key, default: []].insert(constraint) }
      return
    }
    for claim in giving { losers[claim.key, default: []].formUnion(rules.unique[constraint]) }
  }

  /// The constraints, as lists of columns, for which it is unknown if the values of a row are unique.
  func undecidedColumns(of row: RebasedRow, in bytes: RawSpan) -> [[Int]] {
    guard let merged = row.merge.merged else { return [] }
    return rules.unique.indices.compactMap { constraint in
      let columns = rules.unique[constraint]
      if undecided[row.key]?.contains(constraint) == true { return columns }
      guard active[constraint] == [.local, .incoming], !Self.sides(of: row, columns, in: bytes).isEmpty,
        columns.contains(where: { !merged[$0].isDefined })
      else { return nil }
      return columns
    }
  }
}

/// Rows that are left out, by the columns that foreign keys refer to.
struct LostRows {
  /// Columns of a parent table that some foreign key refers to.
  private struct Target: Hashable {
    /// The name of the table, folded as SQLite compares names.
    let table: [UInt8]
    let columns: [Int]
  }

  /// The values of the columns, and the collating sequences that they are compared with.
  private var values: [Target: Set<[UInt8]>] = [:]
  private var collations: [Target: [RebaseTable.Collation]] = [:]
  private(set) var count = 0

  /// - Parameter tables: The tables with their foreign keys.
  init(_ tables: [RebaseTable]) {
    for reference in tables.flatMap(\.references) {
      let target = Target(table: Self.folded(reference.parent), columns: reference.parentColumns)
      values[target] = []
      let parent = tables.table(named: reference.parent)
      collations[target] = reference.parentColumns.map { parent?.collation(of: $0) ?? .binary }
    }
  }

  private static func folded(_ name: String) -> [UInt8] { name.utf8.map(ASCIIName.folded) }

  /// True if any foreign key refers to a table.
  func refer(to table: String) -> Bool {
    let name = Self.folded(table)
    return values.keys.contains { $0.table == name }
  }

  /// Adds a row that is left out.
  mutating func add(_ row: [ValueSlice], of table: String, _ rules: RebaseTable?, in bytes: RawSpan) {
    let name = Self.folded(table)
    for target in values.keys where target.table == name {
      guard let tuple = row.comparable(target.columns, collations[target] ?? [], in: bytes) else { continue }
      if values[target, default: []].insert(tuple).inserted { count += 1 }
    }
  }

  /// True if a row refers to one that is left out.
  func contains(_ row: [ValueSlice], _ reference: RebaseTable.Reference, in bytes: RawSpan) -> Bool {
    let target = Target(table: Self.folded(reference.parent), columns: reference.parentColumns)
    guard let lost = values[target], !lost.isEmpty,
      let tuple = row.comparable(reference.columns, collations[target] ?? [], in: bytes)
    else { return false }
    return lost.contains(tuple)
  }
}

extension [ValueSlice] {
  /// The values of some columns of a row as collating sequences compare them; nil where one is not known, or NULL, which equals nothing.
  fileprivate func comparable(
    _ columns: [Int], _ collations: [RebaseTable.Collation], in bytes: RawSpan
  ) -> [UInt8]? {
    var tuple: [UInt8] = []
    for (column, collation) in zip(columns, collations) {
      guard indices.contains(column), self[column].isDefined, self[column].kind != .null else { return nil }
      self[column].appendComparable(collation, in: bytes, to: &tuple)
    }
    return tuple
  }
}
