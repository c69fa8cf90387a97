import BuckiaBytes
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// A conflict as the database keeps it.
public struct ConflictRecord: Hashable, Codable, Identifiable, Sendable {
  /// A column of a row and its value there; nil where the record holds none.
  public struct Cell: Hashable, Codable, Sendable {
    /// The column.
    public let column: String
    /// The value.
    public let value: ChangesetValue?

    /// Makes one.
    package init(_ column: String, _ value: ChangesetValue?) {
      self.column = column
      self.value = value
    }
  }

  /// The record's number in this database.
  public let id: Int64
  /// The ledger entry of the diff.
  package let entry: Int64
  /// The diff file's id, or the content digest of a raw changeset.
  public let diff: String
  /// The sender of the diff, for people: a contact's name, "you", "unsigned", "a merge", or "key …" with the verified key in hex.
  public package(set) var sender = ""
  /// The verified key of the sender in hexadecimal digits; nil for an unsigned file.
  public package(set) var senderKey: String?
  /// The table.
  public let table: String
  /// The row's key.
  public let key: [Cell]
  /// Why the change did not fit.
  public let kind: ConflictKind
  /// The outcome.
  public let outcome: ConflictOutcome
  /// The row as the author saw it.
  public let base: [Cell]?
  /// The local row.
  public let local: [Cell]?
  /// The row as the author wants it.
  public let incoming: [Cell]?
  /// The message of SQLite or of the engine; nil for none.
  public let reason: String?
  /// The row that this one refers to and that is not there, for conflicts of the kind ``ConflictKind/foreignKey``.
  public package(set) var parent: MissingParent?
  /// The constraint that refuses the row, for conflicts of the kinds ``ConflictKind/constraint`` and
  /// ``ConflictKind/foreignKey``; nil if unknown.
  public package(set) var constraint: ViolatedConstraint?
  /// The keys of the local rows that have a UNIQUE value which the incoming row was to get.
  public package(set) var others: [[Cell]] = []
  /// The file of the other side, if the conflict was met in a merge; nil for one of a diff.
  public package(set) var mergedFile: String?
  /// The number of the rule that has decided; nil for none.
  public package(set) var rule: Int64?
  /// The last resolution; nil for none.
  public package(set) var resolution: ResolutionRecord?

  /// True if it is undecided: by a person, by a rule, and by the app's resolver.
  public var isOpen: Bool { resolution == nil && rule == nil && outcome != .resolved }

  /// A label of the row for people: its title, name or the like, from the local row or otherwise the incoming one; nil
  /// without such a column.
  public var label: String? {
    [local, incoming, base].lazy.compactMap { $0.flatMap { RowLabel.text(of: $0) } }.first
  }
}

/// Finds the column with a row's label for people.
package enum RowLabel {
  /// The names of such columns, in lower case and without underscores: the first one that a row has counts.
  private static let columns = [
    "title", "name", "label", "subject", "caption", "heading", "headline", "displayname", "fullname", "filename",
    "file",
    "email", "path", "url", "word", "term", "text", "body", "content", "description",
  ]
  private static let limit = 60

  /// The label of a row: a text of one line, shortened.
  package static func text(of cells: [ConflictRecord.Cell]) -> String? {
    var found: (place: Int, text: String)?
    for cell in cells {
      guard case .text(let text)? = cell.value, !text.isEmpty,
        let place = columns.firstIndex(of: cell.column.lowercased().filter { $0 != "_" }),
        place < found?.place ?? .max
      else { continue }
      found = (place, text)
    }
    return found.map { found in
      let line = found.text.prefix { !$0.isNewline }
      return line.utf8.count < found.text.utf8.count || line.count > limit ? "\(line.prefix(limit))…" : String(line)
    }
  }
}

/// A row that another one refers to, and that is not there.
public struct MissingParent: Hashable, Codable, Sendable {
  /// Its table.
  public let table: String
  /// The columns that are referred to, and their values.
  public let key: [ConflictRecord.Cell]
  /// The number of the conflict that has left the row out, if the row came in the same file.
  public let conflict: Int64?

