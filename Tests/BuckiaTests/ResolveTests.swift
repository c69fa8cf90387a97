import Buckia
import SQLiteChangesets
import TestSupport
import Testing

@testable import SQLiteConnections

@Suite("Resolving recorded conflicts")
struct ResolveTests {
  private static let notes = """
    CREATE TABLE notes(id INTEGER PRIMARY KEY, text TEXT, stars INTEGER, code TEXT UNIQUE);
    INSERT INTO notes VALUES (1, 'one', 1, 'a'), (2, 'two', 2, 'b'), (3, 'three', 3, 'c')
    """

  /// An exchange in which one conflict has been recorded.
  private static func conflict(
    _ local: String, _ incoming: String, schema: String = notes, policy: ConflictPolicy = .keepLocal
  ) throws -> Exchange {
    let exchange = try Exchange(schema)
    try TestDatabases.run(local, on: exchange.mine)
    try exchange.send(incoming)
    try exchange.apply(ApplyOptions(conflicts: ConflictPolicies(policy)))
    return exchange
  }

  /// The edits of a conflict, and the rows that each answer makes.
  struct Case: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let local: String
    let incoming: String
    /// All rows after `local`, and after `incoming`.
    let kept: [String]
    let taken: [String]

    static let all = [
      Case(
        testDescription: "both have changed a cell", local: "UPDATE notes SET stars = 10 WHERE id = 1",
        incoming: "UPDATE notes SET stars = 20, text = 'theirs' WHERE id = 1",
        kept: ["1|'one'|10|'a'", "2|'two'|2|'b'", "3|'three'|3|'c'"],
        taken: ["1|'theirs'|20|'a'", "2|'two'|2|'b'", "3|'three'|3|'c'"]),
      Case(
        testDescription: "changed here, deleted there", local: "UPDATE notes SET stars = 10 WHERE id = 1",
        incoming: "DELETE FROM notes WHERE id = 1",
        kept: ["1|'one'|10|'a'", "2|'two'|2|'b'", "3|'three'|3|'c'"], taken: ["2|'two'|2|'b'", "3|'three'|3|'c'"]),
      Case(
        testDescription: "deleted here, changed there", local: "DELETE FROM notes WHERE id = 1",
        incoming: "UPDATE notes SET text = 'theirs', stars = 20 WHERE id = 1",
        kept: ["2|'two'|2|'b'", "3|'three'|3|'c'"],
        taken: ["1|'theirs'|20|NULL", "2|'two'|2|'b'", "3|'three'|3|'c'"]),
      Case(
        testDescription: "two rows with one key", local: "INSERT INTO notes VALUES (4, 'mine', 10, 'm')",
        incoming: "INSERT INTO notes VALUES (4, 'theirs', 20, 't')",
        kept: ["1|'one'|1|'a'", "2|'two'|2|'b'", "3|'three'|3|'c'", "4|'mine'|10|'m'"],
        taken: ["1|'one'|1|'a'", "2|'two'|2|'b'", "3|'three'|3|'c'", "4|'theirs'|20|'t'"]),
    ]
  }

  private static let all = """
    SELECT id || '|' || quote(text) || '|' || quote(stars) || '|' || quote(code) FROM notes ORDER BY id
    """

  @Test(
    "Each answer writes its version of the row, and a conflict can be resolved again and again", arguments: Case.all,
    [ConflictPolicy.keepLocal, .takeIncoming])
  func answers(_ item: Case, _ policy: ConflictPolicy) throws {
    let exchange = try Self.conflict(item.local, item.incoming, policy: policy)
    let id = try #require(try exchange.database.conflicts().first?.id)
    for answer in [ConflictAnswer.incoming, .local, .local, .incoming, .local] {
      let report = try exchange.database.resolve([id], taking: answer, options: ResolveOptions(decidedBy: "Ben"))
      #expect(report.refused.isEmpty, "\(report)")
      #expect(try exchange.texts(Self.all) == (answer == .local ? item.kept : item.taken))
    }
    let resolutions = try exchange.database.resolutions(of: id)
    #expect(resolutions.map(\.answer) == [.incoming, .local, .local, .incoming, .local])
    #expect(resolutions.allSatisfy { $0.decidedBy == "Ben" && $0.decidedAt > 0 })
    for (earlier, later) in zip(resolutions, resolutions.dropFirst()) {
      #expect("\(earlier.after ?? [])" == "\(later.before ?? [])")
    }
    #expect(try exchange.texts("PRAGMA integrity_check") == ["ok"])
  }

  @Test("An answer is refused if it was given without seeing the last resolution")
  func unseenAnswer() throws {
    let exchange = try Self.conflict(
      "UPDATE notes SET stars = 10 WHERE id = 1", "UPDATE notes SET stars = 20 WHERE id = 1")
    var options = ResolveOptions()
    options.seenResolutions = [1: 0]
    try exchange.database.resolve([1], taking: .incoming, options: options)
    let error = #expect(throws: BuckiaError.self) {
      try exchange.database.resolve([1], taking: .local, options: options)
    }
    #expect(error?.code == .rowChanged)
    #expect(error?.message == "conflict 1 was decided by somebody meanwhile; look at it again")
    #expect(try exchange.texts("SELECT stars FROM notes WHERE id = 1") == ["20"])
    options.seenResolutions = [1: try #require(exchange.database.resolutions(of: 1).last?.id)]
    #expect(try exchange.database.resolve([1], taking: .local, options: options).refused.isEmpty)
    #expect(try exchange.texts("SELECT stars FROM notes WHERE id = 1") == ["10"])
  }

  @Test("Columns of a missing row that its author has not sent are named, and get their defaults")
  func unknownColumns() throws {
    let exchange = try Self.conflict(
      "DELETE FROM notes WHERE id = 1", "UPDATE notes SET stars = 20 WHERE id = 1")
    let resolved = try #require(try exchange.database.resolve([1], taking: .incoming).conflicts.first)
    #expect(resolved.unknownColumns == ["text", "code"])
    #expect(resolved.before == nil)
    #expect(try exchange.texts("SELECT id, stars FROM notes WHERE id = 1") == ["1|20"])
  }

  @Test("Values are written to the present row, and the key and the other columns stay")
  func values() throws {
    let exchange = try Self.conflict(
      "UPDATE notes SET stars = 10 WHERE id = 1", "UPDATE notes SET stars = 20, text = 'theirs' WHERE id = 1")
    // The column text was merged.
    #expect(try exchange.database.conflicts().map(\.outcome) == [.merged])
    let report = try exchange.database.resolve([1], taking: .values(["STARS": 15]))
    #expect(report.changedTables == ["notes"])
    #expect(try exchange.texts("SELECT text, stars, code FROM notes WHERE id = 1") == ["theirs|15|a"])
    let refused = try exchange.database.resolve([1], taking: .values(["id": 7]))
    #expect(refused.refused.first?.refusal?.code == .columnsDiffer)
    let unknown = try exchange.database.resolve([1], taking: .values(["nowhere": 7]))
    #expect(unknown.refused.first?.refusal?.reason.contains("\"nowhere\"") == true)
    let twice = try exchange.database.resolve([1], taking: .values(["stars": 7, "Stars": 8]))
    #expect(twice.refused.first?.refusal?.code == .columnsDiffer)
    #expect(try exchange.database.resolutions(of: 1).count == 1)
  }

  @Test("The differences of a merged row are the changes since the merge")
  func changedSinceMerge() throws {
    let exchange = try Self.conflict(
      "UPDATE notes SET stars = 10 WHERE id = 1", "UPDATE notes SET stars = 20, text = 'theirs' WHERE id = 1")
    try TestDatabases.run("UPDATE notes SET code = 'later' WHERE id = 1", on: exchange.mine)
    let refusal = try exchange.database.resolve([1], taking: .incoming).refused.first?.refusal
    #expect(Self.text(refusal?.differences ?? []) == "code: 'a' → 'later'")
  }

  @Test("Conflicts of rows of R-trees and FTS5 tables are resolved, too")
  func virtualTables() throws {
    let exchange = try Self.conflict(
      "UPDATE areas SET x1 = 5; UPDATE docs SET body = 'mine'",
      "UPDATE areas SET x1 = 7; UPDATE docs SET body = 'theirs'",
      schema: """
        CREATE VIRTUAL TABLE areas USING rtree(id, x0, x1); INSERT INTO areas VALUES (1, 0, 1);
        CREATE VIRTUAL TABLE docs USING fts5(body); INSERT INTO docs VALUES ('old')
        """)
    let ids = try exchange.database.conflicts().map(\.id)
    #expect(ids.count == 2)
    let state = "SELECT x1, (SELECT group_concat(body) FROM docs WHERE docs MATCH 'mine OR theirs') FROM areas"
    #expect(try exchange.database.resolve(ids, taking: .incoming).refused.isEmpty)
    #expect(try exchange.texts(state) == ["7.0|theirs"])
    #expect(try exchange.database.resolve(ids, taking: .local).refused.isEmpty)
    #expect(try exchange.texts(state) == ["5.0|mine"])
  }

  private static func text(_ differences: [ResolvedConflict.Difference]) -> String {
    differences.map { "\($0.column): \($0.known ?? .null) → \($0.present ?? .null)" }.joined(separator: ", ")
  }

  @Test("A row that was changed since the conflict is left alone, and the report has the differences")
  func changedSince() throws {
    let exchange = try Self.conflict(
      "UPDATE notes SET stars = 10 WHERE id = 1", "UPDATE notes SET stars = 20 WHERE id = 1")
    try TestDatabases.run("UPDATE notes SET text = 'later' WHERE id = 1", on: exchange.mine)
    for answer in [ConflictAnswer.local, .incoming, .values(["stars": 1])] {
      let report = try exchange.database.resolve([1], taking: answer)
      let refusal = try #require(report.refused.first?.refusal)
      #expect(refusal.code == .rowChanged)
      #expect(Self.text(refusal.differences) == "text: 'one' → 'later'")
    }
    #expect(try exchange.texts("SELECT text, stars FROM notes WHERE id = 1") == ["later|10"])
    #expect(try exchange.database.conflicts().first?.isOpen == true)
    // Columns that the author has not changed keep their local values.
    let forced = ResolveOptions(isForced: true)
    try exchange.database.resolve([1], taking: .incoming, options: forced)
    #expect(try exchange.texts("SELECT text, stars FROM notes WHERE id = 1") == ["later|20"])
    try exchange.database.resolve([1], taking: .local)
    #expect(try exchange.texts("SELECT text, stars FROM notes WHERE id = 1") == ["one|10"])
  }

  @Test(
    "A row that was deleted or has come back since the conflict is left alone, too",
    arguments: [
      (
        "UPDATE notes SET stars = 10 WHERE id = 1", "UPDATE notes SET stars = 20 WHERE id = 1",
        "DELETE FROM notes WHERE id = 1"
      ),
      (
        "DELETE FROM notes WHERE id = 1", "UPDATE notes SET stars = 20 WHERE id = 1",
        "INSERT INTO notes VALUES (1, 'back', 0, 'z')"
      ),
    ])
  func comingAndGoing(_ local: String, _ incoming: String, _ later: String) throws {
    let exchange = try Self.conflict(local, incoming)
    try TestDatabases.run(later, on: exchange.mine)
    let before = try exchange.texts(Self.all)
    #expect(try exchange.database.resolve([1], taking: .incoming).refused.first?.refusal?.code == .rowChanged)
    #expect(try exchange.texts(Self.all) == before)
  }

  @Test("A row is refused as long as it violates a constraint, and taken afterwards")
  func constraint() throws {
    let exchange = try Self.conflict(
      "INSERT INTO notes VALUES (5, 'mine', 10, 'x')", "INSERT INTO notes VALUES (4, 'theirs', 20, 'x')")
    let refused = try exchange.database.resolve([1], taking: .incoming)
    #expect(refused.refused.first?.refusal?.code == .rowRefused)
    #expect(refused.refused.first?.refusal?.reason == "UNIQUE constraint failed: notes.code")
    try TestDatabases.run("UPDATE notes SET code = 'y' WHERE id = 5", on: exchange.mine)
    #expect(try exchange.database.resolve([1], taking: .incoming).refused.isEmpty)
    #expect(try exchange.texts("SELECT id, code FROM notes WHERE id > 3 ORDER BY id") == ["4|x", "5|y"])
    #expect(try exchange.database.resolve([1], taking: .local).refused.isEmpty)
    #expect(try exchange.texts("SELECT id FROM notes WHERE id > 3") == ["5"])
  }

  private static let family = """
    CREATE TABLE parent(id INTEGER PRIMARY KEY, name TEXT);
    CREATE TABLE child(id INTEGER PRIMARY KEY, parent INTEGER REFERENCES parent(id), name TEXT)
    """

  @Test("A row is taken only after the row that it refers to, or together with it")
  func foreignKey() throws {
    let incoming = "INSERT INTO parent VALUES (1, 'theirs'); INSERT INTO child VALUES (7, 1, 'child')"
    for isTogether in [false, true] {
      let exchange = try Self.conflict(
        "INSERT INTO parent VALUES (1, 'mine')", incoming, schema: Self.family)
      let conflicts = try exchange.database.conflicts()
      let parent = try #require(conflicts.first { $0.table == "parent" }?.id)
      let child = try #require(conflicts.first { $0.table == "child" }?.id)
      if isTogether {
        #expect(try exchange.database.resolve([child, parent], taking: .incoming).refused.isEmpty)
      } else {
        let early = try exchange.database.resolve([child], taking: .incoming)
        #expect(early.refused.first?.refusal?.code == .brokenReference)
        #expect(early.refused.first?.refusal?.reason.contains("conflict \(parent)") == true)
        #expect(try exchange.database.resolve([parent], taking: .incoming).refused.isEmpty)
        #expect(try exchange.database.resolve([child], taking: .incoming).refused.isEmpty)
      }
      #expect(try exchange.texts("SELECT name FROM parent UNION ALL SELECT name FROM child") == ["theirs", "child"])
      #expect(try exchange.texts("PRAGMA foreign_key_check").isEmpty)
    }
  }

  @Test("Rows that refer to a row with a new key get new keys, too, if theirs are in use")
  func followersWithTakenKeys() throws {
    let schema =
      Self.family + "; CREATE TABLE leaf(id INTEGER PRIMARY KEY, child INTEGER REFERENCES child(id), name TEXT)"
    func rows(of name: String) -> String {
      "INSERT INTO parent VALUES (1, '\(name)'); INSERT INTO child VALUES (1, 1, '\(name)');"
        + "INSERT INTO leaf VALUES (1, 1, '\(name)')"
    }
    let exchange = try Self.conflict(rows(of: "mine"), rows(of: "theirs"), schema: schema)
    let parent = try #require(try exchange.database.conflicts().first { $0.table == "parent" }?.id)
    #expect(try exchange.database.resolve([parent], taking: .both).refused.isEmpty)
    #expect(
      try exchange.texts(
        """
        SELECT parent.name, child.name, leaf.name FROM leaf JOIN child ON child.id = child JOIN parent ON parent.id = parent
        ORDER BY leaf.id
        """) == ["mine|mine|mine", "theirs|theirs|theirs"])
    #expect(try exchange.database.conflicts().allSatisfy { !$0.isOpen })
  }

  @Test("If two parents are resolved as the same row, a child whose key is in use gets a new key", arguments: [1, 2])
  func followerOfSameRow(_ place: Int) throws {
    let exchange = try Self.conflict(
      "INSERT INTO parent VALUES (2, 'n'); INSERT INTO child VALUES (1, \(place), 'mine')",
      "INSERT INTO parent VALUES (3, 'n'); INSERT INTO child VALUES (1, 3, 'theirs')",
      schema: Self.family + "; CREATE UNIQUE INDEX names ON parent(name); INSERT INTO parent VALUES (1, 'old')")
    let parent = try #require(try exchange.database.conflicts().first { $0.table == "parent" }?.id)
    #expect(try exchange.database.resolve([parent], taking: .same).refused.isEmpty)
    #expect(try exchange.texts("SELECT parent, name FROM child ORDER BY id") == ["\(place)|mine", "2|theirs"])
    #expect(try exchange.database.conflicts().allSatisfy { !$0.isOpen })
  }

  @Test("References that a resolution breaks are reported")
  func violations() throws {
    let exchange = try Self.conflict(
      "UPDATE parent SET name = 'mine'; INSERT INTO child VALUES (1, 1, 'here')", "DELETE FROM parent",
      schema: Self.family + "; INSERT INTO parent VALUES (1, 'old')")
    let id = try #require(try exchange.database.conflicts().first { $0.table == "parent" }?.id)
    let report = try exchange.database.resolve([id], taking: .incoming)
    #expect(report.refused.isEmpty)
    #expect(report.violations == ["it refers to the row id = 1 of table \"parent\", which is not there"])
    #expect(try exchange.database.resolve([id], taking: .local).violations.isEmpty)
    #expect(try exchange.texts("PRAGMA foreign_key_check").isEmpty)
  }

  @Test func `an answer can delete a row without a parent, or give it another parent`() throws {
    for isDeleted in [true, false] {
      let exchange = try Self.conflict(
        "DELETE FROM parent WHERE id = 1", "INSERT INTO child VALUES (1, 1, 'x')",
        schema: Self.family + "; INSERT INTO parent VALUES (1, 'old'), (2, 'other')")
      let conflict = try #require(try exchange.database.conflicts().first { $0.table == "child" })
      #expect(conflict.kind == .foreignKey)
      let report = try exchange.database.resolve(
        [conflict.id], taking: isDeleted ? .deletion : .values(["parent": 2]))
      #expect(report.refused.isEmpty && report.violations.isEmpty)
      #expect(try exchange.texts("SELECT * FROM child") == (isDeleted ? [] : ["1|2|x"]))
      #expect(try exchange.texts("PRAGMA foreign_key_check").isEmpty)
      #expect(
        try exchange.database.resolutions(of: conflict.id).map(\.answer) == [isDeleted ? .deletion : .values])
    }
  }

  @Test("A row that waits for its parent is refused, and taken with another reference")
  func reported() throws {
    let exchange = try Self.conflict(
      "DELETE FROM parent", "INSERT INTO child VALUES (1, 1, 'x')",
      schema: Self.family + "; INSERT INTO parent VALUES (1, 'old')")
    #expect(try exchange.database.conflicts().map(\.outcome) == [.omitted])
    let report = try exchange.database.resolve([1], taking: .incoming)
    #expect(report.refused.first?.refusal?.code == .brokenReference)
    #expect(try exchange.database.resolve([1], taking: .values(["parent": .null])).refused.isEmpty)
    #expect(try exchange.texts("PRAGMA foreign_key_check").isEmpty)
  }

  @Test("A dry run reports the row before and after, and changes nothing")
  func dryRun() throws {
    let exchange = try Self.conflict(
      "UPDATE notes SET stars = 10 WHERE id = 1", "UPDATE notes SET stars = 20 WHERE id = 1")
    let before = try TestDatabases.content(of: exchange.mine)
    let report = try exchange.database.resolve([1], taking: .incoming, options: ResolveOptions(isDryRun: true))
    let resolved = try #require(report.resolved.first)
    #expect(resolved.before?.first { $0.column == "stars" }?.value == 10)
    #expect(resolved.after?.first { $0.column == "stars" }?.value == 20)
    #expect(resolved.hasChanged)
    #expect(try TestDatabases.content(of: exchange.mine) == before)
  }

  @Test("A filter resolves many conflicts, and a refused one does not stop the others")
  func many() throws {
    let exchange = try Self.conflict(
      "UPDATE notes SET stars = stars + 10", "UPDATE notes SET stars = stars + 20")
    try TestDatabases.run("UPDATE notes SET text = 'later' WHERE id = 2", on: exchange.mine)
    var filter = ConflictFilter()
    filter.table = "NOTES"
    let report = try exchange.database.resolve(matching: filter, taking: .incoming)
    #expect(report.resolved.map(\.id) == [1, 3])
    #expect(report.refused.map(\.id) == [2])
    #expect(try exchange.texts("SELECT stars FROM notes ORDER BY id") == ["21", "12", "23"])
    filter.isOpen = true
    #expect(try exchange.database.conflicts(matching: filter).map(\.id) == [2])
    filter.table = "others"
    #expect(try exchange.database.resolve(matching: filter, taking: .incoming).conflicts.isEmpty)
    #expect(try exchange.database.resolve([99], taking: .local).refused.first?.refusal?.code == .noSuchConflict)
  }

  @Test("Values that rows have swapped are taken if their conflicts are resolved together")
  func swap() throws {
    let exchange = try Self.conflict(
      "UPDATE notes SET code = 'm' || id",
      "UPDATE notes SET code = 'm' || (CASE id WHEN 1 THEN 3 WHEN 3 THEN 2 ELSE 9 END)")
    let ids = try exchange.database.conflicts().map(\.id)
    #expect(ids.count == 3)
    #expect(try exchange.database.resolve(ids, taking: .incoming).refused.isEmpty)
    #expect(try exchange.texts("SELECT code FROM notes ORDER BY id") == ["m3", "m9", "m2"])
  }

  @Test("A later conflict about the same key stays open")
  func sameKey() throws {
    let exchange = try Self.conflict(
      "UPDATE notes SET stars = 10 WHERE id = 1", "UPDATE notes SET stars = 20 WHERE id = 1")
    try exchange.send("UPDATE notes SET stars = 30 WHERE id = 1")
    try exchange.apply()
    #expect(try exchange.database.conflicts().count == 2)
    try exchange.database.resolve([1], taking: .incoming)
    #expect(try exchange.database.conflicts().map(\.isOpen) == [false, true])
    let later = try exchange.database.resolve([2], taking: .incoming)
    #expect(Self.text(later.refused.first?.refusal?.differences ?? []) == "stars: 10 → 20")
  }

  @Test("A row that the app's resolver has written does not count as changed since")
  func resolvedByApp() throws {
    let exchange = try Exchange(Self.notes)
    try TestDatabases.run("UPDATE notes SET stars = 10 WHERE id = 1", on: exchange.mine)
    try exchange.send("UPDATE notes SET stars = 20 WHERE id = 1")
    try exchange.apply { _ in .write(["stars": 15, "text": "app"]) }
    #expect(try exchange.texts("SELECT text, stars FROM notes WHERE id = 1") == ["app|15"])
    #expect(try exchange.database.conflicts().first?.isOpen == false)
    #expect(try exchange.database.resolve([1], taking: .incoming).refused.isEmpty)
    #expect(try exchange.texts("SELECT text, stars FROM notes WHERE id = 1") == ["one|20"])
  }

  @Test(
    "Rows of tables of every kind, with values of every storage class, are restored to the byte",
    arguments: [
      "k1 TEXT COLLATE NOCASE, k2 BLOB, v, PRIMARY KEY (k2, k1)) WITHOUT ROWID",
      "k1 TEXT, k2 BLOB, v)", "v, k1 TEXT PRIMARY KEY, k2 INT) STRICT",
    ],
    ["x'00ff00'", "9007199254740993", "1e300", "'it''s'", "CAST(x'ff41' AS TEXT)", "zeroblob(9000)", "NULL"])
  func kindsOfTables(_ table: String, _ value: String) throws {
    guard !table.contains("STRICT") else { return try strict(value) }
    let exchange = try Self.conflict(
      "UPDATE t SET v = \(value)", "UPDATE t SET v = 'theirs'",
      schema: "CREATE TABLE t(\(table); INSERT INTO t(k1, k2, v) VALUES ('A', x'01', 'old')")
    let content = "SELECT typeof(v) || hex(v) || hex(k1) || hex(k2) FROM t"
    let before = try exchange.texts(content)
    #expect(try exchange.database.resolve([1], taking: .incoming).refused.isEmpty)
    #expect(try exchange.texts("SELECT v FROM t") == ["theirs"])
    #expect(try exchange.database.resolve([1], taking: .local).refused.isEmpty)
    #expect(try exchange.texts(content) == before)
  }

  private func strict(_ value: String) throws {
    let exchange = try Self.conflict(
      "UPDATE t SET v = \(value)", "UPDATE t SET v = 'theirs'",
      schema: "CREATE TABLE t(k TEXT PRIMARY KEY, v ANY) STRICT; INSERT INTO t VALUES ('A', 'old')")
    let before = try exchange.texts("SELECT typeof(v) || hex(v) FROM t")
    try exchange.database.resolve([1], taking: .incoming)
    #expect(try exchange.database.resolve([1], taking: .local).refused.isEmpty)
    #expect(try exchange.texts("SELECT typeof(v) || hex(v) FROM t") == before)
  }

  @Test("A full-text index that triggers keep is updated, and the changed keys are reported")
  func indexes() throws {
    let exchange = try Self.conflict(
      "UPDATE notes SET text = 'mine' WHERE id = 1", "UPDATE notes SET text = 'theirs' WHERE id = 1",
      schema: Self.notes + """
        ; CREATE VIRTUAL TABLE search USING fts5(text, content='notes', content_rowid='id');
        INSERT INTO search(search) VALUES ('rebuild');
        CREATE TRIGGER notes_update AFTER UPDATE ON notes BEGIN
          INSERT INTO search(search, rowid, text) VALUES ('delete', old.id, old.text);
          INSERT INTO search(rowid, text) VALUES (new.id, new.text);
        END
        """)
    var options = ResolveOptions()
    options.changedRowLimit = 10
    let report = try exchange.database.resolve([1], taking: .incoming, options: options)
    #expect(report.changedRows.map(\.table) == ["notes"] && report.changedRows.first?.keys == [[1]])
    #expect(try exchange.texts("SELECT rowid FROM search WHERE search MATCH 'theirs'") == ["1"])
    #expect(try exchange.texts("SELECT rowid FROM search WHERE search MATCH 'mine'").isEmpty)
  }

  @Test("On the app's connection, a resolution is part of the app's transaction", arguments: [true, false])
  func borrowed(commits: Bool) throws {
    let exchange = try Self.conflict(
      "UPDATE notes SET stars = 10 WHERE id = 1", "UPDATE notes SET stars = 20 WHERE id = 1")
    let connection = try SQLiteConnection(opening: exchange.mine, as: .readWrite)
    try connection.execute("PRAGMA foreign_keys = ON; BEGIN; INSERT INTO notes VALUES (9, 'app', 0, 'z')")
    let report = try DatabaseManager.borrowing(connection.handle.pointer) { try $0.resolve([1], taking: .incoming) }
    #expect(report.refused.isEmpty)
    let isEnforced = try connection.foreignKeysEnforced
    #expect(connection.isInTransaction && isEnforced)
    try connection.execute(commits ? "COMMIT" : "ROLLBACK")
    #expect(try exchange.texts("SELECT stars FROM notes WHERE id = 1") == [commits ? "20" : "10"])
    #expect(try exchange.database.conflicts().first?.isOpen == !commits)
  }

  @Test("A conflict of a table that has another key, or was dropped, is refused with the reason")
  func otherSchema() throws {
    let exchange = try Self.conflict(
      "UPDATE notes SET stars = 10 WHERE id = 1", "UPDATE notes SET stars = 20 WHERE id = 1")
    try TestDatabases.run(
      "ALTER TABLE notes DROP COLUMN text; ALTER TABLE notes ADD COLUMN extra DEFAULT 'e'", on: exchange.mine)
    let resolved = try #require(try exchange.database.resolve([1], taking: .incoming).conflicts.first)
    #expect(resolved.refusal == nil && resolved.lostColumns == ["text"])
    #expect(try exchange.texts("SELECT stars, extra FROM notes WHERE id = 1") == ["20|e"])
    try TestDatabases.run("DROP TABLE notes; CREATE TABLE notes(text PRIMARY KEY, id, stars)", on: exchange.mine)
    #expect(try exchange.database.resolve([1], taking: .local).refused.first?.refusal?.code == .keyDiffers)
    try TestDatabases.run("DROP TABLE notes", on: exchange.mine)
    #expect(try exchange.database.resolve([1], taking: .local).refused.first?.refusal?.code == .noSuchTable)
  }

  @Test("Resolving in a database without conflicts is an error, and creates no ledger")
  func noLedger() throws {
    let exchange = try Exchange(Self.notes)
    let error = #expect(throws: BuckiaError.self) { try exchange.database.resolve([1], taking: .local) }
    #expect(error?.code == .noSuchConflict)
    #expect(try exchange.texts("SELECT name FROM sqlite_schema WHERE name LIKE 'buckia%'").isEmpty)
  }
}
