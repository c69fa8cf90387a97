import Buckia
import BuckiaBytes
import BuckiaFormat
import BuckiaLedger
import SQLiteSchemas
import SQLiteChangesets
import TestSupport
import Testing

/// Folders with a validly packed file of hostile content, and a good file after it.
@Suite struct HostileFolderTests {
  private static let schema = """
    CREATE TABLE notes(id INTEGER PRIMARY KEY, title TEXT NOT NULL, secret TEXT, n NUMERIC DEFAULT 1 CHECK (n < 100));
    CREATE TABLE links(id INTEGER PRIMARY KEY, note REFERENCES notes ON DELETE CASCADE, parent REFERENCES links, a UNIQUE);
    CREATE TABLE keyed(k TEXT PRIMARY KEY COLLATE NOCASE, n INTEGER) WITHOUT ROWID;
    CREATE TABLE loose(k, l, n, PRIMARY KEY (l, k));
    CREATE TABLE rows(a, b NUMERIC UNIQUE);
    CREATE TABLE strict(id INTEGER PRIMARY KEY, t TEXT NOT NULL, b BLOB, long INT AS (length(t))) STRICT;
    CREATE TABLE log(id INTEGER PRIMARY KEY AUTOINCREMENT, what);
    CREATE VIRTUAL TABLE texts USING fts5(body);
    CREATE VIRTUAL TABLE boxes USING rtree(id, low, high);
    CREATE VIRTUAL TABLE search USING fts5(title, content = 'notes', content_rowid = 'id');
    CREATE INDEX notes_upper ON notes(upper(title)) WHERE n > 0;
    CREATE VIEW v AS SELECT * FROM notes;
    CREATE TRIGGER noted AFTER INSERT ON links BEGIN INSERT INTO log(what) VALUES (NEW.id); END;
    CREATE TRIGGER found AFTER INSERT ON notes BEGIN INSERT INTO search(rowid, title) VALUES (NEW.id, NEW.title); END;
    CREATE TRIGGER lost AFTER DELETE ON notes BEGIN
      INSERT INTO search(search, rowid, title) VALUES ('delete', OLD.id, OLD.title);
    END;
    INSERT INTO notes VALUES (1, 'a', 'b', 1), (2, 'c', NULL, 2), (3, 'd', 'e', NULL);
    INSERT INTO links VALUES (1, 1, NULL, 1), (2, 1, 1, 2), (3, 9, 2, NULL);
    INSERT INTO keyed VALUES ('a', 1), ('B', 2);
    INSERT INTO loose VALUES (1, 2, 3), (NULL, 1, 1), (NULL, 1, 1), ('1', 2, 4);
    INSERT INTO rows VALUES (1, 1), ('a', 2);
    INSERT INTO strict VALUES (1, 'a', x'00');
    INSERT INTO texts VALUES ('one two');
    INSERT INTO boxes VALUES (1, 1, 2)
    """

  /// The definitions of all tables, as an honest file has them.
  private static let definitions = Result {
    let exchange = try Exchange(schema)
    try exchange.send(
      """
      DELETE FROM notes; DELETE FROM links; DELETE FROM keyed; DELETE FROM loose; DELETE FROM rows; DELETE FROM strict;
      DELETE FROM log; DELETE FROM texts; DELETE FROM boxes
      """)
    return try #require(try exchange.changes().definitions)
  }

  @Test(
    "A validly packed hostile file is applied, held, refused or waits, and the good file after it is applied",
    arguments: Seeds.shards)
  func goodFileFollows(shard: Int) throws {
    let definitions = try Self.definitions.get()
    try Seeds.tryEach(120, shard: shard) { seed in
      var random = SeededGenerator(seed: seed)
      let exchange = try Exchange(Self.schema)
      let hostile = HostileFile(definitions, &random)
      // Buckia's own writer refuses to make some of these files.
      do { try hostile.plant(in: exchange) } catch is DiffFileError { throw Seeds.Unsuitable() }
      try exchange.send("INSERT INTO notes VALUES (1000, 'good', 'none', 7)")
      let options = ApplyOptions(
        conflicts: random.oneIn(2) ? .keepLocal : .takeIncoming,
        schema: SchemaMode.allCases.randomElement(using: &random) ?? .additive, triggers: random.oneIn(3))
      let report = try exchange.apply(options)
      try #require(report.diffs.count == 2)
      #expect([.applied, .held, .rejected, .waiting].contains(report.diffs[0].state), "\(report.diffs[0])")
      #expect(report.diffs[0].state == .applied || report.diffs[0].reason != nil)
      #expect(report.diffs[1].state == .applied, "\(report.diffs)")
      #expect(
        try exchange.rows("SELECT id, title, secret, n FROM notes WHERE id = 1000").first
          == "1000|'103.111.111.100'|'110.111.110.101'|7", "\(report.diffs)")
      #expect(try exchange.rows("PRAGMA integrity_check") == ["'111.107'"], "\(report.diffs)")
      // A second call tries a refused file again.
      _ = try exchange.apply(options)
    }
  }
}

