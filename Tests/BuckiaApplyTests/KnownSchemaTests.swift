import BuckiaBytes
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas
import TestSupport
import Testing

@testable import BuckiaApply
@testable import BuckiaLedger
@testable import SQLiteSchemas

/// A session's record of the schema equals a new read of it, and is refreshed no more often than necessary.
@Suite struct KnownSchemaTests {
  private static func changes(_ table: TableDefinition, number: Int) throws -> IncomingChanges {
    try IncomingChanges(
      key: LedgerKey(sender: "", id: nil, digest: [UInt8(number & 255), UInt8(number >> 8)], isRaw: false),
      file: "\(number)", definitions: [table], changeset: TemporaryBuffer([]))
  }

  private static func table(_ name: String, columns: [String], parent: String? = nil) -> TableDefinition {
    TableDefinition(
      name: name, columns: (["id"] + columns).map { ColumnDefinition(name: $0) }, primaryKey: [0],
      foreignKeys: parent.map { [ForeignKey(columns: ["id"], parent: $0)] } ?? [])
  }

  private static func apply(_ table: TableDefinition, number: Int, _ session: ApplySession) throws -> ApplyResult {
    try Receiver.plan(
      changes(table, number: number), on: session.connection, settings: ApplySettings(time: 2_000_000_000_000),
      session: session
    ).apply()
  }

  @Test("For files that each create a table, or add a column, the schema is read once")
  func readOnce() throws {
    let connection = try SQLiteConnection(opening: ":memory:", as: .create)
    try connection.execute("CREATE TABLE base(id PRIMARY KEY)")
    let session = ApplySession(on: connection)
    try session.begin()
    try connection.execute("BEGIN IMMEDIATE")
    try session.requireLedger()
    let known = try session.schema()
    for number in 0..<20 {
      let made = try Self.apply(Self.table("t\(number)", columns: []), number: number, session)
      #expect(made.schemaChanges == ["create table t\(number) (1 column)"])
      let added = try Self.apply(Self.table("base", columns: ["c\(number)"]), number: 100 + number, session)
      #expect(added.schemaChanges == ["add column base.c\(number)"])
      #expect(try session.schema() === known)
    }
    #expect(known.entries.count { !$0.name.text.hasPrefix("buckia_") } == 21)
    try session.end()
  }

  @Test("A failed file leaves the schema record unchanged")
  func keptByFailures() throws {
    let connection = try SQLiteConnection(opening: ":memory:", as: .create)
    try connection.execute("CREATE TABLE base(id PRIMARY KEY, a); INSERT INTO base VALUES (1, 1)")
    let session = ApplySession(on: connection)
    try session.begin()
    try connection.execute("BEGIN IMMEDIATE")
    try session.requireLedger()
    let known = try session.schema()
    for number in 0..<3 {
      let changes = try IncomingChanges(
        key: LedgerKey(sender: "", id: nil, digest: [UInt8(number)], isRaw: false), file: "\(number)",
        definitions: [Self.table("base", columns: ["a"])],
        changeset: TemporaryBuffer(insertion(into: "base", keyFlags: [1, 0], values: [1, 2])))
      let plan = try Receiver.plan(
        changes, on: connection, settings: ApplySettings(policies: .abort, time: 2_000_000_000_000), session: session)
      #expect(throws: ReplicationError.self) { _ = try plan.apply() }
      #expect(try session.schema() === known)
    }
    try session.end()
  }

  /// An INSERT of integers into one table, as changeset bytes.
  private func insertion(into table: String, keyFlags: [UInt8], values: [Int64]) -> [UInt8] {
    var writer = ChangesetWriter()
    writer.beginTable(ChangesetTable(name: table, keyFlags: keyFlags))
    writer.beginChange(.insert)
    for value in values { writer.append(integer: value) }
    return writer.bytes
  }

  // MARK: Changes of the schema

  /// Compares a session's record with the actual schema.
  private static func check(_ session: ApplySession, _ note: String) throws {
    let known = try session.schema()
    let read = try SchemaReader(session.connection)
    #expect(known.entries.map(\.name.text) == read.entries.map(\.name.text), "\(note)")
    #expect(known.entries.map(\.sql) == read.entries.map(\.sql), "\(note)")
    let references = try session.references()
    let referencesNow = try SchemaReferences(session.connection)
    #expect(references.children == referencesNow.children, "\(note)")
    for entry in read.entries {
      let mine = try #require(known.entry(named: entry.name), "\(note)")
      #expect(mine.kind == entry.kind && mine.isStrict == entry.isStrict, "\(note)")
      #expect(mine.isWithoutRowID == entry.isWithoutRowID, "\(note)")
      guard entry.kind == .table else { continue }
      let definition = try known.definition(of: mine)
      #expect(definition.isIdentical(to: try read.definition(of: entry)), "\(note) \(entry.name)")
      let isChild = (references.isChild(entry.name), referencesNow.isChild(entry.name))
      #expect(isChild.0 == isChild.1, "\(note) \(entry.name)")
      #expect(references.children(of: entry.name) == referencesNow.children(of: entry.name), "\(note) \(entry.name)")
      let besides = references.children(of: entry.name, besidesKeyOf: definition)
      #expect(besides == referencesNow.children(of: entry.name, besidesKeyOf: definition), "\(note) \(entry.name)")
    }
    #expect(try session.hasVirtualTables() == IndexSchema.hasVirtualTables(on: session.connection), "\(note)")
    let indexes = try session.indexSchema()
    let indexesNow = try IndexSchema(session.connection)
    #expect(indexes.tables == indexesNow.tables && indexes.views == indexesNow.views, "\(note)")
  }

