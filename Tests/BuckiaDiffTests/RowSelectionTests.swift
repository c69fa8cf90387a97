import BuckiaDiff
import SQLiteSchemas
import SQLiteChangesets
import SQLiteConnections
import Testing
import ReplicationTestSupport
import TestSupport

/// Comparing selected rows and columns finds the same changes as comparing databases that contain nothing else.
@Suite struct RowSelectionTests {
  @Test("The changes equal those between filtered copies, for any selections on both sides", arguments: Seeds.shards)
  func likeFilteredCopies(shard: Int) throws {
    var byPages = 0
    try Seeds.tryEach(160, shard: shard) { seed in
      var random = SeededGenerator(seed: seed)
      let pair = try RandomPair(seed: seed)
      let older = try RandomSelections(of: pair.older, copiedTo: "filtered older", in: pair.folder, &random)
      // Mostly the same on both sides: otherwise hardly any table has the same columns, as pages require.
      if seed % 3 != 0 { random = SeededGenerator(seed: seed) }
      let newer = try RandomSelections(of: pair.newer, copiedTo: "filtered newer", in: pair.folder, &random)
      for keyless in KeylessIdentity.allCases {
        let wanted = try DatabaseComparison.run(
          older: older.filtered, newer: newer.filtered, options: DiffOptions(method: .rows, keyless: keyless))
        for method in DiffMethod.allCases where method != .session || !pair.isLoose {
          let found = try DatabaseComparison.run(
            from: RowSource(opening: pair.older, selecting: older.chosen),
            to: RowSource(opening: pair.newer, selecting: newer.chosen),
            options: DiffOptions(method: method, keyless: keyless))
          let note = "\(method) \(keyless) \(Seeds.replay(seed))\nolder: \(older.story)newer: \(newer.story)"
          try #require(try found.changes() == wanted.changes(), "\(note)")
          #expect(found.tables.map(\.definition) == wanted.tables.map(\.definition), "\(note)")
          byPages += found.tables.count {
            $0.method == .pages && newer.chosen[TableName($0.definition.name)]?.omittedColumns.isEmpty == false
          }
        }
      }
    }
    #expect(byPages > 0)
  }

  private struct Files {
    let folder: TemporaryFolder
    let older: String
    let newer: String

    init(_ schema: String, _ edits: String) throws {
      folder = try TemporaryFolder()
      older = try TestDatabases.run(schema, on: folder.file("older"))
      newer = try folder.copy("older", to: "newer")
      try TestDatabases.run(edits, on: newer)
    }

    func difference(_ selection: RowSelection, of table: TableName = "notes", _ method: DiffMethod? = nil) throws
      -> DatabaseDifference
    {
      try DatabaseComparison.run(
        older: older, newer: newer, options: DiffOptions(selections: [table: selection], method: method))
    }
  }

  private static let notes = """
    CREATE TABLE notes(id INTEGER PRIMARY KEY, owner INT, text TEXT, secret TEXT NOT NULL, rank INT NOT NULL DEFAULT 1);
    INSERT INTO notes VALUES (1, 7, 'one', 's', 1), (2, 7, 'two', 's', 1), (3, 8, 'three', 's', 1), (4, 8, 'four', 's', 1);
    """

  @Test("A condition compares like the column, in any encoding", arguments: ["UTF-8", "UTF-16le", "UTF-16be"])
  func collation(encoding: String) throws {
    let files = try Files(
      """
      PRAGMA encoding = '\(encoding)'; CREATE TABLE notes(name TEXT COLLATE NOCASE PRIMARY KEY, v);
      INSERT INTO notes VALUES ('A', 1), ('ab', 1), ('b', 1)
      """, "UPDATE notes SET v = 2")
    let selection = RowSelection(where: "name IS NOT :name AND name < :end", ["name": "a", "end": "B"])
    #expect(try files.difference(selection).tables.map(\.updated) == [1])
  }

