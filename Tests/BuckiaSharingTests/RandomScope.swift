import BuckiaSharing
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas
import TestSupport

/// A random schema with rows and a scope, and the rows of the scope, found by following each reference separately.
final class RandomScope {
  let connection: SQLiteConnection
  private(set) var scope = ShareScope(tables: [])
  private(set) var story = ""
  private var tables: [Table] = []

  private struct Table {
    var name = ""
    /// The columns with references, and their targets: a table, and its key or its other unique column.
    var references: [(column: String, parent: Int, toKey: Bool)] = []
    var rows: [Row] = []
    var threshold: Int64?
    var isNamed = false
    var parents: Set<Int> = []
    var depth: Int?
    var childThreshold: Int64?
    var omitted: Set<String> = []
  }

  private struct Row {
    var id: Int64
    var other: Int64
    var number: Int64
    var references: [Int64?]
  }

  init(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    connection = try SQLiteConnection(opening: ":memory:", as: .create)
    let count = Int.random(in: 1...5, using: &random)
    let mayDangle = Int.random(in: 0..<5, using: &random) == 0
    for place in 0..<count {
      var table = Table(name: "t\(place)")
      for column in 0..<Int.random(in: 0...3, using: &random) {
        table.references.append(
          ("r\(column)", Int.random(in: 0..<count, using: &random), Bool.random(using: &random)))
      }
      for id in 0..<Int64.random(in: 0...12, using: &random) {
        table.rows.append(
          Row(id: id * 3 + 1, other: 100 - id, number: Int64.random(in: 0...9, using: &random), references: []))
      }
      tables.append(table)
    }
    for place in tables.indices {
      for row in tables[place].rows.indices {
        tables[place].rows[row].references = tables[place].references.map { reference in
          let parents = tables[reference.parent].rows
          if mayDangle, Int.random(in: 0..<20, using: &random) == 0 { return 7_777 }
          guard let parent = parents.randomElement(using: &random), Bool.random(using: &random) else { return nil }
          return reference.toKey ? parent.id : parent.other
        }
      }
    }
    var declared: [SharedReference] = []
    for table in tables {
      let isWithoutRowID = Int.random(in: 0..<3, using: &random) == 0
      var columns = [
        isWithoutRowID
          ? "id TEXT" : ["id INTEGER", "id INT", "id TEXT COLLATE NOCASE"][Int.random(in: 0..<3, using: &random)],
        // A reference that only the scope declares may refer to columns without an index.
        Int.random(in: 0..<4, using: &random) == 0 ? "other INTEGER" : "other INTEGER UNIQUE", "number INTEGER",
      ]
      columns += table.references.map {
        "\($0.column) \(["INTEGER", "TEXT", ""][Int.random(in: 0..<3, using: &random)])"
      }
      columns.append("PRIMARY KEY (id)")
      for reference in table.references {
        let parent = reference.toKey ? "id" : "other"
        if Int.random(in: 0..<4, using: &random) == 0 {
          declared.append(
            SharedReference(
              TableName(table.name), [reference.column], to: TableName(tables[reference.parent].name), [parent]))
        } else {
          columns.append("FOREIGN KEY (\(reference.column)) REFERENCES \(tables[reference.parent].name)(\(parent))")
        }
      }
      let sql =
        "CREATE TABLE \(table.name)(\(columns.joined(separator: ", ")))\(isWithoutRowID ? " WITHOUT ROWID" : "")"
      try connection.execute(sql)
      story += sql + ";\n"
      for row in table.rows {
        let values =
          [row.id, row.other, row.number].map(String.init) + row.references.map { $0.map(String.init) ?? "NULL" }
        let insert = "INSERT INTO \(table.name) VALUES (\(values.joined(separator: ", ")))"
        try connection.execute(insert)
        story += insert + ";\n"
      }
      if let column = table.references.first?.column, Bool.random(using: &random) {
        let collation = Int.random(in: 0..<4, using: &random) == 0 ? " COLLATE NOCASE" : ""
        let index = "CREATE INDEX \(table.name)_i ON \(table.name)(\(column)\(collation))"
        try connection.execute(index)
        story += index + ";\n"
      }
    }
    var shared: [SharedTable] = []
    for place in tables.indices where place == 0 || Bool.random(using: &random) { tables[place].isNamed = true }
    for place in tables.indices where tables[place].isNamed {
      var table = SharedTable(TableName(tables[place].name))
      if Int.random(in: 0..<4, using: &random) > 0 {
        let threshold = Int64.random(in: 0...9, using: &random)
        tables[place].threshold = threshold
        table = table.where("number < :limit", ["limit": .integer(threshold)])
      }
      let possible = Set(tables[place].references.map(\.parent)).filter { tables[$0].isNamed }.sorted()
      if !possible.isEmpty, Bool.random(using: &random) {
        tables[place].parents = Set(possible.filter { _ in Bool.random(using: &random) })
        if tables[place].parents.isEmpty { tables[place].parents = [possible[0]] }
        tables[place].depth = Bool.random(using: &random) ? Int.random(in: 1...3, using: &random) : nil
        tables[place].childThreshold = Bool.random(using: &random) ? Int64.random(in: 3...9, using: &random) : nil
        table.parents = tables[place].parents.sorted().map { TableName(tables[$0].name) }
        table.depth = tables[place].depth
        table.childCondition = tables[place].childThreshold.map { "number < \($0)" }
      }
      if Int.random(in: 0..<5, using: &random) == 0, let column = tables[place].references.last?.column,
        tables[place].parents.isEmpty
      {
        tables[place].omitted = [column]
        table = table.omitting(column)
      }
      shared.append(table)
    }
    // If a table takes part only because others refer to it, only columns with references that the scope declares are
    // shared.
    for place in tables.indices where !tables[place].isNamed {
      let name = TableName(tables[place].name)
      tables[place].omitted = Set(tables[place].references.map(\.column)).subtracting(
        declared.filter { $0.table == name }.flatMap(\.columns))
    }
    // References of tables that do not take part cannot be declared.
    var scope = ShareScope(tables: shared)
    var named = Set(shared.map(\.name))
    var grew = true
    while grew {
      scope.references = declared.filter { named.contains($0.table) }
      let reached = tables.flatMap { table in
        named.contains(TableName(table.name))
          ? table.references.filter { !table.omitted.contains($0.column) }.map { TableName(tables[$0.parent].name) }
          : []
      }
      grew = !named.isSuperset(of: reached)
      named.formUnion(reached)
    }
    self.scope = scope
    story += scope.json
  }

