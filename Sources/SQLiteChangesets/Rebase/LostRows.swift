import BuckiaBytes

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

  /// Whether any foreign key refers to a table.
  func refer(to table: String) -> Bool {
    let name = Self.folded(table)
    return values.keys.contains { $0.table == name }
  }

  /// Adds a row that is left out.
  mutating func add(_ row: [ValueSlice], of table: String, _ rules: RebaseTable?, in bytes: RawSpan) {
    let name = Self.folded(table)
    for target in values.keys where target.table == name {
      guard let tuple = tuple(of: row, target.columns, target, in: bytes) else { continue }
      if values[target, default: []].insert(tuple).inserted { count += 1 }
    }
  }

  /// Whether a row refers to one that is left out.
  func contains(_ row: [ValueSlice], _ reference: RebaseTable.Reference, in bytes: RawSpan) -> Bool {
    let target = Target(table: Self.folded(reference.parent), columns: reference.parentColumns)
    guard let lost = values[target], !lost.isEmpty, let tuple = tuple(of: row, reference.columns, target, in: bytes)
    else { return false }
    return lost.contains(tuple)
  }

  /// The values of some columns as the parent compares them; nil where one is NULL or not known.
  private func tuple(
    of row: [ValueSlice], _ columns: [Int], _ target: Target, in bytes: RawSpan
  ) -> [UInt8]? {
    var tuple: [UInt8] = []
    for (column, collation) in zip(columns, collations[target] ?? []) {
      guard row.indices.contains(column), row[column].isDefined, row[column].kind != .null else { return nil }
      row[column].appendComparable(collation, in: bytes, to: &tuple)
    }
    return tuple
  }
}