  /// Makes one.
  package init(table: String, key: [ConflictRecord.Cell], conflict: Int64?) {
    self.table = table
    self.key = key
    self.conflict = conflict
  }
}

/// The number of conflicts with the same table, kind and outcome.
public struct ConflictCount: Hashable, Codable, Sendable {
  /// The table.
  public let table: String
  /// Why the changes did not fit.
  public let kind: ConflictKind
  /// The outcome.
  public let outcome: ConflictOutcome
  /// The number of conflicts.
  public let count: Int
}

/// Why a change could not be applied as its author made it.
///
/// The names are those of the session extension: <https://sqlite.org/session/c_changeset_conflict.html>.
public enum ConflictKind: String, Sendable, CaseIterable, Codable {
  /// UPDATE or DELETE: the row is there, with other values than the author saw.
  case data
  /// UPDATE or DELETE: the row is not there.
  case notFound = "not-found"
  /// INSERT: a row with this key is there already.
  case conflict
  /// A UNIQUE, NOT NULL, CHECK, foreign-key or type constraint, or a trigger, refuses the row.
  case constraint
  /// The row refers to a missing row, or to another row than its author means.
  case foreignKey = "foreign-key"
}

/// The outcome of a conflicting change.
public enum ConflictOutcome: String, Sendable, Codable {
  /// The local row stayed; the incoming version is in the conflict record.
  case keptLocal = "kept-local"
  /// The incoming version was written; the local one is in the conflict record.
  case tookIncoming = "took-incoming"
  /// Some of its columns were written, others kept their local value.
  case merged
  /// Values that a resolver gave were written.
  case resolved
  /// The change could not be written under any policy and was left out.
  case omitted
  /// The row was written, with a reference to a missing row or to another row than before; it is only reported.
  case reported

  /// True if every local value in dispute is still in the row. A merge only replaces values that the author saw.
  var keepsLocalValues: Bool { self != .tookIncoming && self != .resolved }
}

extension ConflictKind {
  /// The kind that a column of a row names.
  init(_ row: borrowing SQLiteStatement, at column: Int) { self = Self(rawValue: row.text(at: column) ?? "") ?? .data }
}

extension ConflictOutcome {
  /// The outcome that a column of a row names.
  init(_ row: borrowing SQLiteStatement, at column: Int) {
    self = Self(rawValue: row.text(at: column) ?? "") ?? .omitted
  }
}

/// A selection of recorded conflicts.
package struct ConflictSelection {
  /// Selects conflicts of this table, whatever the case of its name.
  package var table: String?
  /// Selects conflicts of this diff: its id, or the digest of a raw changeset.
  package var diff: String?
  /// Selects conflicts of this kind.
  package var kind: ConflictKind?
  /// Selects conflicts of the diff with this ledger entry.
  package var entry: Int64?
  /// Selects conflicts with these numbers.
  package var numbers = Int64.min...Int64.max
  /// Selects only open conflicts (``ConflictRecord/isOpen``).
  package var isOpen = false

  /// All of them.
  package init() {}

  private static let tables = """
    FROM main.buckia_conflict AS c CROSS JOIN main.buckia_ledger AS l USING (entry)
      CROSS JOIN main.buckia_layout AS t USING (layout)
    """

  private static let condition = """
    conflict BETWEEN ?1 AND ?2 AND (?3 IS NULL OR entry = ?3) AND (?4 IS NULL OR table_name = ?4 COLLATE NOCASE)
      AND (?5 IS NULL OR coalesce(l.diff, lower(hex(l.digest))) = ?5) AND (?6 IS NULL OR kind = ?6)
    """

  private static let isOpen = """
     AND outcome <> 'resolved' AND NOT EXISTS (SELECT 1 FROM main.buckia_resolution AS r WHERE r.conflict = c.conflict)
      AND c.rule IS NULL
    """

  /// Prepares a query of the selected records; `c` is the record, `l` its entry of the ledger, and `t` its table. The records
  /// come in the order of their numbers, which saves to sort them.
  func query(_ results: String, _ rest: String, on connection: borrowing SQLiteConnection) throws -> SQLiteStatement {
    let isOpen = isOpen ? Self.isOpen : ""
    let query = try connection.prepare("SELECT \(results) \(Self.tables) WHERE \(Self.condition)\(isOpen) \(rest)")
    try query.bind(numbers.lowerBound, at: 0)
    try query.bind(numbers.upperBound, at: 1)
    if let entry { try query.bind(entry, at: 2) }
    for (index, text) in [table, diff, kind?.rawValue].enumerated() {
      if let text { try query.bind(text, at: index + 3) }
    }
    return query
  }
}