  /// The keys of the rows as text, by table, and the number of left-out rows.
  func rows() throws -> (keys: [String: [String]], leftOut: Int) {
    var levels: [[Int64: Int]] = tables.map { _ in [:] }
    var members: [Set<Int64>] = tables.map { _ in [] }
    for (place, table) in tables.enumerated() where table.isNamed {
      guard table.threshold != nil || table.parents.isEmpty else { continue }
      for row in table.rows where row.number < table.threshold ?? .max { levels[place][row.id] = 0 }
    }
    // Children, step by step, until nothing changes.
    var hasChanged = true
    while hasChanged {
      hasChanged = false
      for (place, table) in tables.enumerated() {
        for row in table.rows where row.number < table.childThreshold ?? .max {
          for (value, reference) in zip(row.references, table.references)
          where table.parents.contains(reference.parent) {
            guard let parent = target(of: value, reference), let level = levels[reference.parent][parent.id],
              level + 1 <= table.depth ?? .max, levels[place][row.id] ?? .max > level + 1
            else { continue }
            levels[place][row.id] = level + 1
            hasChanged = true
          }
        }
      }
    }
    var open = levels.enumerated().flatMap { place, rows in rows.keys.map { (place, $0) } }
    while let (place, id) = open.popLast() {
      guard members[place].insert(id).inserted, let row = tables[place].rows.first(where: { $0.id == id }) else {
        continue
      }
      for (value, reference) in zip(row.references, tables[place].references)
      where value != nil && !tables[place].omitted.contains(reference.column) {
        guard let parent = target(of: value, reference) else { continue }
        open.append((reference.parent, parent.id))
      }
    }
    let leftOut = leaveOut(of: &members)
    var found: [String: [String]] = [:]
    var reached = Set(tables.indices.filter { tables[$0].isNamed })
    var next = Array(reached)
    while let place = next.popLast() {
      for reference in tables[place].references where !tables[place].omitted.contains(reference.column) {
        if reached.insert(reference.parent).inserted { next.append(reference.parent) }
      }
    }
    for place in reached {
      var keys: [String] = []
      try connection.forEachRow(of: "SELECT id FROM \(tables[place].name) ORDER BY 1") { row in
        guard let text = row.text(at: 0), let id = Int64(text), members[place].contains(id) else { return }
        keys.append(row.storageClass(at: 0) == .text ? "'\(text)'" : text)
      }
      found[tables[place].name] = keys
    }
    return (found, leftOut)
  }

  /// Removes rows whose parent is missing, until nothing changes.
  private func leaveOut(of members: inout [Set<Int64>]) -> Int {
    var count = 0
    var hasChanged = true
    while hasChanged {
      hasChanged = false
      for (place, table) in tables.enumerated() {
        for row in table.rows where members[place].contains(row.id) {
          let dangles = zip(row.references, table.references).contains { value, reference in
            guard value != nil, !table.omitted.contains(reference.column) else { return false }
            return target(of: value, reference).map { !members[reference.parent].contains($0.id) } ?? true
          }
          guard dangles else { continue }
          members[place].remove(row.id)
          count += 1
          hasChanged = true
        }
      }
    }
    return count
  }

  private func target(of value: Int64?, _ reference: (column: String, parent: Int, toKey: Bool)) -> Row? {
    value.flatMap { value in
      tables[reference.parent].rows.first { (reference.toKey ? $0.id : $0.other) == value }
    }
  }
}
