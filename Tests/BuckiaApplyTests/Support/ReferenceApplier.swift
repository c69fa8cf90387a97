@testable import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Applies a changeset as the documentation of `sqlite3changeset_apply_v2` describes, one row and one statement after
/// another, with the engine's deviations from it as switches.
///
/// It makes the statement "apart from the listed deviations" testable: without any of them it must do what SQLite does,
/// and with all of them what the engine does. See <https://sqlite.org/session/sqlite3changeset_apply.html>.
final class ReferenceApplier {
  /// The intended deviations of the engine from SQLite.
  struct Deviations: OptionSet {
    let rawValue: Int
    /// Statements say `OR ABORT`: the conflict clause of a column (`UNIQUE ON CONFLICT IGNORE`) does not lose rows
    /// silently.
    static let saysOrAbort = Deviations(rawValue: 1)
    /// A local row stays if a constraint refuses its replacement.
    static let keepsReplacedRows = Deviations(rawValue: 2)
    /// Columns that only exist here keep their values when their row is replaced.
    static let keepsLocalColumns = Deviations(rawValue: 4)
    /// Values that are swapped under UNIQUE are resolved.
    static let resolvesCycles = Deviations(rawValue: 8)
    /// If a policy keeps the local values, columns that only the author has changed are written anyway.
    static let mergesColumns = Deviations(rawValue: 16)
    /// An INSERT whose key equals that of a deleted row here waits for the DELETE.
    static let waitsForDeletes = Deviations(rawValue: 32)
    /// Rows that refer to left-out rows of the same changes are conflicts with them.
    static let asksAboutLostParents = Deviations(rawValue: 64)
    /// In a UTF-16 database, expressions over a written blob have the values that they have once it is stored.
    static let bindsBlobsAsStored = Deviations(rawValue: 128)

    static let all: Deviations = [
      .saysOrAbort, .keepsReplacedRows, .keepsLocalColumns, .resolvesCycles, .mergesColumns, .waitsForDeletes,
      .asksAboutLostParents, .bindsBlobsAsStored,
    ]
  }

  /// An answer to a question: one of SQLite's, or to merge the columns.
  enum Answer {
    case stock(StockChangesets.Answer)
    case merge
  }

  struct Aborted: Error {}

  /// One question, in the form of `StockChangesets.Question`.
  struct Question {
    let kind: StockChangesets.ConflictKind
    let table: String
    let operation: ChangeOperation?
    var old: [ChangesetValue?] = []
    var new: [ChangesetValue?] = []
    var here: [ChangesetValue?] = []
  }

  struct Change {
    let operation: ChangeOperation
    let old: [RawValue?]
    let new: [RawValue?]
    /// True if the answer to a CONFLICT was to replace the row, which still exists.
    var isDecided = false
    var isCrowdedOut = false
  }

  /// A value with its exact bytes.
  enum RawValue: Hashable {
    case null
    case integer(Int64)
    case real(Double)
    case text([UInt8])
    case blob([UInt8])
  }

  struct Table {
    let name: String
    let isPatchset: Bool
    /// The changeset's columns by their names in the database, and those that only exist here.
    let columns: [String]
    let locals: [String]
    let isKey: [Bool]
    let affinities: [Affinity]
  }

  private let deviations: Deviations
  /// True if a row of the table may be left out when it refers to one that is.
  let staysOut: (String) -> Bool
  private let ask: (Question) throws -> Answer
  var deferred: [Change] = []
  private var defersConstraints = true
  private var isFirstPass = true
  /// The keys of the current table whose INSERTs wait.
  private var waiting: Set<[RawValue]> = []
  /// True if swapped values were resolved.
  private(set) var hasSettledCircles = false
  /// The rows whose INSERT is left out, and those already known to be left out.
  var refused: Set<Row> = []
  var lost: Set<Row> = []
  /// The rows that refer to a left-out row, directly or through others, with the rows they refer to; and those that are
  /// written anyway.
  var parents: [Row: Set<Row>] = [:]
  var taken: Set<Row> = []

  init(
    _ deviations: Deviations, staysOut: @escaping (String) -> Bool, ask: @escaping (Question) throws -> Answer
  ) {
    self.deviations = deviations
    self.staysOut = staysOut
    self.ask = ask
  }