/// Reading the recorded conflicts for people. There can be millions.
extension ConflictRecord {
  /// The number of the newest record; 0 for none.
  package static func newest(on connection: borrowing SQLiteConnection) throws -> Int64 {
    let isThere = "SELECT 1 FROM main.sqlite_schema WHERE name = 'buckia_conflict'"
    guard try connection.integer(isThere) != nil else { return 0 }
    return try connection.integer("SELECT max(conflict) FROM main.buckia_conflict") ?? 0
  }

  /// The selected records, oldest first. Large values that they have in common are in memory once.
  ///
  /// - Parameters:
  ///   - limit: The most records: the oldest ones; nil for all.
  ///   - senders: The known senders, whose names records have.
  /// - Throws: `SQLiteError`; `ChangesetError` when a record is damaged.
  package static func all(
    _ selection: ConflictSelection = ConflictSelection(), limit: Int? = nil, naming senders: KnownSenders = .empty,
    on connection: borrowing SQLiteConnection
  ) throws -> [ConflictRecord] {
    var records: [ConflictRecord] = []
    let values = LargeValues.Reader(on: connection, cacheLimit: .max)
    try forEach(selection, limit: limit, values: values, senders, on: connection) { records.append($0) }
    return records
  }

  /// Calls `body` with the selected records, oldest first, without loading all of them into memory.
  ///
  /// - Parameters:
  ///   - count: The most records: the newest ones; nil for all.
  ///   - senders: The known senders, whose names records have.
  ///   - body: Receives a record. May throw to stop.
  /// - Throws: `SQLiteError`; `ChangesetError` when a record is damaged; whatever `body` throws.
  package static func forEach(
    _ selection: ConflictSelection, newest count: Int? = nil, naming senders: KnownSenders = .empty,
    on connection: borrowing SQLiteConnection, _ body: (ConflictRecord) throws -> Void
  ) throws {
    var selection = selection
    if let count {
      guard count > 0 else { return }
      // Begins with the oldest of the newest records.
      let query = try selection.query("conflict", "ORDER BY conflict DESC LIMIT 1 OFFSET \(count - 1)", on: connection)
      if try query.step() { selection.numbers = query.integer(at: 0)...selection.numbers.upperBound }
    }
    try forEach(selection, values: LargeValues.Reader(on: connection), senders, on: connection, body)
  }

  /// The numbers of the selected records, oldest first.
  ///
  /// - Throws: `SQLiteError`.
  package static func numbers(
    _ selection: ConflictSelection, on connection: borrowing SQLiteConnection
  ) throws -> [Int64] {
    var numbers: [Int64] = []
    let query = try selection.query("conflict", "ORDER BY conflict", on: connection)
    while try query.step() { numbers.append(query.integer(at: 0)) }
    return numbers
  }

  /// The counts of the selected conflicts by table, kind and outcome, in the order in which they first occurred.
  ///
  /// - Throws: `SQLiteError`.
  package static func counts(
    _ selection: ConflictSelection, on connection: borrowing SQLiteConnection
  ) throws -> [ConflictCount] {
    var counts: [ConflictCount] = []
    let query = try selection.query(
      "table_name, kind, outcome, count(*)", "GROUP BY table_name, kind, outcome ORDER BY min(conflict)",
      on: connection)
    while try query.step() {
      counts.append(
        ConflictCount(
          table: query.text(at: 0) ?? "", kind: ConflictKind(query, at: 1), outcome: ConflictOutcome(query, at: 2),
          count: Int(query.integer(at: 3))))
    }
    return counts
  }

