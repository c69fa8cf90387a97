import Buckia
import SQLiteConnections
import TestSupport

/// The checks after all people have shared everything with each other.
struct ShareHistoryCheck {
  private typealias Fault = ShareHistoryRun.Fault
  private typealias Person = ShareHistoryRun.Person

  private let run: ShareHistoryRun
  private var history: ShareHistory { run.history }
  /// Each person's rows by content: assigned keys are replaced by the rows that they refer to.
  private let rows: [[String]]
  /// All values in records of open conflicts, and in those of all conflicts.
  private let disputed: Set<String>
  private let recorded: Set<String>

  init(_ run: ShareHistoryRun) throws {
    self.run = run
    rows = try run.people.map { try Self.rows(run.history.schema, of: $0.path).sorted() }
    var open: Set<String> = []
    var all: Set<String> = []
    for person in run.people {
      for conflict in try DatabaseManager(person.path).conflicts() {
        let values = [conflict.base, conflict.local, conflict.incoming].flatMap { $0 ?? [] }.compactMap {
          cell -> String? in
          if case .text(let text)? = cell.value { text } else { nil }
        }
        all.formUnion(values)
        if conflict.isOpen { open.formUnion(values) }
      }
    }
    (disputed, recorded) = (open, all)
  }

  func faults() throws -> [ShareHistoryRun.Fault] {
    try dangling() + doubled() + unequal() + lost() + words()
  }

  private func dangling() throws -> [Fault] {
    try run.people.compactMap { person in
      let found = try TestDatabases.texts("SELECT * FROM pragma_foreign_key_check", on: person.path)
      return found.isEmpty ? nil : Fault(kind: .dangling, description: "\(person.name): \(found)")
    }
  }

  /// Finds values in two rows. Edits write each value to one row.
  private func doubled() throws -> [Fault] {
    // Copies without a dataset may take an edited row for another one.
    guard history.beginning != .copies else { return [] }
    return try run.people.flatMap { person in
      try history.schema.tables.compactMap { table in
        // Two edits of a row that is identified by its content make two rows.
        let all = table.columns.joined(separator: ", ")
        let query =
          [.keyless, .nullKeys, .keylessPhotos].contains(history.schema)
          ? "SELECT a FROM \(table.name) WHERE a LIKE 'v%' OR b LIKE 'v%' GROUP BY \(all) HAVING count(*) > 1"
          : """
          SELECT a FROM \(table.name) WHERE a LIKE 'v%' GROUP BY a HAVING count(*) > 1
          UNION SELECT b FROM \(table.name) WHERE b LIKE 'v%' GROUP BY b HAVING count(*) > 1
          """
        let found = try TestDatabases.texts(query, on: person.path)
        return found.isEmpty ? nil : Fault(kind: .doubled, description: "\(person.name): \(table.name) \(found)")
      }
    }
  }

  private func unequal() throws -> [Fault] {
    // An undo is local, and so are rows that stay after they have left a scope.
    guard !history.has(.undo, .keep), history.sharing != .topics else { return [] }
    return run.people.dropFirst().compactMap { person in
      let (left, right) = (rows[0], rows[person.number])
      var only = [Self.without(right, left), Self.without(left, right)]
      // With clocks, conflicts end alike at all replicas, except for rows that a constraint refuses.
      if history.policy != .latestByClocks || ![.text, .integer].contains(history.schema) {
        only = only.map { $0.filter { !isDisputed($0) } }
      }
      guard only != [[], []] else { return nil }
      return Fault(
        kind: .unequal, description: "only anna: \(only[0].prefix(4)); only \(person.name): \(only[1].prefix(4))")
    }
  }

  /// True if an open conflict has a value of the row, or of a row that it refers to.
  private func isDisputed(_ row: String) -> Bool {
    row.split(whereSeparator: { !$0.isLetter && !$0.isNumber }).contains { disputed.contains(String($0)) }
  }

  private func lost() throws -> [Fault] {
    guard !history.has(.undo) else { return [] }
    var known = recorded
    for person in run.people { known.formUnion(try run.values(of: person)) }
    let lost = run.written.subtracting(run.replaced).subtracting(known).sorted()
    return lost.isEmpty ? [] : [Fault(kind: .lost, description: "\(lost)")]
  }

  private func words() throws -> [Fault] {
    // Otherwise the two people do not share the same rows.
    guard history.people == 2, history.sharing != .topics, rows[0] == rows[1], !history.has(.keep) else { return [] }
    let words = try run.people.map { try DatabaseManager($0.path, home: $0.home).status(includesWords: true).words }
    let differ = words[0].map(\.words) != words[1].map(\.words) || words.joined().contains { $0.problem != nil }
    return differ ? [Fault(kind: .words, description: "\(words[0]) and \(words[1])")] : []
  }

  /// The elements of a list that another list lacks.
  private static func without(_ others: [String], _ list: [String]) -> [String] {
    var left = Dictionary(grouping: others, by: { $0 }).mapValues(\.count)
    return list.filter {
      let count = left[$0, default: 0]
      left[$0] = count - 1
      return count < 1
    }
  }

  private static func rows(_ schema: ShareHistory.Schema, of path: String) throws -> [String] {
    let connection = try SQLiteConnection(opening: path, as: .readOnly)
    var tables: [String: [[String: String]]] = [:]
    for table in schema.tables {
      var found: [[String: String]] = []
      try connection.forEachRow(of: "SELECT \(table.columns.joined(separator: ", ")) FROM \(table.name)") { row in
        found.append(
          Dictionary(uniqueKeysWithValues: table.columns.enumerated().map { ($1, row.text(at: $0) ?? "NULL") }))
      }
      tables[table.name] = found
    }
    func text(_ table: (name: String, columns: [String]), _ row: [String: String], depth: Int) -> String {
      let values = table.columns.compactMap { column -> String? in
        let value = row[column] ?? ""
        if column == "id" { return schema.hasTextKeys ? value : nil }
        guard let parent = schema.parent(of: column), value != "NULL" else { return value }
        guard depth < 8, let known = schema.tables.first(where: { $0.name == parent }),
          let found = tables[parent]?.first(where: { $0["id"] == value })
        else { return "…" }
        return text(known, found, depth: depth + 1)
      }
      return "\(table.name)(\(values.joined(separator: " ")))"
    }
    return schema.tables.flatMap { table in (tables[table.name] ?? []).map { text(table, $0, depth: 0) } }
  }
}
