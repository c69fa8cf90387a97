import BuckiaApply
import BuckiaBytes
import BuckiaLedger
import SQLiteSchemas
import SQLiteChangesets
@testable import SQLiteConnections
import Testing
import TestSupport

/// Received virtual tables that are not what they claim to be.
@Suite struct VirtualRefusalTests {
  struct Mismatch: Sendable, CustomTestStringConvertible {
    /// The author's tables, each from a separate database.
    let incoming: [String]
    let local: String
    let code: BuckiaErrorCode
    let reason: String
    var mode = SchemaMode.additive
    var testDescription: String { "\(incoming.joined(separator: "; ")) onto \(local)" }

    init(
      _ incoming: String..., on local: String, _ code: BuckiaErrorCode, _ reason: String,
      mode: SchemaMode = .additive
    ) {
      self.incoming = incoming
      self.local = local
      self.code = code
      self.reason = reason
      self.mode = mode
    }
  }

  private static func virtual(_ arguments: String) -> String { "CREATE VIRTUAL TABLE t USING \(arguments)" }

  static let mismatches = [
    Mismatch("CREATE TABLE t(a)", on: virtual("fts5(a)"), .refusedTable, "virtual table (fts5) here"),
    Mismatch(virtual("fts5(a)"), on: "CREATE TABLE t(a)", .refusedTable, "ordinary one here"),
    Mismatch(virtual("fts5(a)"), on: "CREATE VIEW t AS SELECT 1 AS a", .refusedTable, "view"),
    Mismatch(virtual("fts5(a)"), on: virtual("fts5(a, content='')"), .refusedTable, "keeps no text"),
    Mismatch(virtual("fts5(a)"), on: virtual("fts4(a)"), .refusedTable, "fts4"),
    Mismatch(virtual("rtree(id, a, b)"), on: virtual("rtree_i32(id, a, b)"), .refusedTable, "rtree_i32 here"),
    Mismatch(virtual("fts5(a, b)"), on: virtual("fts5(a)"), .columnsDiffer, "no column \"b\""),
    Mismatch(virtual("fts5(a)"), on: virtual("fts5(a, b)"), .columnsDiffer, "has 2 columns here"),
    Mismatch(virtual("rtree(id, a, b)"), on: virtual("rtree(a, id, b)"), .keyDiffers, "another key here"),
    Mismatch(virtual("fts5(a, b)"), on: virtual("fts5(b, a)"), .schemaDiffers, "exact", mode: .exact),
    Mismatch(virtual("fts5(a)"), on: virtual("fts5(a, detail=none)"), .schemaDiffers, "exact", mode: .exact),
    Mismatch(virtual("fts5(a)"), on: "CREATE TABLE u(a)", .schemaDiffers, "missing here", mode: .exact),
    Mismatch(virtual("fts5(a)"), on: "CREATE TABLE t_docsize(a)", .refusedDefinition, "t_docsize"),
    Mismatch(virtual("rtree(i, a, b)"), on: "CREATE VIEW T_node AS SELECT 1", .refusedDefinition, "t_node"),
    Mismatch(
      virtual("rtree(i, a, b)"), on: "CREATE TABLE u(a); CREATE INDEX t_rowid ON u(a)", .refusedDefinition, "t_rowid"),
    Mismatch(
      "CREATE TABLE t_docsize(a)", on: virtual("fts5(a, columnsize=0)"), .refusedDefinition, "virtual table \"t\""),
    Mismatch(
      "CREATE TABLE t_docsize(a)", virtual("fts5(a, columnsize=0)"), on: "CREATE TABLE u(a)", .refusedDefinition,
      "t_docsize"),
    Mismatch(
      "CREATE TABLE t_data(id INTEGER PRIMARY KEY, block)", on: virtual("fts5(a)"), .refusedTable,
      "insides of the virtual table t"),
    Mismatch(
      "CREATE TABLE t_node(nodeno INTEGER PRIMARY KEY, data)", on: virtual("rtree(i, a, b)"), .refusedTable, "insides"),
  ]