  /// The numbers of the first and the last conflict of each diff, by its ledger entry.
  ///
  /// - Throws: `SQLiteError`.
  package static func bounds(on connection: borrowing SQLiteConnection) throws -> [Int64: ClosedRange<Int64>] {
    var bounds: [Int64: ClosedRange<Int64>] = [:]
    let query = "SELECT entry, min(conflict), max(conflict) FROM main.buckia_conflict GROUP BY entry"
    try connection.forEachRow(of: query) { bounds[$0.integer(at: 0)] = $0.integer(at: 1)...$0.integer(at: 2) }
    return bounds
  }

  private static func forEach(
    _ selection: ConflictSelection, limit: Int? = nil, values reader: LargeValues.Reader, _ senders: KnownSenders,
    on connection: borrowing SQLiteConnection, _ body: (ConflictRecord) throws -> Void
  ) throws {
    var layouts: [Int64: [(name: String, isKey: Bool)]] = [:]

    let row = try selection.query(
      """
      conflict, entry, coalesce(l.diff, lower(hex(l.digest))), layout, table_name, kind, outcome, base, local, incoming, c.reason,
      l.sender, iif(l.sender = '\(LedgerKey.mergeSender)', l.file, NULL), c.rule, c.others
      """, "ORDER BY conflict LIMIT \(limit ?? -1)", on: connection)
    while try row.step() {
      let layout = row.integer(at: 3)
      let columns = try layouts[layout] ?? Self.columns(of: layout, on: connection)
      layouts[layout] = columns
      let versions = (
        base: try reader.cells(row, at: 7, columns), local: try reader.cells(row, at: 8, columns),
        incoming: try reader.cells(row, at: 9, columns)
      )
      let whole = versions.local ?? versions.incoming ?? versions.base ?? []
      let known = whole.enumerated().map { index, cell in
        Cell(cell.column, cell.value ?? value(index, of: versions.incoming) ?? value(index, of: versions.base))
      }
      let key = zip(columns, known).filter { $0.0.isKey }.map { $0.1 }
      var record = ConflictRecord(
        id: row.integer(at: 0), entry: row.integer(at: 1), diff: row.text(at: 2) ?? "", table: row.text(at: 4) ?? "",
        key: key, kind: ConflictKind(row, at: 5), outcome: ConflictOutcome(row, at: 6), base: versions.base,
        local: versions.local, incoming: versions.incoming, reason: row.text(at: 10))
      record.mergedFile = row.text(at: 12)
      record.sender = senders.shown(row.text(at: 11) ?? "")
      record.senderKey = LedgerEntries.verifiedKey(of: row.text(at: 11) ?? "")
      record.rule = row.isNull(at: 13) ? nil : row.integer(at: 13)
      record.others = try keys(row.blob(at: 14), record.key.map(\.column))
      record.resolution = try ResolutionRecord.last(of: record.id, on: connection)
      try body(record)
    }
  }

  /// Takes keys apart that stand one after the other.
  private static func keys(_ record: [UInt8], _ columns: [String]) throws -> [[Cell]] {
    let values = try ChangesetValue.record(record)
    guard !columns.isEmpty else { return [] }
    return stride(from: 0, to: values.count - columns.count + 1, by: columns.count).map { start in
      columns.enumerated().map { .init($1, values[start + $0]) }
    }
  }

  /// The columns of a layout, in the order of a row's values.
  static func columns(
    of layout: Int64, on connection: borrowing SQLiteConnection
  ) throws -> [(name: String, isKey: Bool)] {
    let query = "SELECT name, is_key FROM main.buckia_layout_column WHERE layout = \(layout) ORDER BY position"
    return try connection.rows(of: query) { row in
      (row.text(at: 0) ?? "", row.integer(at: 1) != 0)
    }
  }

  /// A value of a row; nil without a row, or if a damaged record is shorter than its layout.
  private static func value(_ index: Int, of row: [Cell]?) -> ChangesetValue? {
    guard let row, row.indices.contains(index) else { return nil }
    return row[index].value
  }
}