  /// Applies everything inside the open transaction.
  ///
  /// - Throws: `Aborted` if the changes are refused.
  func apply(_ changes: [UInt8], to connection: borrowing SQLiteConnection) throws {
    var sections: [(Table, [Change])] = []
    try changes.withRawSpan { bytes in
      var reader = ChangesetReader()
      while let change = try reader.next(in: bytes) {
        if change.startsTable, let header = reader.table {
          sections.append((try Self.table(header, on: connection), []))
        }
        sections[sections.count - 1].1.append(
          Change(
            operation: change.operation, old: reader.old.map { Self.value($0, bytes) },
            new: reader.new.map { Self.value($0, bytes) }))
      }
    }
    try connection.execute("SAVEPOINT reference_run")
    while true {
      let before = refused
      for (table, changes) in sections where !table.columns.isEmpty {
        deferred = []
        defersConstraints = true
        waiting = deviations.contains(.waitsForDeletes) ? try waitingKeys(changes, table, on: connection) : []
        isFirstPass = true
        for change in changes { try applyOne(change, table, on: connection) }
        isFirstPass = false
        try retry(table, on: connection)
      }
      guard deviations.contains(.asksAboutLostParents), refused != before,
        try findOrphans(in: sections, on: connection)
      else { break }
      taken = []
      try connection.execute("ROLLBACK TO reference_run")
    }
    try connection.execute("RELEASE reference_run")
  }

  private static func table(_ header: ChangesetTable, on connection: borrowing SQLiteConnection) throws -> Table {
    var names: [String] = []
    var affinities: [Affinity] = []
    try connection.forEachRow(of: "SELECT name, type FROM pragma_table_info(?1)", binding: [header.name]) {
      names.append($0.text(at: 0) ?? "")
      affinities.append(Affinity(declaredType: $0.text(at: 1) ?? ""))
    }
    return Table(
      name: header.name, isPatchset: header.format == .patchset, columns: Array(names.prefix(header.columnCount)),
      locals: Array(names.dropFirst(header.columnCount)), isKey: header.keyFlags.map { $0 != 0 },
      affinities: affinities)
  }

  private static func value(_ slice: ValueSlice, _ bytes: RawSpan) -> RawValue? {
    switch slice.kind {
    case .undefined: nil
    case .null: .null
    case .integer: .integer(slice.integer(in: bytes))
    case .real: .real(slice.real(in: bytes))
    case .text: .text(bytes.array(slice.payloadRange))
    case .blob: .blob(bytes.array(slice.payloadRange))
    }
  }

  // MARK: Statements

  private func quoted(_ name: String) -> String { SQLText.identifier(name) }

  func bind(_ values: [RawValue?], to statement: borrowing SQLiteStatement) throws {
    for (index, value) in values.enumerated() {
      switch value {
      case nil, .null?: try statement.bindNull(at: index)
      case .integer(let integer)?: try statement.bind(integer, at: index)
      case .real(let real)?: try statement.bind(real, at: index)
      case .text(let bytes)?: try bytes.withUnsafeBytes { try statement.bind(textCopying: $0, at: index) }
      case .blob(let bytes)?: try statement.bind(bytes, at: index)
      }
    }
  }

  /// Runs a statement.
  ///
  /// - Returns: The reason for a refusal, and the number of changed rows.
  private func run(
    _ sql: String, _ values: [RawValue?], on connection: borrowing SQLiteConnection
  ) throws -> (refusal: SQLiteRefusal?, changes: Int) {
    let statement = try connection.prepare(sql)
    try bind(values, to: statement)
    let refusal = try statement.attempt()
    return (refusal, connection.changes)
  }

  private func keyCondition(_ table: Table) -> (sql: String, places: [Int]) {
    let places = table.isKey.indices.filter { table.isKey[$0] }
    return (places.map { "\(quoted(table.columns[$0])) = ?\($0 + 1)" }.joined(separator: " AND "), places)
  }

  /// The parameter with a number, as a value to be written.
  private func written(_ number: Int) -> String {
    deviations.contains(.bindsBlobsAsStored) ? "nullif(?\(number), NULL)" : "?\(number)"
  }

  private var orAbort: String { deviations.contains(.saysOrAbort) ? "OR ABORT " : "" }

  func insert(
    _ values: [RawValue?], _ table: Table, locals: [RawValue?]? = nil, on connection: borrowing SQLiteConnection
  ) throws -> SQLiteRefusal? {
    let names = table.columns + (locals == nil ? [] : table.locals)
    let parameters = names.indices.map { written($0 + 1) }.joined(separator: ", ")
    let list = names.map(quoted).joined(separator: ", ")
    return try run(
      "INSERT \(orAbort)INTO main.\(quoted(table.name)) (\(list)) VALUES (\(parameters))", values + (locals ?? []),
      on: connection
    ).refusal
  }