  private static func definitions(_ sql: String) throws -> [TableDefinition] {
    let connection = try SQLiteConnection(opening: ":memory:", as: .create)
    try connection.execute(sql)
    let schema = try SchemaReader(connection)
    return try schema.entries.filter { Replicability.refusal(of: $0) == nil }
      .map { try schema.definition(of: $0) }
  }

  private static func apply(
    _ changes: [UInt8], _ definitions: [TableDefinition]?, to connection: borrowing SQLiteConnection,
    settings: ApplySettings = ApplySettings(time: 2_000_000_000_000)
  ) throws -> ApplyResult {
    let incoming = try IncomingChanges(
      key: LedgerKey(sender: "", id: KSUID(timestamp: 1, payloadHigh: 1, payloadLow: 2), digest: [1], isRaw: false),
      file: "test.bdiff", definitions: definitions, changeset: TemporaryBuffer(changes))
    let transaction = try SQLiteTransaction(on: connection)
    let result = try Receiver.plan(incoming, on: connection, settings: settings).apply(in: transaction)
    try transaction.commit()
    return result
  }

  private static func schema(of connection: borrowing SQLiteConnection) throws -> [String] {
    try TestDatabases.texts("SELECT name || coalesce(sql, '') FROM sqlite_schema", on: connection)
  }

  /// The error with which applying ends.
  private static func refusal(
    _ changes: [UInt8], _ definitions: [TableDefinition]?, to connection: borrowing SQLiteConnection,
    settings: ApplySettings = ApplySettings(time: 2_000_000_000_000)
  ) throws -> ReplicationError? {
    do {
      _ = try apply(changes, definitions, to: connection, settings: settings)
      return nil
    } catch let error as ReplicationError {
      return error
    }
  }

  @Test("A table that does not fit is refused with the reason, and nothing changes", arguments: mismatches)
  func refused(_ example: Mismatch) throws {
    let definitions = try example.incoming.flatMap(Self.definitions)
    let receiver = try SQLiteConnection(opening: ":memory:", as: .create)
    try receiver.execute(example.local)
    let before = try Self.schema(of: receiver)
    let error = try Self.refusal(
      [], definitions, to: receiver, settings: ApplySettings(schema: example.mode, time: 2_000_000_000_000))
    #expect(error?.code == example.code, "\(error?.message ?? "accepted")")
    #expect(error?.message.contains(example.reason) == true, "\(error?.message ?? "accepted")")
    #expect(try Self.schema(of: receiver) == before)
  }

  /// Removes all modules of virtual tables from a connection.
  private static func dropModules(of connection: borrowing SQLiteConnection) throws {
    typealias Drop = @convention(c) (OpaquePointer, UnsafeMutableRawPointer?) -> Int32
    let drop = try LoadedSQLite.linked.get().function("sqlite3_drop_modules", as: Drop.self)
    #expect(drop(connection.handle.pointer, nil) == 0)
  }

  @Test("If SQLite lacks the module, a table is not created, and the module is named", arguments: ["fts5", "rtree"])
  func withoutModule(_ module: String) throws {
    let definitions = try Self.definitions(Self.virtual("\(module)(a, b, c)"))
    let receiver = try SQLiteConnection(opening: ":memory:", as: .create)
    try Self.dropModules(of: receiver)
    try receiver.execute("CREATE TABLE pragmas(a)")
    let error = try Self.refusal([], definitions, to: receiver)
    #expect(error?.code == .refusedDefinition)
    #expect(error?.message.contains("the module \(module), which SQLite lacks here") == true)
  }

  @Test("If SQLite lacks the module of an existing table, the diff is refused, and the module is named")
  func withoutModuleOfTable() throws {
    let folder = try TemporaryFolder()
    let path = try TestDatabases.run(Self.virtual("fts5(a)"), on: folder.file("database"))
    let receiver = try SQLiteConnection(opening: path, as: .readWrite)
    try Self.dropModules(of: receiver)
    let error = try Self.refusal([], Self.definitions(Self.virtual("fts5(a)")), to: receiver)
    #expect(error?.code == .refusedTable)
    #expect(error?.message.contains("no such module: fts5") == true)
  }