/// The constraint that refuses a row, as far as SQLite's message and the schema tell.
public struct ViolatedConstraint: Hashable, Codable, Sendable {
  /// The kinds of constraints.
  public enum Kind: String, Codable, Sendable {
    /// A UNIQUE constraint or index, or the primary key.
    case unique
    /// A CHECK constraint.
    case check
    /// A NOT NULL constraint.
    case notNull = "not-null"
    /// A foreign key.
    case foreignKey = "foreign-key"
  }

  /// What kind of constraint.
  public let kind: Kind
  /// The name of the constraint or index; nil if it has none, or is unknown.
  public package(set) var name: String?
  /// The columns of the constraint; empty if unknown.
  public package(set) var columns: [String] = []
  /// The expression: of a CHECK constraint, or of the index with the WHERE that it may have.
  public package(set) var expression: String?
  /// The table that a foreign key refers to.
  public package(set) var parentTable: String?
  /// The columns that a foreign key refers to.
  public package(set) var parentColumns: [String] = []

  /// Makes one.
  package init(_ kind: Kind) { self.kind = kind }

  /// Reads SQLite's message about a constraint, such as `UNIQUE constraint failed: notes.code`.
  ///
  /// - Parameters:
  ///   - message: The message.
  ///   - table: The table that the row is of.
  package init?(message: String, table: String) {
    for (prefix, kind) in Self.prefixes where message.utf8.starts(with: prefix.utf8) {
      self.init(kind)
      let rest = String(decoding: message.utf8.dropFirst(prefix.utf8.count), as: UTF8.self)
      switch kind {
      case .check: expression = rest
      case .foreignKey: break
      case .unique where rest.utf8.starts(with: "index '".utf8) && rest.utf8.last == UInt8(ascii: "'"):
        name = String(decoding: rest.utf8.dropFirst("index '".utf8.count).dropLast(), as: UTF8.self)
      case .unique, .notNull: columns = Self.columns(in: rest, of: table)
      }
      return
    }
    return nil
  }

  /// True if this is the UNIQUE constraint of an index.
  ///
  /// - Parameters:
  ///   - index: The name of the index.
  ///   - members: Its columns, nil in the place of an expression.
  package func isOf(index: String, over members: [String?]) -> Bool {
    guard kind == .unique else { return false }
    if let name { return ASCIIName.matches(name, index) }
    return members.elementsEqual(columns) { member, column in member.map { ASCIIName.matches($0, column) } ?? false }
  }

  private static let prefixes: [(String, Kind)] = [
    ("UNIQUE constraint failed: ", .unique), ("CHECK constraint failed: ", .check),
    ("NOT NULL constraint failed: ", .notNull), ("FOREIGN KEY constraint failed", .foreignKey),
  ]

  /// The columns in a list such as `notes.a, notes.b`. Names can contain any character, which is why the list is split
  /// at the table's name.
  private static func columns(in list: String, of table: String) -> [String] {
    let bytes = Array(list.utf8)
    let prefix = Array("\(table).".utf8)
    guard bytes.starts(with: prefix) else { return [] }
    let separator = Array(", ".utf8) + prefix
    var columns: [String] = []
    var column: [UInt8] = []
    var index = prefix.count
    while index < bytes.count {
      if bytes[index...].starts(with: separator) {
        columns.append(String(decoding: column, as: UTF8.self))
        column = []
        index += separator.count
      } else {
        column.append(bytes[index])
        index += 1
      }
    }
    return columns + [String(decoding: column, as: UTF8.self)]
  }
}

extension LargeValues.Reader {
  /// The values of the record in a column of a row, with the names of their columns; nil for none.
  func cells(
    _ row: borrowing SQLiteStatement, at column: Int, _ columns: [(name: String, isKey: Bool)]
  ) throws -> [ConflictRecord.Cell]? {
    guard !row.isNull(at: column) else { return nil }
    return zip(columns, try values(of: row.blob(at: column))).map { .init($0.0.name, $0.1) }
  }
}