/// Definitions, changes and renames, some of which no honest author would write.
private struct HostileFile {
  private static let tableNames = [
    "notes", "NOTES", "v", "texts_data", "boxes_node", "search", "sqlite_stat1", "sqlite_sequence", "buckia_ledger",
    "pragma_table_info", "json_each", "new", "x\"); DROP TABLE notes; --", "\u{212A}eyed", "",
  ]
  private static let columnNames = [
    "id", "ID", "title", "secret", "n", "rowid", "_rowid_", "oid", "long", "new", "x\", y", "ti\u{0301}tle", "",
  ]
  private static let types = [
    "", "INTEGER", "INT", "TEXT", "BLOB", "REAL", "NUMERIC", "ANY", "DATE", "TEXT CHECK (abs(1))",
    "INTEGER PRIMARY KEY",
  ]

  private var definitions: [TableDefinition] = []
  private var renames: [ColumnRename] = []
  private var changeset = ChangesetWriter()

  init(_ honest: [TableDefinition], _ random: inout SeededGenerator) {
    definitions = Array(honest.shuffled(using: &random).prefix(Int.random(in: 1...4, using: &random)))
    for index in definitions.indices {
      for _ in 0..<Int.random(in: 0...3, using: &random) { Self.mutate(&definitions[index], among: honest, &random) }
    }
    for table in definitions where !random.oneIn(5) {
      var flags = table.keyFlags
      if random.oneIn(12), let column = flags.indices.randomElement(using: &random) { flags[column] ^= 1 }
      let header = ChangesetTable(name: table.name, keyFlags: flags)
      changeset.beginTable(header)
      for _ in 0..<Int.random(in: 1...12, using: &random) { changeset.appendArbitraryChange(of: header, &random) }
    }
    for _ in 0..<Int.random(in: 0...3, using: &random) where random.oneIn(3) {
      renames.append(
        ColumnRename(
          table: TableName(random.oneIn(2) ? "notes" : random.pick(Self.tableNames)),
          from: random.pick(Self.columnNames), to: random.pick(Self.columnNames)))
    }
  }

  /// Puts the file into the inbound folder.
  func plant(in exchange: Exchange) throws {
    let id = Exchange.id(at: 1_700_000_000)
    try DiffFileWriter().write(
      DiffFileDraft(manifest: Manifest(id: id, renames: renames), schema: .included(definitions)),
      changeset: TemporaryBuffer(changeset.bytes), to: "\(exchange.inbound)/\(DiffFileName.diff(id))")
  }

  private static func mutate(
    _ table: inout TableDefinition, among all: [TableDefinition], _ random: inout SeededGenerator
  ) {
    let column = Int.random(in: table.columns.indices, using: &random)
    switch Int.random(in: 0..<13, using: &random) {
    case 0: table.name = random.pick(tableNames)
    case 1: table.columns[column].name = random.pick(columnNames)
    case 2: table.columns[column].declaredType = random.pick(types)
    case 3: table.columns[column].collation = random.pick(["NOCASE", "RTRIM", "BINARY", "evil", ""])
    case 4: table.columns[column].isNotNull.toggle()
    case 5:
      table.columns[column].defaultValue = LiteralDefault(
        parsing: random.pick(["1", "'x'", "NULL", "-9223372036854775808", "x'00'", "1e400", "current_timestamp"]))
    case 6: table.columns.insert(ColumnDefinition(name: random.pick(columnNames)), at: table.columns.endIndex)
    case 7 where table.columns.count > 1: table.removeColumn(named: table.columns[column].name)
    case 8: table.primaryKey = [[], [column], [column, 0]].randomElement(using: &random) ?? []
    case 9: table.unique.append([column])
    case 10:
      table.foreignKeys.append(
        ForeignKey(
          columns: [table.columns[column].name],
          parent: all.randomElement(using: &random)?.name ?? "", parentColumns: random.oneIn(2) ? [] : ["id"],
          onUpdate: .cascade, onDelete: ForeignKey.Action.allCases.randomElement(using: &random) ?? .cascade))
    case 11:
      table.isStrict = random.oneIn(2)
      table.isWithoutRowID = random.oneIn(2)
      table.isAutoIncrement = random.oneIn(2)
    default: table.module = all.randomElement(using: &random)?.module
    }
  }
}