  @Test("A row that leaves the selection is a DELETE, one that enters it an INSERT, others are ignored")
  func borders() throws {
    let files = try Files(
      Self.notes,
      """
      UPDATE notes SET owner = 8 WHERE id = 1; UPDATE notes SET text = 'TWO' WHERE id = 2;
      UPDATE notes SET owner = 7 WHERE id = 3; UPDATE notes SET text = 'FOUR' WHERE id = 4
      """)
    let difference = try files.difference(RowSelection(where: "owner = :me", ["me": 7]))
    #expect(difference.tables.map(\.deleted) == [1])
    #expect(difference.tables.map(\.updated) == [1])
    #expect(difference.tables.map(\.inserted) == [1])
    #expect(difference.tables.map(\.method) == [.rows])
    #expect(difference.fallbacks.map(\.reason.code) == [.rowsSelected])
    let target = try TestDatabases.run(
      Self.notes + "DELETE FROM notes WHERE owner = 8", on: files.folder.file("target"))
    let conflicts = try Shipping.apply(difference, to: target).counts.conflicts
    #expect(conflicts == 0)
    let rows = "SELECT * FROM notes WHERE owner = 7 ORDER BY id"
    #expect(try TestDatabases.rows(rows, on: target) == TestDatabases.rows(rows, on: files.newer))
  }

