import SQLiteConnections

extension DatabaseManager {
  /// Recorded conflicts, oldest first.
  ///
  /// There can be millions: see ``forEachConflict(matching:newest:_:)`` and ``conflictCounts(matching:)``.
  ///
  /// - Parameter filter: Which of them are wanted.
  /// - Throws: `BuckiaError` when the database cannot be read, has a newer ledger, or a record is damaged.
  public func conflicts(matching filter: ConflictFilter = ConflictFilter()) throws -> [ConflictRecord] {
    let senders = try home.knownSenders()
    return try withLedger(or: []) { connection in
      let parents = MissingParents(on: connection)
      return try ConflictRecord.all(filter.selection, naming: senders, on: connection).map(parents.named)
    }
  }

  /// Calls `body` with recorded conflicts, oldest first, without loading all of them into memory.
  ///
  /// - Parameters:
  ///   - filter: Which of them are wanted.
  ///   - count: The most conflicts: the newest ones; nil for all.
  ///   - body: Receives a conflict. May throw to stop.
  /// - Throws: `BuckiaError` when the database cannot be read, has a newer ledger, or a record is damaged; whatever `body`
  ///   throws.
  public func forEachConflict(
    matching filter: ConflictFilter = ConflictFilter(), newest count: Int? = nil,
    _ body: (ConflictRecord) throws -> Void
  ) throws {
    let senders = try home.knownSenders()
    try withLedger(or: ()) { connection in
      let parents = MissingParents(on: connection)
      try ConflictRecord.forEach(filter.selection, newest: count, naming: senders, on: connection) {
        try body(parents.named(in: $0))
      }
    }
  }

  /// The number of recorded conflicts for each table, kind and outcome, in the order in which they first occurred.
  ///
  /// - Parameter filter: Which of them are wanted.
  /// - Throws: `BuckiaError` when the database cannot be read, or has a newer ledger.
  public func conflictCounts(matching filter: ConflictFilter = ConflictFilter()) throws -> [ConflictCount] {
    try withLedger(or: []) { connection in
      return try ConflictRecord.counts(filter.selection, on: connection)
    }
  }
}

/// A filter for recorded conflicts. Without any condition it matches all of them.
///
/// ```swift
/// var filter = ConflictFilter()
/// filter.table = "notes"
/// filter.kind = .data
/// try database.forEachConflict(matching: filter, newest: 20) { print($0.id) }
/// ```
public struct ConflictFilter: Equatable, Sendable {
  /// Matches conflicts of this table, whatever the case of its name.
  public var table: String?
  /// Matches conflicts of this diff file: its id, or the digest of a raw changeset.
  public var diff: String?
  /// Matches conflicts of this kind.
  public var kind: ConflictKind?
  /// Matches only open conflicts (``ConflictRecord/isOpen``).
  public var isOpen = false
  /// Matches conflicts with these numbers (``ConflictRecord/id``).
  package var numbers = Int64.min...Int64.max

  /// Creates a filter that matches everything.
  public init() {}

  var selection: ConflictSelection {
    var selection = ConflictSelection()
    selection.table = table
    selection.diff = diff
    selection.kind = kind
    selection.isOpen = isOpen
    selection.numbers = numbers
    return selection
  }
}

/// The conflicts that have been recorded since some time, for a report.
struct NewConflicts {
  /// The most conflicts that a report has.
  private static let limit = 10_000

  private let selection: ConflictSelection?

  /// - Parameter number: That of the newest conflict before.
  init(after number: Int64) {
    // There is no conflict after the greatest number.
    guard number < .max else {
      selection = nil
      return
    }
    var selection = ConflictSelection()
    selection.numbers = (number + 1)...Int64.max
    self.selection = selection
  }

  /// The counts of the matching conflicts.
  func counts(on connection: borrowing SQLiteConnection) throws -> [ConflictCount] {
    try selection.map { try ConflictRecord.counts($0, on: connection) } ?? []
  }

  /// The first of them, with the rows that they refer to.
  ///
  /// - Parameter senders: The known senders, whose names conflicts have.
  func first(naming senders: KnownSenders, on connection: borrowing SQLiteConnection) throws -> [ConflictRecord] {
    guard let selection else { return [] }
    let parents = MissingParents(on: connection)
    return try ConflictRecord.all(selection, limit: Self.limit, naming: senders, on: connection).map(parents.named)
  }
}

