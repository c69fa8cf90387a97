import Buckia
import SQLiteConnections
import SQLiteSchemas
import Testing
import TestSupport

/// A database goes through ten versions of a random schema, and its oldest copy adopts the nine diffs.
@Suite struct AdoptChainTests {
  /// An author who rebuilds tables at random.
  private struct Author {
    struct Column {
      let name: String
      var type: String
      var clause = ""
      var isGenerated = false
    }

    struct Table {
      let name: String
      var columns: [Column]
      let keyType: String
      var isWithoutRowID = false
      var isStrict = false
      var checks: [String] = []
    }

    private(set) var tables: [Table] = []
    private var objects: [(kind: String, name: String, table: String)] = []
    private var count = 0

    private mutating func newName(_ prefix: String) -> String {
      count += 1
      return count % 5 == 0 ? "\(prefix) \"\(count)" : "\(prefix)\(count)"
    }

    private static func quoted(_ name: String) -> String { SQLText.identifier(name) }

    private static func definition(of table: Table) -> String {
      var parts = ["id \(table.keyType) PRIMARY KEY"]
      parts += table.columns.map { "\(quoted($0.name)) \($0.type) \($0.clause)" }
      parts += table.checks
      let options = [table.isWithoutRowID ? "WITHOUT ROWID" : "", table.isStrict ? "STRICT" : ""].filter { !$0.isEmpty }
      return "CREATE TABLE \(quoted(table.name))(\(parts.joined(separator: ", "))) \(options.joined(separator: ", "))"
    }

    private func column(_ name: String, strict: Bool, _ random: inout SeededGenerator) -> Column {
      let types =
        strict
        ? ["INT", "TEXT", "ANY", "REAL"] : ["", "INTEGER", "TEXT", "REAL", "NUMERIC", "INTEGER_OR_TEXT", "BLOB"]
      return Column(
        name: name, type: random.pick(types),
        clause: random.pick(["", "", "DEFAULT 7", "COLLATE NOCASE", "DEFAULT 'x''y'", "CHECK (1 OR '\(name.count)')"]))
    }

    mutating func createTable(_ random: inout SeededGenerator) -> String {
      var table = Table(name: newName("t"), columns: [], keyType: random.pick(["INTEGER", "TEXT NOT NULL", "INTEGER"]))
      table.isWithoutRowID = random.oneIn(4)
      for _ in 0..<Int.random(in: 1...3, using: &random) {
        table.columns.append(column(newName("c"), strict: false, &random))
      }
      tables.append(table)
      return Self.definition(of: table)
    }

    /// Returns SQL for a random change of the schema.
    mutating func step(_ random: inout SeededGenerator) -> String {
      guard !tables.isEmpty, !random.oneIn(6) else { return createTable(&random) }
      let place = Int.random(in: 0..<tables.count, using: &random)
      let table = Self.quoted(tables[place].name)
      switch Int.random(in: 0..<10, using: &random) {
      case 0:
        let new = Column(
          name: newName("n"), type: random.pick(["INTEGER", "TEXT", ""]), clause: random.pick(["", "DEFAULT 5"]))
        guard !tables[place].isStrict, tables[place].checks.isEmpty else { return "" }
        tables[place].columns.append(new)
        return "ALTER TABLE \(table) ADD COLUMN \(Self.quoted(new.name)) \(new.type) \(new.clause)"
      case 1...4: return rebuild(place, &random)
      case 5 where tables.count > 1:
        tables.remove(at: place)
        let views = objects.filter { $0.kind == "VIEW" && $0.table == table }
        objects.removeAll { $0.table == table }
        return views.map { "DROP VIEW \(Self.quoted($0.name)); " }.joined() + "DROP TABLE \(table)"
      case 6:
        let name = newName("i")
        objects.append(("INDEX", name, table))
        let column = tables[place].columns.first.map { Self.quoted($0.name) } ?? "id"
        return
          "CREATE INDEX \(Self.quoted(name)) ON \(table)(lower(id), \(column)) \(random.pick(["", "WHERE id > 3"]))"
      case 7:
        let name = newName("v")
        objects.append(("VIEW", name, table))
        return "CREATE VIEW \(Self.quoted(name)) AS SELECT count(*) AS n, max(id) FROM \(table)"
      case 8:
        let name = newName("tr")
        objects.append(("TRIGGER", name, table))
        return "CREATE TRIGGER \(Self.quoted(name)) AFTER DELETE ON \(table) BEGIN SELECT 1; END"
      default:
        guard !objects.isEmpty else { return "" }
        let object = objects.remove(at: Int.random(in: 0..<objects.count, using: &random))
        return "DROP \(object.kind) IF EXISTS \(Self.quoted(object.name))"
      }
    }