  // MARK: Values

  private static func insert(_ table: String, keyFlags: [UInt8], _ values: (inout ChangesetWriter) -> Void) -> [UInt8] {
    var writer = ChangesetWriter()
    writer.beginTable(ChangesetTable(name: table, keyFlags: keyFlags))
    writer.beginChange(.insert)
    values(&writer)
    return writer.bytes
  }

  struct Value: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let write: @Sendable (inout ChangesetWriter) -> Void
    /// True if an R-tree of reals, and one of integers, keeps it unchanged as a coordinate; and whether it can be a
    /// key.
    let isReal: Bool
    let isInteger: Bool
    let isKey: Bool

    init(
      _ name: String, real: Bool = false, integer: Bool = false, key: Bool = false,
      _ write: @escaping @Sendable (inout ChangesetWriter) -> Void
    ) {
      testDescription = name
      self.write = write
      isReal = real
      isInteger = integer
      isKey = key
    }
  }

  static let values = [
    Value("text") { $0.append(text: "abc") }, Value("digits") { $0.append(text: "1") },
    Value("NULL") { $0.appendNull() },
    Value("an empty blob") { writer in [UInt8]().withUnsafeBytes { writer.append(.blob, $0) } },
    Value("0.1, which 32 bits do not hold") { $0.append(real: 0.1) },
    Value("0.5", real: true) { $0.append(real: 0.5) }, Value("-0.0", real: true) { $0.append(real: -0.0) },
    Value("infinity", real: true) { $0.append(real: .infinity) }, Value("NaN") { $0.append(real: .nan) },
    Value("too large for 32 bits") { $0.append(real: 1e39) },
    Value("the smallest number of 32 bits", real: true) { $0.append(real: Double(Float.leastNonzeroMagnitude)) },
    Value("1", real: true, integer: true, key: true) { $0.append(integer: 1) },
    Value("2^24 + 1", integer: true, key: true) { $0.append(integer: 1 << 24 + 1) },
    Value("2^31", real: true, key: true) { $0.append(integer: 1 << 31) },
    Value("the greatest integer", key: true) { $0.append(integer: .max) },
    Value("the least integer", real: true, key: true) { $0.append(integer: .min) },
  ]

  @Test("A value that an R-tree would alter is a constraint conflict, and the others are inserted", arguments: values)
  func alteredValues(_ value: Value) throws {
    for (module, fits) in [("rtree", value.isReal), ("rtree_i32", value.isInteger)] {
      for definitions in [try Self.definitions(Self.virtual("\(module)(id, low, high, +more)")), nil] {
        let receiver = try SQLiteConnection(opening: ":memory:", as: .create)
        try receiver.execute(Self.virtual("\(module)(id, low, high, +more)"))
        var writer = ChangesetWriter()
        writer.beginTable(ChangesetTable(name: "t", keyFlags: [1, 0, 0, 0]))
        for place in 0..<3 {
          writer.beginChange(.insert)
          // As a key, as both coordinates (so that the first is not greater), and in a column that an R-tree only
          // stores.
          if place == 0 { value.write(&writer) } else { writer.append(integer: Int64(100 + place)) }
          for _ in 0..<2 { if place == 1 { value.write(&writer) } else { writer.append(integer: 0) } }
          if place == 2 { value.write(&writer) } else { writer.append(integer: 0) }
        }
        let result = try Self.apply(writer.bytes, definitions, to: receiver)
        let expected = (value.isKey ? 1 : 0) + (fits ? 1 : 0) + 1
        #expect(result.counts.inserted == expected, "\(module)")
        #expect(result.counts.conflicts == 3 - expected, "\(module)")
        #expect(try receiver.integer("SELECT count(*) FROM t") == Int64(expected))
        let reason = try receiver.text("SELECT reason FROM buckia_conflict WHERE kind = 'constraint'")
        #expect(expected == 3 || reason?.contains("would store another value") == true)
        #expect(try receiver.integer("SELECT count(*) FROM t WHERE id = 102") == 1)
        try VirtualRows.requireSound("t", on: receiver)
      }
    }
  }

  @Test("A full-text table accepts any value except an invalid rowid", arguments: values)
  func fullTextValues(_ value: Value) throws {
    let receiver = try SQLiteConnection(opening: ":memory:", as: .create)
    try receiver.execute(Self.virtual("fts5(a, b)"))
    let asValue = Self.insert("t", keyFlags: [1, 0, 0]) { writer in
      writer.append(integer: 7)
      value.write(&writer)
      value.write(&writer)
    }
    #expect(try Self.apply(asValue, nil, to: receiver).counts.inserted == 1)
    let asKey = Self.insert("t", keyFlags: [1, 0, 0]) { writer in
      value.write(&writer)
      writer.append(text: "x")
      writer.append(text: "y")
    }
    let other = try SQLiteConnection(opening: ":memory:", as: .create)
    try other.execute(Self.virtual("fts5(a, b)"))
    let result = try Self.apply(asKey, nil, to: other)
    #expect(result.counts.inserted == (value.isKey ? 1 : 0))
    #expect(result.counts.conflicts == (value.isKey ? 0 : 1))
    try VirtualRows.requireSound("t", on: receiver)
    try VirtualRows.requireSound("t", on: other)
  }

  @Test("A row refused by an R-tree's own constraint is left out, and the others of its batch are inserted")
  func refusedByTheTree() throws {
    let receiver = try SQLiteConnection(opening: ":memory:", as: .create)
    try receiver.execute(Self.virtual("rtree_i32(id, low, high)"))
    var writer = ChangesetWriter()
    writer.beginTable(ChangesetTable(name: "t", keyFlags: [1, 0, 0]))
    for id in Int64(1)...100 {
      writer.beginChange(.insert)
      writer.append(integer: id)
      writer.append(integer: id == 40 || id == 77 ? 5 : 0)
      writer.append(integer: 1)
    }
    let result = try Self.apply(writer.bytes, nil, to: receiver)
    #expect(result.counts.inserted == 98)
    #expect(result.counts.conflicts == 2)
    let query = "SELECT count(*) FROM buckia_conflict WHERE kind = 'constraint' AND reason LIKE '%low<=high%'"
    #expect(try receiver.integer(query) == 2)
    #expect(try receiver.integer("SELECT count(*) FROM t") == 98)
    try VirtualRows.requireSound("t", on: receiver)
  }

  @Test("An UPDATE to a value that an R-tree would alter leaves the row unchanged")
  func alteredUpdate() throws {
    let receiver = try SQLiteConnection(opening: ":memory:", as: .create)
    try receiver.execute(Self.virtual("rtree(id, low, high)") + "; INSERT INTO t VALUES (1, 0, 5)")
    var writer = ChangesetWriter()
    writer.beginTable(ChangesetTable(name: "t", keyFlags: [1, 0, 0]))
    writer.beginChange(.update)
    writer.append(integer: 1)
    writer.append(real: 0)
    writer.appendUndefined()
    writer.appendUndefined()
    writer.append(real: 0.1)
    writer.appendUndefined()
    let result = try Self.apply(writer.bytes, nil, to: receiver)
    #expect(result.counts.updated == 0)
    #expect(result.counts.conflicts == 1)
    #expect(try receiver.text("SELECT low FROM t") == "0.0")
  }

  @Test(
    "A raw changeset names all columns of a virtual table or is refused",
    arguments: [[1, 0], [1, 0, 0, 0], [0, 1, 0]])
  func rawColumns(_ keyFlags: [UInt8]) throws {
    let receiver = try SQLiteConnection(opening: ":memory:", as: .create)
    try receiver.execute(Self.virtual("fts5(a, b)"))
    let changes = Self.insert("t", keyFlags: keyFlags) { writer in
      for _ in keyFlags { writer.append(integer: 1) }
    }
    let error = try Self.refusal(changes, nil, to: receiver)
    #expect(error?.code == .columnsDiffer || error?.code == .keyDiffers)
  }
}