  @Test(
    "Omitted columns are not sent, and are named if others need them",
    arguments: DiffMethod.allCases)
  func omittedColumns(method: DiffMethod) throws {
    let files = try Files(
      Self.notes,
      """
      UPDATE notes SET secret = 't', rank = 2 WHERE id = 1; UPDATE notes SET text = 'TWO', secret = 't' WHERE id = 2;
      INSERT INTO notes VALUES (5, 7, 'five', 's', 5)
      """)
    let difference = try files.difference(RowSelection(omitting: ["SECRET", "rank"]), method)
    #expect(difference.tables.map(\.definition).map { $0.columns.map(\.name) } == [["id", "owner", "text"]])
    #expect(difference.tables.map(\.updated) == [1])
    #expect(difference.tables.map(\.inserted) == [1])
    #expect(difference.skipped.map(\.name) == ["notes.secret"])
    #expect(difference.skipped.map(\.reason.code) == [.requiredColumnOmitted])
    // Pages can be compared without looking at all columns.
    #expect(difference.tables.map(\.method) == [method == .pages ? .pages : .rows])
    #expect(difference.fallbacks == [])
    let made = try TestDatabases.run("PRAGMA user_version = 1", on: files.folder.file("made"))
    let all = try DatabaseComparison.run(
      from: RowSource.empty(),
      to: RowSource(opening: files.newer, selecting: ["notes": RowSelection(omitting: ["secret"])]))
    _ = try Shipping.apply(all, to: made)
    #expect(
      try TestDatabases.rows("SELECT * FROM notes", on: made)
        == TestDatabases.rows("SELECT id, owner, text, rank FROM notes", on: files.newer))
  }

  @Test("An omitted column may be named like the rowid")
  func rowIDNames() throws {
    let files = try Files(
      "CREATE TABLE notes(v, rowid, _rowid_ AS (v + 10)); INSERT INTO notes VALUES (1, 5), (2, 6)",
      "UPDATE notes SET v = 3 WHERE v = 2")
    let difference = try files.difference(RowSelection(omitting: ["rowid", "_rowid_"]))
    #expect(difference.tables.map(\.updated) == [1])
    let all = try DatabaseComparison.run(older: files.older, newer: files.newer, options: DiffOptions(method: .rows))
    #expect(all.tables.map(\.updated) == [1])
  }

  @Test("A raw changeset contains whole tables only")
  func raw() throws {
    let files = try Files(Self.notes, "UPDATE notes SET text = 'x'")
    let difference = try DatabaseComparison.run(
      older: files.older, newer: files.newer,
      options: DiffOptions(selections: ["notes": RowSelection(omitting: ["rank"])], isRaw: true))
    #expect(difference.isEmpty)
    #expect(difference.skipped.map(\.reason.code) == [.omittedColumnsNeedDefinition])
  }

  @Test("The rows of virtual tables can be selected, too", arguments: DiffMethod.allCases)
  func virtualTables(method: DiffMethod) throws {
    let files = try Files(
      """
      CREATE VIRTUAL TABLE words USING fts5(text, kind); CREATE VIRTUAL TABLE boxes USING rtree(id, x0, x1);
      INSERT INTO words VALUES ('one', 'a'), ('two', 'b'); INSERT INTO boxes VALUES (1, 0, 1), (2, 5, 6);
      """, "UPDATE words SET text = text || '!'; UPDATE boxes SET x1 = x1 + 1")
    let difference = try DatabaseComparison.run(
      older: files.older, newer: files.newer,
      options: DiffOptions(
        selections: ["words": RowSelection(where: "kind = 'b'"), "boxes": RowSelection(where: "x0 < 2")], method: method
      ))
    #expect(difference.tables.map(\.updated) == [1, 1])
  }

  // MARK: What cannot be selected

  @Test(
    "A condition that is no expression over its table is an error that names both",
    arguments: [
      "", "owner =", "onwer = 7", "\"onwer\" = 7", "owner = 7) OR (1", "owner = 7; DELETE FROM notes", "count(*) > 1",
      "1 THEN 1 END, CASE WHEN 1", "owner = 7 /* me", "owner = :nobody", "owner = ?", "owner = ?1",
      "owner IN (SELECT x FROM y)",
      "owner = 7 ORDER BY 1", "owner = 7 AND :me",
    ])
  func badConditions(condition: String) throws {
    let files = try Files(Self.notes, "UPDATE notes SET text = 'x'")
    let parameters = condition.contains(":me") ? ["me": 1, "you": 2] : [:] as [String: ChangesetValue]
    let error = #expect(throws: ReplicationError.self) {
      try files.difference(RowSelection(where: condition, parameters))
    }
    #expect(error?.code == .invalidSelection)
    #expect(error?.message.contains("\"notes\"") == true)
    #expect(error?.message.contains("(in: \(condition))") == true)
  }

  @Test("A comment at the end of a condition hides nothing else")
  func comment() throws {
    let files = try Files(Self.notes, "UPDATE notes SET text = 'x'")
    #expect(try files.difference(RowSelection(where: "owner = 7 -- mine")).tables.map(\.updated) == [2])
  }

  @Test(
    "Key columns, unknown ones and those of virtual tables cannot be omitted",
    arguments: ["id", "nothing", "x0"])
  func badColumns(column: String) throws {
    let files = try Files(
      Self.notes + "CREATE VIRTUAL TABLE boxes USING rtree(id, x0, x1)", "UPDATE notes SET text = 'x'")
    let error = #expect(throws: ReplicationError.self) {
      try files.difference(RowSelection(omitting: [column]), of: column == "x0" ? "boxes" : "notes")
    }
    #expect(error?.code == .invalidSelection)
    #expect(error?.column == column || column == "x0")
  }

  @Test("A selection from an unknown table is an error")
  func noTable() throws {
    let files = try Files(Self.notes, "UPDATE notes SET text = 'x'")
    let error = #expect(throws: ReplicationError.self) {
      try files.difference(RowSelection(where: "1"), of: "nobody")
    }
    #expect(error?.code == .noSuchTable)
  }

  @Test("Reasons are complete sentences with their arguments", arguments: SkipReason.Code.allCases)
  func reasons(code: SkipReason.Code) {
    let text = SkipReason(code, "«1»", "«2»").description
    #expect(!text.isEmpty && !text.contains("$") && !text.contains("--"))
    #expect(!text.contains("«2»") || text.contains("«1»"))
  }
}