  private static func column(_ random: inout SeededGenerator, _ number: Int) -> ColumnDefinition {
    let defaults = ["5", "-1.5", "'it''s'", "x'00ff'", "NULL", "CURRENT_TIME", "TRUE", "1e3"]
    return ColumnDefinition(
      name: random.pick(["c\(number)", "Ç \(number)", "\"\(number)"]),
      declaredType: random.pick(["", "INT", "TEXT", "NUMERIC(3, 2)", "VARCHAR(10)", "BLOB"]),
      isNotNull: random.oneIn(3),
      defaultValue: random.oneIn(2) ? nil : LiteralDefault(parsing: random.pick(defaults)),
      collation: random.pick(["BINARY", "NOCASE", "RTRIM"]))
  }

  private static func newTable(_ random: inout SeededGenerator, _ number: Int, among names: [String]) -> SchemaStep {
    let name = random.pick(["t\(number)", "T \(number)", "\"\(number)"])
    var table = TableDefinition(
      name: name, columns: [ColumnDefinition(name: "id", declaredType: "INTEGER")], primaryKey: [0],
      isWithoutRowID: random.oneIn(3))
    for place in 0..<Int.random(in: 0...3, using: &random) { table.columns.append(column(&random, place)) }
    if table.columns.count > 1, random.oneIn(2) { table.unique = [[1]] }
    if random.oneIn(2) {
      let parent = random.oneIn(4) ? "missing" : random.pick(names + [name])
      table.foreignKeys = [
        ForeignKey(
          columns: ["id"], parent: parent, parentColumns: random.oneIn(2) ? [] : [random.pick(["id", "other"])])
      ]
    }
    return .createTable(table, siblings: Set((names + [name, "missing"]).map { TableName($0) }))
  }

  @Test(
    "After steps, rolled-back savepoints and other writers, the record equals a new read",
    arguments: Seeds.shards)
  func likeANewLook(_ shard: Int) throws {
    try Seeds.tryEach(60, shard: shard) { seed in
      var random = SeededGenerator(seed: seed)
      let folder = try TemporaryFolder()
      let path = folder.file("a.sqlite")
      try TestDatabases.run("CREATE TABLE base(id INTEGER PRIMARY KEY, other UNIQUE)", on: path)
      let connection = try SQLiteConnection(opening: path, as: .readWrite)
      let session = ApplySession(on: connection)
      try session.begin()
      var number = 0
      for round in 0..<6 {
        let mark: ApplySession.Mark
        try connection.execute("BEGIN IMMEDIATE")
        mark = try session.mark()
        for _ in 0..<Int.random(in: 0...6, using: &random) {
          let note = "seed \(seed), round \(round), number \(number)"
          let tables = try session.schema().entries.filter { $0.kind == .table }
          let names = tables.map(\.name.text)
          if random.oneIn(2), let table = tables.randomElement(using: &random) {
            // Otherwise it is read on demand.
            _ = try session.schema().definition(of: table)
          }
          number += 1
          let step =
            random.oneIn(2)
            ? newTableOrColumn(&random, number, names) : Self.newTable(&random, number, among: names)
          let isTakenBack = random.oneIn(3)
          try connection.execute("SAVEPOINT one")
          let inner = try session.mark()
          try session.carryOut(step)
          if random.oneIn(4) { try connection.execute("CREATE INDEX i\(number) ON base(other)") }
          if random.oneIn(2) { try Self.check(session, note) }
          if isTakenBack {
            try connection.execute("ROLLBACK TO one; RELEASE one")
            session.rollBack(to: inner)
          } else {
            try connection.execute("RELEASE one")
          }
          if random.oneIn(2) { try Self.check(session, note) }
        }
        if random.oneIn(3) {
          try connection.execute("ROLLBACK")
          session.rollBack(to: mark)
        } else {
          try connection.execute("COMMIT")
        }
        // Other connections add as many changes as were rolled back, or not.
        for _ in 0..<Int.random(in: 0...3, using: &random) {
          number += 1
          let other = random.pick([
            "CREATE TABLE \"o\(number)\"(id REFERENCES base)", "CREATE VIEW \"o\(number)\" AS SELECT 1",
            "ALTER TABLE base ADD COLUMN \"o\(number)\"",
          ])
          try TestDatabases.run(other, on: path)
        }
        try Self.check(session, "seed \(seed), round \(round)")
      }
      try session.end()
    }
  }

  private func newTableOrColumn(
    _ random: inout SeededGenerator, _ number: Int, _ names: [String]
  ) -> SchemaStep {
    guard !names.isEmpty else { return Self.newTable(&random, number, among: names) }
    return .addColumn(Self.column(&random, 100 + number), table: TableName(random.pick(names)))
  }
}