/// Finds the missing rows to which rows refer, and the conflicts that have left them out.
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

  /// A conflict with its constraint, and the missing row if the kind is `foreignKey`. The conflicts of one diff are
  /// best passed one after the other.
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
    let key = zip(reference.parentColumns, values).map { ConflictRecord.Cell($0, $1) }
    let cause = try conflicts(of: record.entry, leavingOut: reference)[values.hashValue]
    return MissingParent(table: reference.parent, key: key, conflict: cause == record.id ? nil : cause)
  }

  /// The referring row: the local one, or the one that its author wants.
  private static func referringRow(of record: ConflictRecord) -> [ConflictRecord.Cell]? {
    guard record.outcome != .reported, let incoming = record.incoming else { return record.local }
    return incoming.enumerated().map { place, cell in
      .init(cell.column, cell.value ?? record.local.flatMap { $0.indices.contains(place) ? $0[place].value : nil })
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
        guard record.kind != .foreignKey || record.base == nil,
          record.outcome == .omitted || record.outcome == .keptLocal
        else { return }
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

  /// A value of a row; nil for NULL, which refers to nothing, and if the record has none.
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

/// Finds in the schema the facts that SQLite's message about a constraint lacks: the name of a UNIQUE index over
/// columns, and the expressions of a named index.
final class ViolatedConstraints {
  private struct Index {
    let name: String
    let columns: [String?]
    let terms: IndexTerms?
  }

  private let connection: SQLiteConnection
  private var indexes: [String: [Index]] = [:]
  private var known: [String: [String: ViolatedConstraint]] = [:]

  init(on connection: borrowing SQLiteConnection) { self.connection = SQLiteConnection(sharing: connection) }

  /// A conflict with its constraint, if that is known.
  ///
  /// - Throws: `SQLiteError`.
  func named(in record: ConflictRecord) throws -> ConflictRecord {
    guard record.kind == .constraint, let reason = record.reason else { return record }
    var record = record
    if let known = known[record.table]?[reason] {
      record.constraint = known
    } else if let constraint = try constraint(of: record.table, reason) {
      // Only messages of NOT NULL and UNIQUE are cached: a trigger can have any message.
      known[record.table, default: [:]][reason] = constraint
      record.constraint = constraint
    }
    return record
  }

  private func constraint(of table: String, _ reason: String) throws -> ViolatedConstraint? {
    guard var constraint = ViolatedConstraint(message: reason, table: table) else { return nil }
    switch constraint.kind {
    case .unique: try nameIndex(of: table, &constraint)
    case .check: try nameCheck(of: table, &constraint)
    case .notNull, .foreignKey: break
    }
    return constraint
  }

  private func nameIndex(of table: String, _ constraint: inout ViolatedConstraint) throws {
    let candidates = try indexes(of: table).filter { constraint.isOf(index: $0.name, over: $0.columns) }
    // Two indexes can have the same columns, for different rows. The index of a table constraint has no name to report.
    guard candidates.count == 1, let index = candidates.first, let terms = index.terms else { return }
    constraint.name = index.name
    constraint.columns = index.columns.compactMap { $0 }
    let condition = terms.condition.map { " WHERE \($0)" } ?? ""
    if index.columns.contains(nil) || terms.condition != nil {
      constraint.expression = terms.terms.joined(separator: ", ") + condition
    }
  }

  /// SQLite reports the name of a CHECK constraint, or without a name its expression.
  private func nameCheck(of table: String, _ constraint: inout ViolatedConstraint) throws {
    let query = "SELECT sql FROM main.sqlite_schema WHERE type = 'table' AND name = ?1 COLLATE NOCASE"
    guard let given = constraint.expression, let sql = try connection.text(query, binding: [table]) else { return }
    guard let expression = CreateTableParts.check(named: given, in: sql) else { return }
    constraint.name = given
    constraint.expression = expression
  }

  private func indexes(of table: String) throws -> [Index] {
    if let known = indexes[table] { return known }
    let query = """
      SELECT l.name, s.sql FROM pragma_index_list(?1, 'main') AS l
        LEFT JOIN main.sqlite_schema AS s ON s.type = 'index' AND s.name = l.name
      WHERE l."unique"
      """
    let found = try connection.rows(of: query, table) { row in
      let name = row.text(at: 0) ?? ""
      let parts = "SELECT name FROM pragma_index_xinfo(?1, 'main') WHERE key ORDER BY seqno"
      let columns = try connection.rows(of: parts, name) { $0.text(at: 0) }
      return Index(name: name, columns: columns, terms: row.text(at: 1).flatMap { IndexTerms($0) })
    }
    indexes[table] = found
    return found
  }
}
