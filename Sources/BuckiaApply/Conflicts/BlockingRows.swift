import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Finds the local rows whose UNIQUE values block a refused row, also in partial indexes and indexes over expressions.
final class BlockingRows {
  /// The queries for the rows that block a new row in an index.
  private typealias Lookup = (query: PreparedStatement, uses: Int)

  /// The most runs of a query that reads the whole table.
  private static let scanLimit = 100
  /// The most rows that are named.
  private static let rowLimit = 8

  private let statements: TableStatements
  private var lookups: [ViolatedConstraint: [Lookup]] = [:]

  init(_ statements: TableStatements) { self.statements = statements }

  /// The keys of the blocking rows, one after the other; empty if there are none, or they are unknown.
  ///
  /// - Parameters:
  ///   - message: SQLite's message about the constraint.
  ///   - change: The refused change.
  ///   - local: The changed local row, if it exists.
  func find(_ message: [UInt8], _ change: DecodedChange, local: CurrentRow?, _ bytes: RawSpan) throws -> [UInt8] {
    var keys = ChangesetWriter()
    try forEachLookup(message) { try run($0, change, local: local, bytes, adding: &keys) }
    return keys.bytes
  }

  /// The keys of the rows that block a row, given as a record of the local layout, in the form of the clock.
  func find(_ message: [UInt8], row: [UInt8]) throws -> [ClockKeyRecord] {
    let local = statements.match.local
    let row = try RowCopy(record: row)
    let order = local.keyIndexes.sorted()
    var found: [ClockKeyRecord] = []
    try forEachLookup(message) { query in
      defer {
        query.statement.reset()
        query.statement.clearBindings()
      }
      for place in row.values.indices { try row.bind(place, to: query.statement, at: place) }
      while try query.statement.step() {
        var key = ChangesetWriter()
        for place in local.keyIndexes {
          if let column = order.firstIndex(of: place) { key.append(column: column, of: query.statement) }
        }
        if !found.contains(where: { $0.bytes == key.bytes }) { found.append(ClockKeyRecord(bytes: key.bytes)) }
      }
    }
    return found
  }

  /// Calls `body` with the queries for the rows that block a UNIQUE constraint, as long as they may run.
  private func forEachLookup(_ message: [UInt8], _ body: (PreparedStatement) throws -> Void) throws {
    let message = String(decoding: message, as: UTF8.self)
    guard let constraint = ViolatedConstraint(message: message, table: statements.match.local.name),
      constraint.kind == .unique
    else { return }
    var known = try lookups[constraint] ?? makeLookups(for: constraint)
    defer { lookups[constraint] = known }
    for index in known.indices where known[index].uses > 0 {
      known[index].uses -= 1
      try body(known[index].query)
    }
  }

  private func run(
    _ prepared: PreparedStatement, _ change: DecodedChange, local: CurrentRow?, _ bytes: RawSpan,
    adding keys: inout ChangesetWriter
  ) throws {
    defer {
      prepared.statement.reset()
      prepared.statement.clearBindings()
    }
    var sources = [Int](repeating: -1, count: statements.layout.count)
    for (column, place) in statements.match.columns.enumerated() { sources[place] = column }
    for (place, column) in sources.enumerated() {
      if column >= 0, change.new(column).isDefined {
        try prepared.statement.bind(change.new(column), in: bytes, at: place)
      } else if let local {
        try local.bind(place, to: prepared.statement, at: place)
      } else if column >= 0, change.row(column).isDefined {
        try prepared.statement.bind(change.row(column), in: bytes, at: place)
      } else {
        try prepared.statement.bindNull(at: place)
      }
    }
    while try prepared.statement.step() {
      for column in 0..<prepared.statement.columnCount { keys.append(column: column, of: prepared.statement) }
    }
  }

  private func makeLookups(for constraint: ViolatedConstraint) throws -> [Lookup] {
    let table = statements.match.local
    var found: [Lookup] = []
    let list = """
      SELECT l.name, s.sql FROM pragma_index_list(?1, 'main') AS l
        LEFT JOIN main.sqlite_schema AS s ON s.type = 'index' AND s.name = l.name
      WHERE l."unique"
      """
    let indexes = try statements.connection.rows(of: list, table.name) { ($0.text(at: 0) ?? "", $0.text(at: 1)) }
    for (name, creation) in indexes {
      guard let parts = try parts(of: name, createdBy: creation), constraint.isOf(index: name, over: parts.columns)
      else { continue }
      let sql = query(parts)
      // SQLite judges if the expressions of an index are valid here.
      guard try statements.connection.failure(ofPreparing: sql) == nil else { continue }
      var isSearch = true
      try statements.connection.forEachRow(of: "EXPLAIN QUERY PLAN \(sql)") { row in
        if row.text(at: 3)?.utf8.starts(with: "SCAN \(table.name)".utf8) == true { isSearch = false }
      }
      found.append((PreparedStatement(try statements.connection.prepare(sql)), isSearch ? .max : Self.scanLimit))
    }
    return found
  }

  /// The terms of an index, and the condition on its rows.
  private struct Parts {
    /// The columns; nil for an expression.
    var columns: [String?] = []
    var terms: [String] = []
    var condition: String?
  }

  /// - Returns: nil for an index that cannot be parsed, or that has a generated column, whose value for a new row is
  ///   unknown.
  private func parts(of index: String, createdBy sql: String?) throws -> Parts? {
    let table = statements.match.local
    let creation = sql.flatMap { IndexTerms($0) }
    guard sql == nil || creation != nil, creation?.condition == nil || table.generated.isEmpty else { return nil }
    var parts = Parts()
    parts.condition = creation?.condition
    var isKnown = true
    let query = "SELECT seqno, name, coll FROM pragma_index_xinfo(?1, 'main') WHERE key ORDER BY seqno"
    try statements.connection.forEachRow(of: query, binding: [index]) { row in
      let name = row.text(at: 1)
      let place = Int(row.integer(at: 0))
      parts.columns.append(name)
      let collation = "COLLATE \(SQLText.identifier(row.text(at: 2) ?? "BINARY"))"
      if let name {
        if table.column(named: name) == nil { isKnown = false }
        parts.terms.append("\(SQLText.identifier(name)) \(collation)")
      } else if let creation, creation.terms.indices.contains(place), table.generated.isEmpty {
        parts.terms.append("(\(creation.terms[place])) \(collation)")
      } else {
        isKnown = false
      }
    }
    return isKnown && !parts.terms.isEmpty ? parts : nil
  }

  /// The query for the keys of the blocking rows. `?1…` are the values of the whole refused row.
  private func query(_ parts: Parts) -> String {
    // In the order of the record's columns.
    let places = statements.match.local.keyIndexes.sorted()
    let key = places.map { statements.layout[$0] }
    let values = statements.layout.indices.map { "?\($0 + 1)" }.joined(separator: ", ")
    // An index names its columns without their table: they are those of the new row inside, and of the others outside.
    let equal = parts.terms.map { "\($0) = (SELECT \($0) FROM buckia_new)" }
    let isAnother = "NOT (" + zip(key, places).map { "\($0) IS ?\($1 + 1)" }.joined(separator: " AND ") + ")"
    let conditions = (parts.condition.map { ["(\($0))"] } ?? []) + equal + [isAnother]
    return """
      WITH buckia_new(\(statements.layout.joined(separator: ", "))) AS (SELECT \(values))
      SELECT \(key.joined(separator: ", ")) FROM main.\(statements.name.quoted)
      WHERE \(conditions.joined(separator: " AND ")) LIMIT \(Self.rowLimit)
      """
  }
}
