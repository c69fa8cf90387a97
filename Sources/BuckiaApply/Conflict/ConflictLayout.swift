import BuckiaBytes
import BuckiaLedger
import SQLiteChangesets
import SQLiteSchemas

/// How the rows of one table stand in its conflicts: the names of their columns, and where a change has their values.
///
/// Made once for a table, when its first conflict is met.
final class ConflictLayout {
  /// The table, the names of the local row's columns, and the places of the key among them.
  let recorded: RecordedRowLayout
  /// For each column of the local row its column in the changeset; -1 for those that only exist here.
  private let sources: [Int]
  /// Whether each column of the changeset belongs to the key.
  private let isKey: [Bool]

  init(name: TableName, columns: [String], key: [Int], sources: [Int], isKey: [Bool]) {
    recorded = RecordedRowLayout(table: name, columns: columns, key: key)
    self.sources = sources
    self.isKey = isKey
  }

  /// The layout of the table that these statements change, with the policies of the table and its columns.
  convenience init(_ statements: TableStatements, _ policies: ConflictPolicies) {
    let columns = statements.match.local.changesetColumns
    var sources = [Int](repeating: -1, count: columns.count)
    for (index, place) in statements.match.columns.enumerated() { sources[place] = index }
    let isKey = statements.isKey
    self.init(
      name: statements.name, columns: columns,
      key: isKey.indices.filter { isKey[$0] }.map { statements.match.columns[$0] }, sources: sources, isKey: isKey)
    affinities = statements.affinities
    rowPolicy = policies.policy(for: name)
    let each = columns.map { policies.policy(for: $0, of: name) }
    columnPolicies = each.allSatisfy { $0 == rowPolicy } ? nil : each
  }

  /// The layout of a table whose rows are only read.
  convenience init(_ table: TableDefinition) {
    self.init(
      name: TableName(table.name), columns: table.changesetColumns, key: table.keyIndexes, sources: [], isKey: [])
  }

  /// The affinity of each column of the local row; empty for a table whose rows are only read.
  private(set) var affinities: [Affinity] = []
  /// The policy for whole rows.
  private(set) var rowPolicy = ConflictPolicy.keepLocal
  /// The policy of each column of the local row, where they differ from each other; nil where all are as for whole rows.
  private(set) var columnPolicies: [ConflictPolicy]?

  /// The policy for the value at a place of the local row.
  func policy(at place: Int) -> ConflictPolicy { columnPolicies?[place] ?? rowPolicy }

  var name: TableName { recorded.table }
  var columns: [String] { recorded.columns }
  var key: [Int] { recorded.key }

  /// The place of a column, whatever the case of its name.
  func place(of column: String) -> Int? { columns.firstIndex { ASCIIName.matches($0, column) } }

  /// Where a change has the old or the new value at a place of the local row; nil when it has none. The key of a row is
  /// among its old values only, but for an INSERT.
  func slice(at place: Int, of change: DecodedChange, isNew: Bool) -> ValueSlice? {
    guard sources.indices.contains(place), sources[place] >= 0 else { return nil }
    let column = sources[place]
    let value = isNew ? change.new(column) : change.old(column)
    if value.isDefined { return value }
    return isNew && isKey[column] && change.old(column).isDefined ? change.old(column) : nil
  }
}