    /// Returns SQL that rebuilds a table with other columns, types, clauses and options.
    private mutating func rebuild(_ place: Int, _ random: inout SeededGenerator) -> String {
      var table = tables[place]
      let kept = table.columns.filter { !$0.isGenerated && !random.oneIn(5) }
      table.isStrict = false
      table.columns = kept.map { old in
        guard random.oneIn(2) else { return old }
        var new = column(old.name, strict: false, &random)
        if random.oneIn(3) { new.clause = "" }
        return new
      }
      table.columns.shuffle(using: &random)
      if random.oneIn(3) {
        table.columns.append(
          Column(
            name: newName("g"), type: "", clause: "AS (id || 'x')\(random.oneIn(2) ? " STORED" : "")", isGenerated: true
          ))
      }
      if table.columns.isEmpty { table.columns.append(column(newName("c"), strict: false, &random)) }
      table.isWithoutRowID = random.oneIn(3)
      table.checks = random.oneIn(3) ? ["CHECK (id IS NOT 'never')"] : []
      let old = Self.quoted(tables[place].name)
      let names = (["id"] + kept.map { Self.quoted($0.name) }).joined(separator: ", ")
      tables[place] = table
      // Dropping the table drops its indexes and triggers, but not its views.
      return """
        PRAGMA legacy_alter_table = ON; ALTER TABLE \(old) RENAME TO before_it; \(Self.definition(of: table));
        INSERT INTO \(old)(\(names)) SELECT \(names) FROM before_it; DROP TABLE before_it
        """
    }

    /// Returns SQL for a random edit of rows.
    func edit(_ random: inout SeededGenerator) -> String {
      guard let table = tables.randomElement(using: &random),
        let column = table.columns.filter({ !$0.isGenerated }).randomElement(using: &random)
      else { return "" }
      let name = Self.quoted(table.name)
      let value = random.pick(["1", "2.5", "'text'", "NULL", "x'00ff'", "'12'", "'A'", "'a'", "-9223372036854775808"])
      let row = Int.random(in: 1...20, using: &random)
      return switch Int.random(in: 0..<4, using: &random) {
      case 0:
        "UPDATE OR IGNORE \(name) SET \(Self.quoted(column.name)) = \(value) WHERE CAST(id AS INTEGER) % 4 = \(row % 4)"
      case 1: "DELETE FROM \(name) WHERE CAST(id AS INTEGER) = \(row)"
      default: "INSERT OR IGNORE INTO \(name)(id, \(Self.quoted(column.name))) VALUES (\(row), \(value))"
      }
    }
  }

  @Test("The oldest copy becomes the newest version, in schema and rows", arguments: Seeds.shards)
  func tenVersions(shard: Int) throws {
    try Seeds.tryEach(16, shard: shard) { seed in
      var random = SeededGenerator(seed: seed)
      let folder = try TemporaryFolder()
      let home = BuckiaHome(path: folder.file("home"))
      var author = Author()
      let path = folder.file("author")
      try TestDatabases.run(
        (0..<3).map { _ in author.createTable(&random) } + (0..<20).map { _ in author.edit(&random) }, on: path)
      var latest = try folder.copy("author", to: "version-0")
      let receiver = try folder.copy("author", to: "receiver")
      try TestDatabases.run("CREATE TABLE mine(a); INSERT INTO mine VALUES (1)", on: receiver)
      for version in 1...9 {
        let steps = (0..<Int.random(in: 1...4, using: &random)).map { _ in author.step(&random) }
        let edits = (0..<Int.random(in: 0...12, using: &random)).map { _ in author.edit(&random) }
        try TestDatabases.run(steps + edits, on: path)
        let next = try folder.copy("author", to: "version-\(version)")
        // Two versions may have no table in common.
        var options = DiffOptions()
        options.allowsUnrelated = true
        let made = try DatabaseManager(next, home: home).createDatabaseDiff(
          since: latest, output: .folder(folder.path), options: options)
        latest = next
        guard let file = made.path else { continue }
        let report = try DatabaseManager(receiver).processInboundChanges(
          [file], options: ApplyOptions(conflicts: .abort, schema: .adopt))
        #expect(report.diffs.map(\.state) == [.applied], "\(Seeds.replay(seed)): \(report.diffs.first?.reason ?? "")")
        let differences = try AdoptTests.differences(receiver, next).filter { !$0.contains("mine") }
        #expect(differences == [], "\(Seeds.replay(seed)), version \(version)")
        let contents = try [receiver, next].map { path in
          try TestDatabases.content(of: path).filter { !$0.key.hasPrefix("buckia_") && $0.key != "mine" }
        }
        #expect(contents[0] == contents[1], "\(Seeds.replay(seed)), version \(version)")
      }
      #expect(try TestDatabases.rows("SELECT a FROM mine", on: receiver) == ["1"])
      #expect(try TestDatabases.rows("PRAGMA integrity_check", on: receiver) == ["'111.107'"])
    }
  }
}
