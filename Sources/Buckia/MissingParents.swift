import BuckiaBytes
import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Finds, for rows that refer to others that are not there, which these are, and which conflict has left them out.
final class MissingParents {
  /// A foreign key: the parent, and the columns on both sides.
  private struct Reference: Hashable {
    let parent: String
    var childColumns: [String] = []
    var parentColumns: [String] = []
  }

  private let connection: SQLiteConnection
  private let constraints: ViolatedConstraints
  private var references: [String: [Reference]] = [:]
  /// The first and the last conflict of each diff, by its ledger entry.
  private lazy var bounds = Result { try ConflictRecord.bounds(on: connection) }
  /// The diff whose conflicts came last, and its conflicts that have left a row out: by the foreign key that refers to such
  /// rows, and a hash of the values that it refers to.
  private var entry: Int64?
  private var omitted: [Reference: [Int: Int64]] = [:]

  init(on connection: borrowing SQLiteConnection) {
    self.connection = SQLiteConnection(sharing: connection)
    constraints = ViolatedConstraints(on: connection)
  }

  /// A conflict with the constraint that it is about, and the missing row where it is of the kind `foreignKey`. Those of one diff
  /// are best given one after the other.
  ///
  /// - Throws: `SQLiteError`; `ChangesetError` when a record is damaged.
  func named(in record: ConflictRecord) throws -> ConflictRecord {
    guard record.kind == .foreignKey else { return try constraints.named(in: record) }
    var record = record
    guard let reference = try reference(of: record) else { return record }
    record.parent = try parent(of: record, by: reference)
    var constraint = ViolatedConstraint(.foreignKey)
    constraint.columns = reference.childColumns
    constraint.parentTable = reference.parent
    constraint.parentColumns = reference.parentColumns
    record.constraint = constraint
    return record
  }

  /// The foreign key that a conflict is about.
  private func reference(of record: ConflictRecord) throws -> Reference? {
    guard let row = Self.referringRow(of: record) else { return nil }
    return try references(of: record.table).first { reference in
      (record.reason?.contains("\"\(reference.parent)\"") ?? true)
        && reference.childColumns.allSatisfy { Self.value(of: $0, in: row) != nil }
    }
  }

  private func parent(of record: ConflictRecord, by reference: Reference) throws -> MissingParent? {
    guard let row = Self.referringRow(of: record) else { return nil }
    let values = reference.childColumns.compactMap { Self.value(of: $0, in: row) }
    let key = zip(reference.parentColumns, values).map { (column: $0, value: Optional($1)) }
    let cause = try conflicts(of: record.entry, leavingOut: reference)[values.hashValue]
    return MissingParent(table: reference.parent, key: key, conflict: cause)
  }

  /// The row that refers to another: the one that stands here, or the one that its author wants.
  private static func referringRow(of record: ConflictRecord) -> [ConflictRecord.Cell]? {
    guard record.outcome != .reported, let incoming = record.incoming else { return record.local }
    return incoming.enumerated().map { place, cell in
      (cell.column, cell.value ?? record.local.flatMap { $0.indices.contains(place) ? $0[place].value : nil })
    }
  }

  /// The conflicts of a diff that have left out rows of a parent, by a hash of the values that are referred to: the first of
  /// each.
  private func conflicts(of entry: Int64, leavingOut reference: Reference) throws -> [Int: Int64] {
    if self.entry != entry {
      self.entry = entry
      omitted = [:]
    }
    if let known = omitted[reference] { return known }
    var found: [Int: Int64] = [:]
    if let bounds = try bounds.get()[entry] {
      var selection = ConflictSelection()
      selection.table = reference.parent
      selection.entry = entry
      selection.numbers = bounds
      try ConflictRecord.forEach(selection, on: connection) { record in
        guard record.kind != .foreignKey, record.outcome == .omitted || record.outcome == .keptLocal else { return }
        for row in [record.incoming, record.base].compactMap({ $0 }) {
          let values = reference.parentColumns.compactMap { Self.value(of: $0, in: row) }
          guard values.count == reference.parentColumns.count else { continue }
          let hash = values.hashValue
          if found[hash] == nil { found[hash] = record.id }
        }
      }
    }
    omitted[reference] = found
    return found
  }

  /// A value of a row; nil for NULL, which refers to nothing, and where the record holds none.
  private static func value(of column: String, in row: [ConflictRecord.Cell]) -> ChangesetValue? {
    let value = row.first { ASCIIName.matches($0.column, column) }?.value
    return value == .null ? nil : value
  }

  /// The foreign keys of a table, as SQLite lists them.
  private func references(of table: String) throws -> [Reference] {
    if let known = references[table] { return known }
    var found: [Int64: Reference] = [:]
    let query = """
      SELECT k.id, k."table", k."from", coalesce(k."to", (
        SELECT name FROM pragma_table_info(k."table", 'main') WHERE pk = k.seq + 1))
      FROM pragma_foreign_key_list(?1, 'main') AS k ORDER BY k.id, k.seq
      """
    try connection.forEachRow(of: query, binding: [table]) { row in
      var reference = found[row.integer(at: 0)] ?? Reference(parent: row.text(at: 1) ?? "")
      reference.childColumns.append(row.text(at: 2) ?? "")
      reference.parentColumns.append(row.text(at: 3) ?? "")
      found[row.integer(at: 0)] = reference
    }
    let all = found.sorted { $0.key < $1.key }.map(\.value)
    references[table] = all
    return all
  }
}