  /// Deletes by the key, and on request by the other old values.
  func delete(
    _ old: [RawValue?], _ table: Table, comparesAll: Bool, on connection: borrowing SQLiteConnection
  ) throws -> (refusal: SQLiteRefusal?, changes: Int) {
    var condition = keyCondition(table).sql
    if comparesAll {
      for index in table.columns.indices where !table.isKey[index] && old[index] != nil {
        condition += " AND \(quoted(table.columns[index])) IS ?\(index + 1)"
      }
    }
    return try run("DELETE FROM main.\(quoted(table.name)) WHERE \(condition)", named(old, condition), on: connection)
  }

  /// Drops trailing values whose parameters are not in the statement.
  private func named(_ values: [RawValue?], _ sql: String) -> [RawValue?] {
    var values = values
    while !values.isEmpty, !sql.contains("?\(values.count)") { values.removeLast() }
    return values
  }

  private func update(
    _ change: Change, _ table: Table, comparesAll: Bool, on connection: borrowing SQLiteConnection
  ) throws -> (refusal: SQLiteRefusal?, changes: Int) {
    let count = table.columns.count
    let set = table.columns.indices.filter { !table.isKey[$0] && change.new[$0] != nil }
      .map { "\(quoted(table.columns[$0])) = \(written($0 + 1))" }.joined(separator: ", ")
    let condition = table.columns.indices
      .filter { table.isKey[$0] || (comparesAll && change.old[$0] != nil) }
      .map { "\(quoted(table.columns[$0])) IS ?\(count + $0 + 1)" }.joined(separator: " AND ")
    return try run(
      "UPDATE \(orAbort)main.\(quoted(table.name)) SET \(set) WHERE \(condition)",
      named(change.new + change.old, condition), on: connection)
  }

  /// The local row with a change's key: the changeset's columns, then those that only exist here.
  func localRow(
    _ change: Change, _ table: Table, on connection: borrowing SQLiteConnection
  ) throws -> [RawValue]? {
    let (condition, _) = keyCondition(table)
    let list = (table.columns + table.locals).map(quoted).joined(separator: ", ")
    let statement = try connection.prepare("SELECT \(list) FROM main.\(quoted(table.name)) WHERE \(condition)")
    try bind(named(change.operation == .insert ? change.new : change.old, condition), to: statement)
    guard try statement.step() else { return nil }
    var row: [RawValue] = []
    for index in 0..<statement.columnCount {
      switch statement.storageClass(at: index) {
      case .null: row.append(.null)
      case .integer: row.append(.integer(statement.integer(at: index)))
      case .real: row.append(.real(statement.real(at: index)))
      case .text: row.append(.text(Array(statement.textBytes(at: index))))
      case .blob: row.append(.blob(statement.blob(at: index)))
      }
    }
    return row
  }

  // MARK: One change

  private func shown(_ value: RawValue?) -> ChangesetValue? {
    switch value {
    case nil: nil
    case .null?: .null
    case .integer(let integer)?: .integer(integer)
    case .real(let real)?: .real(real)
    case .text(let bytes)?: .text(String(decoding: bytes, as: UTF8.self))
    case .blob(let bytes)?: .blob(bytes)
    }
  }

  private func asks(
    _ kind: StockChangesets.ConflictKind, _ change: Change, _ table: Table, here: [RawValue] = []
  ) throws -> Answer {
    let answer = try ask(
      Question(
        kind: kind, table: table.name, operation: change.operation, old: change.old.map(shown),
        new: change.new.map(shown), here: here.prefix(table.columns.count).map(shown)))
    if case .stock(.abort) = answer { throw Aborted() }
    return answer
  }

  /// Handles a change that a constraint refused: it is deferred, or asked about if nothing can be deferred any more.
  private func refuse(
    _ change: Change, _ table: Table, _ refusal: SQLiteRefusal, isDecided: Bool = false, local: [RawValue]? = nil
  ) throws {
    var change = change
    change.isDecided = isDecided
    change.isCrowdedOut = refusal.isUniqueness
    if defersConstraints {
      deferred.append(change)
    } else {
      _ = try asks(.constraint, change, table)
      if change.operation == .insert { noteRefused(change, table, local: local) }
    }
  }

