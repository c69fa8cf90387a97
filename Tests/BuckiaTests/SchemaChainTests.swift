import Buckia
import BuckiaDiff
import BuckiaBytes
import SQLiteSchemas
import Testing
import TestSupport

/// A database goes through ten versions of its schema. Its oldest copy and the nine diffs make the newest version.
@Suite struct SchemaChainTests {
  /// A database whose schema and rows change at random, with a record of its tables.
  private struct Author {
    struct Table {
      var name: String
      /// The columns beside the key `id`, in order.
      var columns: [Column]
      /// The clause of the key, and the options after the columns.
      let key: String
      let end: String
    }

    struct Column {
      /// Its names, the oldest one first.
      var names: [String]
      var name: String { names[names.count - 1] }
      let type: String
    }

    private(set) var tables: [Table] = []
    private var count = 0
    /// The renames since the last version.
    var renames: [ColumnRename] = []
    /// The tables that steps and edits have touched since the last version.
    var touched: Set<String> = []

    private mutating func newName(_ prefix: String) -> String {
      count += 1
      return count % 4 == 0 ? "\(prefix) \"\(count)" : "\(prefix)\(count)"
    }

    private static func quoted(_ name: String) -> String { SQLText.identifier(name) }

    mutating func createTable(_ random: inout SeededGenerator) -> String {
      let isWithoutRowID = random.oneIn(3)
      var table = Table(
        name: newName("t"), columns: [],
        key: isWithoutRowID ? "id TEXT PRIMARY KEY" : random.pick(["id INTEGER PRIMARY KEY", "id TEXT PRIMARY KEY"]),
        end: isWithoutRowID ? "WITHOUT ROWID" : "")
      for _ in 0..<Int.random(in: 1...4, using: &random) {
        let name = newName("c")
        let type = random.pick(["INTEGER", "TEXT", "REAL", "", "BLOB COLLATE NOCASE"])
        table.columns.append(Column(names: [name], type: type))
      }
      tables.append(table)
      touched.insert(table.name)
      return Self.creation(of: table, as: Self.quoted(table.name))
    }

    private static func creation(of table: Table, as name: String) -> String {
      let columns = table.columns.map { "\(quoted($0.name)) \($0.type)" } + [table.key]
      return "CREATE TABLE \(name)(\(columns.joined(separator: ", "))) \(table.end)"
    }

    /// Returns SQL for a random change of the schema.
    mutating func step(_ random: inout SeededGenerator) -> String {
      guard !tables.isEmpty, !random.oneIn(4) else { return createTable(&random) }
      let place = Int.random(in: 0..<tables.count, using: &random)
      let table = Self.quoted(tables[place].name)
      touched.insert(tables[place].name)
      switch Int.random(in: 0..<6, using: &random) {
      case 0, 1:
        let name = newName("n")
        let type = random.pick([
          "", "INTEGER DEFAULT 5", "TEXT NOT NULL DEFAULT 'x''y'", "REAL", "TEXT DEFAULT NULL", "NUMERIC DEFAULT -1.5",
        ])
        tables[place].columns.append(Column(names: [name], type: type))
        return "ALTER TABLE \(table) ADD COLUMN \(Self.quoted(name)) \(type)"
      case 2:
        guard tables[place].columns.count > 1 else { return "" }
        let gone = tables[place].columns.remove(at: Int.random(in: 0..<tables[place].columns.count, using: &random))
        return "ALTER TABLE \(table) DROP COLUMN \(Self.quoted(gone.name))"
      case 3:
        let column = Int.random(in: 0..<tables[place].columns.count, using: &random)
        let old = tables[place].columns[column].name
        // A column is renamed at most once for each version.
        guard !renames.contains(where: { $0.newName == old }) else { return "" }
        let new = newName("r")
        // A column that the last version lacks is new under its new name.
        renames.append(ColumnRename(table: TableName(tables[place].name), from: old, to: new))
        tables[place].columns[column].names.append(new)
        return "ALTER TABLE \(table) RENAME COLUMN \(Self.quoted(old)) TO \(Self.quoted(new))"
      case 4:
        // Rebuilds the table with its columns in another order.
        tables[place].columns.shuffle(using: &random)
        let names = (tables[place].columns.map { Self.quoted($0.name) } + ["id"]).joined(separator: ", ")
        return """
          \(Self.creation(of: tables[place], as: "made")); INSERT INTO made(\(names)) SELECT \(names) FROM \(table);
          DROP TABLE \(table); ALTER TABLE made RENAME TO \(table)
          """
      default:
        return random.pick([
          "CREATE INDEX \(Self.quoted(newName("i"))) ON \(table)(id)",
          "CREATE VIEW \(Self.quoted(newName("v"))) AS SELECT 1",
          "VACUUM",
        ])
      }
    }

