import BuckiaSchemaPlans
import SQLiteConnections
import SQLiteSchemas

/// Takes the rows of one table that refer to others that are not there, or are others than before, each once as either.
struct BrokenRows {
  /// By which foreign key a row refers to another.
  struct Reference {
    /// The table that is referred to, and its columns.
    var parent = ""
    var columns: [String] = []
    /// The places of their values in the layout of the row; -1 for generated columns.
    var places: [Int] = []
  }

  /// How many refer to nothing, and how many to another row than before.
  var violations: Int { missing.count }
  var replacements: Int { replaced.count }
  /// Whether the rows that come now refer to another row than before.
  var isReplaced = false
  /// The most rows of one table that are recorded one by one.
  private static let limit = 10_000
  private let layout: ConflictLayout
  private let decider: ConflictDecider
  /// Whether the query gives the whole row before what tells it apart; SQLite has no room for that of the widest tables.
  private let hasRow: Bool
  private var reference = Reference()
  /// What tells the rows apart that refer to nothing, and those that refer to another row than before. By two foreign keys a
  /// row can do both.
  private var missing: Set<UInt64> = []
  private var replaced: Set<UInt64> = []

  init(of child: TableDefinition, hasRow: Bool, _ decider: ConflictDecider) {
    layout = ConflictLayout(child)
    self.hasRow = hasRow
    self.decider = decider
  }

  /// Says by which foreign key the rows that come now refer to others.
  mutating func begin(_ reference: Reference) {
    self.reference = reference
    isReplaced = false
  }

  /// Records the row that the statement stands on; behind its columns stands what tells it apart.
  ///
  /// - Throws: `SQLiteError`; `ReplicationError` with `conflict` when violations are refused unasked.
  mutating func add(_ prepared: PreparedStatement) throws {
    let identity = hasRow ? layout.columns.count : 0
    let number = RowNumber.read(prepared.statement, from: identity)
    guard isReplaced ? replaced.insert(number).inserted : missing.insert(number).inserted else { return }
    let row = hasRow ? CurrentRow([prepared]) : nil
    if !isReplaced, decider.refusesViolationsUnasked {
      throw ReplicationError(
        .conflict, "\(reason(row)); under the policy \"abort\" nothing of this file is applied", table: layout.name.text
      )
    }
    guard violations + replacements <= Self.limit else { return }
    try decider.recordViolation(row, layout, message: reason(row))
  }

  private func reason(_ row: CurrentRow?) -> String {
    let values = reference.places.map { place in place >= 0 ? row?.value(at: place) : nil }
    let parent = RowName(table: reference.parent, columns: reference.columns, values: values)
    return isReplaced
      ? "it refers to \(parent), which is another row now: it was replaced"
      : "it refers to \(parent), which is not there"
  }

  /// Says how many were not written down.
  func finish() throws {
    let unrecorded = violations + replacements - Self.limit
    guard unrecorded > 0 else { return }
    let parents = replaced.isEmpty ? "rows that are not there" : "rows that are not there or were replaced"
    try decider.recordViolation(
      nil, layout,
      message: "\(unrecorded) more rows of table \"\(layout.name)\" refer to \(parents); see PRAGMA foreign_key_check")
  }
}