  private func applyOne(_ change: Change, _ table: Table, on connection: borrowing SQLiteConnection) throws {
    let row = Row(change, table)
    if change.operation != .delete, hasLostParent(row) {
      guard case .stock(.replace) = try asks(.foreignKey, change, table) else { return }
      taken.insert(row)
    }
    switch change.operation {
    case .insert: try applyInsert(change, table, on: connection)
    case .update, .delete:
      func attempt(comparesAll: Bool) throws -> (refusal: SQLiteRefusal?, changes: Int) {
        change.operation == .delete
          ? try delete(change.old, table, comparesAll: comparesAll && !table.isPatchset, on: connection)
          : try update(change, table, comparesAll: comparesAll && !table.isPatchset, on: connection)
      }
      let first = try attempt(comparesAll: true)
      if let refusal = first.refusal { return try refuse(change, table, refusal) }
      guard first.changes == 0 else { return }
      guard let local = try localRow(change, table, on: connection) else {
        _ = try asks(.notFound, change, table)
        return
      }
      switch try asks(.data, change, table, here: local) {
      case .stock(.replace): break
      case .merge where change.operation == .update: return try merge(change, table, on: connection)
      default: return
      }
      let second = try attempt(comparesAll: false)
      if let refusal = second.refusal { return try refuse(change, table, refusal, isDecided: true) }
      if second.changes == 0 {
        // A trigger prevents the row from being changed. SQLite asks about it as about a missing row.
        _ = try asks(.notFound, change, table)
      }
    }
  }

  /// Writes the columns that still have the values that the author saw.
  private func merge(_ change: Change, _ table: Table, on connection: borrowing SQLiteConnection) throws {
    var merged = change.new
    for index in table.columns.indices where !table.isKey[index] && change.new[index] != nil {
      var old = change.old
      for other in old.indices where other != index && !table.isKey[other] { old[other] = nil }
      let condition = keyCondition(table).sql + " AND \(quoted(table.columns[index])) IS ?\(index + 1)"
      let statement = try connection.prepare("SELECT 1 FROM main.\(quoted(table.name)) WHERE \(condition)")
      try bind(named(old, condition), to: statement)
      if try !statement.step() { merged[index] = nil }
    }
    guard table.columns.indices.contains(where: { !table.isKey[$0] && merged[$0] != nil }) else { return }
    let partial = Change(operation: .update, old: change.old, new: merged)
    let written = try update(partial, table, comparesAll: false, on: connection)
    if let refusal = written.refusal { return try refuse(change, table, refusal) }
    if written.changes == 0 { _ = try asks(.notFound, change, table) }
  }

  private func applyInsert(_ change: Change, _ table: Table, on connection: borrowing SQLiteConnection) throws {
    let waits = defersConstraints && !change.isDecided && waiting.contains(Self.key(of: change, table))
    if waits, isFirstPass { return try refuse(change, table, .taken) }
    guard let refusal = try insert(change.new, table, on: connection) else { return }
    guard let local = try localRow(change, table, on: connection) else {
      return try refuse(change, table, refusal)
    }
    if waits { return try refuse(change, table, refusal) }
    if !change.isDecided {
      guard case .stock(.replace) = try asks(.conflict, change, table, here: local) else {
        return noteRefused(change, table, local: local)
      }
    }
    try connection.execute("SAVEPOINT reference_replace")
    let deletion = try delete(change.new, table, comparesAll: false, on: connection)
    guard deletion.refusal == nil else { throw Aborted() }
    let keepsLocals = deviations.contains(.keepsLocalColumns) && !table.locals.isEmpty
    let locals = keepsLocals ? Array(local.dropFirst(table.columns.count)) : nil
    if let refusal = try insert(change.new, table, locals: locals, on: connection) {
      if deviations.contains(.keepsReplacedRows), deletion.changes > 0 {
        try connection.execute("ROLLBACK TO reference_replace")
        try refuse(change, table, refusal, isDecided: true, local: local)
      } else {
        try refuse(change, table, refusal)
      }
    }
    try connection.execute("RELEASE reference_replace")
  }

  // MARK: Constraints

  private func retry(_ table: Table, on connection: borrowing SQLiteConnection) throws {
    try retryWhileItSettles(table, on: connection)
    if deviations.contains(.resolvesCycles), try resolveCycles(table, on: connection) {
      hasSettledCircles = true
      try retryWhileItSettles(table, on: connection)
    }
    defersConstraints = false
    let remaining = deferred
    deferred = []
    for change in remaining { try applyOne(change, table, on: connection) }
  }

  private func retryWhileItSettles(_ table: Table, on connection: borrowing SQLiteConnection) throws {
    var before = Int.max
    while !deferred.isEmpty, deferred.count < before {
      let items = deferred
      before = items.count
      deferred = []
      for item in items { try applyOne(item, table, on: connection) }
    }
  }
}