    /// Returns SQL for a random edit of rows.
    mutating func edit(_ random: inout SeededGenerator) -> String {
      guard let table = tables.randomElement(using: &random), let column = table.columns.randomElement(using: &random)
      else {
        return ""
      }
      touched.insert(table.name)
      let name = Self.quoted(table.name)
      let value = random.pick(["1", "2.5", "'text'", "NULL", "x'00ff'", "'12'", "-9223372036854775808"])
      let row = Int.random(in: 1...30, using: &random)
      return switch Int.random(in: 0..<4, using: &random) {
      case 0:
        "UPDATE OR IGNORE \(name) SET \(Self.quoted(column.name)) = \(value) WHERE CAST(id AS INTEGER) % 5 = \(row % 5)"
      case 1: "DELETE FROM \(name) WHERE id = \(row)"
      default: "INSERT OR IGNORE INTO \(name)(id, \(Self.quoted(column.name))) VALUES (\(row), \(value))"
      }
    }
  }

  /// The rows of an author's tables in a database, by table.
  private static func content(
    of path: String, _ author: Author, naming name: (Author.Table, Author.Column) throws -> String
  ) throws -> [String: [String]] {
    var content: [String: [String]] = [:]
    for table in author.tables {
      let columns = try ["id"] + table.columns.map { SQLText.identifier(try name(table, $0)) }
      content[table.name] = try TestDatabases.rows(
        "SELECT \(columns.joined(separator: ", ")) FROM \(SQLText.identifier(table.name))", on: path
      ).sorted()
    }
    return content
  }

  @Test(
    "The oldest copy and nine diffs make the newest version, in any order that the diffs allow", arguments: Seeds.shards
  )
  func tenVersions(shard: Int) throws {
    try Seeds.tryEach(16, shard: shard) { seed in
      var random = SeededGenerator(seed: seed)
      let folder = try TemporaryFolder()
      let home = BuckiaHome(path: folder.file("home"))
      var author = Author()
      let path = folder.file("author")
      try TestDatabases.run(
        (0..<2).map { _ in author.createTable(&random) } + (0..<20).map { _ in author.edit(&random) }, on: path)
      var copies = [try folder.copy("author", to: "version-0")]
      var diffs: [(path: String, touched: Set<String>)] = []
      for version in 1...9 {
        author.renames = []
        author.touched = []
        let before = author.tables
        let steps = (0..<Int.random(in: 1...3, using: &random)).map { _ in author.step(&random) }
        let edits = (0..<Int.random(in: 0...12, using: &random)).map { _ in author.edit(&random) }
        try TestDatabases.run(steps + edits, on: path)
        copies.append(try folder.copy("author", to: "version-\(version)"))
        // A column added and renamed, or renamed and dropped, within one version is no rename between two versions.
        let renames = author.renames.filter { rename in
          let name = { (tables: [Author.Table], column: String) in
            tables.contains { TableName($0.name) == rename.table && $0.columns.contains { $0.name == column } }
          }
          return name(before, rename.oldName) && name(author.tables, rename.newName)
        }
        let report = try DatabaseManager(copies[version], home: home).createDatabaseDiff(
          since: copies[version - 1], output: .folder(folder.path),
          options: DiffOptions(renames: renames))
        guard let made = report.path else { continue }
        // Receivers record the renames of signing senders only.
        try sign(fileAt: made, by: 1)
        diffs.append((made, author.touched))
      }
      let expected = try Self.content(of: path, author) { $1.name }
      for order in [Array(diffs.indices), Self.anyOrder(of: diffs.map(\.touched), &random)] {
        let name = "rebuilt-" + order.map(String.init).joined()
        if folder.has(name) { continue }
        let rebuilt = try folder.copy("version-0", to: name)
        for place in order {
          let report = try DatabaseManager(rebuilt).processInboundChanges(
            [diffs[place].path], options: ApplyOptions(conflicts: .abort))
          #expect(report.diffs.map(\.state) == [.applied], "\(Seeds.replay(seed)): \(report.diffs.first?.reason ?? "")")
        }
        let found = try Self.content(of: rebuilt, author) { try Self.name(of: $1, of: $0, in: rebuilt) }
        #expect(found == expected, "\(Seeds.replay(seed))")
        #expect(try TestDatabases.rows("PRAGMA integrity_check", on: rebuilt) == ["'111.107'"])
      }
    }
  }

  /// The name of a column in a database that renames none: the one in the first diff that had the column.
  private static func name(
    of column: Author.Column, of table: Author.Table, in path: String
  ) throws -> String {
    try column.names.first { name in
      let isThere = "name = \(SQLText.literal(name))"
      let query = "SELECT count(*) FROM pragma_table_info(\(SQLText.literal(table.name))) WHERE \(isThere)"
      return try TestDatabases.rows(query, on: path) == ["1"]
    } ?? "missing"
  }

  /// A random order in which each diff comes after the earlier ones that have touched one of its tables.
  private static func anyOrder(of touched: [Set<String>], _ random: inout SeededGenerator) -> [Int] {
    var left = Array(touched.indices)
    var order: [Int] = []
    while !left.isEmpty {
      let free = left.filter { one in left.allSatisfy { $0 >= one || touched[$0].isDisjoint(with: touched[one]) } }
      let next = free[Int.random(in: 0..<free.count, using: &random)]
      order.append(next)
      left.removeAll { $0 == next }
    }
    return order
  }
}
