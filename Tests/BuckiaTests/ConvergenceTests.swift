import Buckia
import BuckiaBytes
import TestSupport
import Testing

/// Under the policy `latest`, databases that have applied the same diffs have the same rows.
@Suite("Convergence") struct ConvergenceTests {
  static let schema = """
    CREATE TABLE note(id INTEGER PRIMARY KEY, title TEXT, body TEXT, n REAL);
    INSERT INTO note VALUES (1, 'one', 'a', 1), (2, 'two', 'b', 2.5), (3, 'three', NULL, NULL);
    CREATE TABLE tag(name TEXT PRIMARY KEY COLLATE NOCASE, colour, n) WITHOUT ROWID;
    INSERT INTO tag VALUES ('red', x'ff', 1), ('blue', NULL, 2);
    CREATE TABLE link(a INTEGER, b TEXT, weight, PRIMARY KEY (a, b));
    INSERT INTO link VALUES (1, 'x', 0), (1, 'y', 1), (2, 'x', 2);
    CREATE TABLE plain(a, b);
    INSERT INTO plain VALUES (1, 'x'), (2, 'y')
    """

  /// Some random edits as SQL.
  static func edits(_ random: inout SeededGenerator, by member: Int) -> String {
    (0..<Int.random(in: 1...4, using: &random)).map { _ in
      let id = Int.random(in: 1...6, using: &random)
      let value = random.pick([
        "NULL", "'v\(member)\(Int.random(in: 0...9, using: &random))'", "\(Int.random(in: 0...9, using: &random))",
        "0.5",
      ])
      let tag = random.pick(["'red'", "'RED'", "'blue'", "'green'", "'grey'"])
      let link = "\(Int.random(in: 1...2, using: &random)), \(random.pick(["'x'", "'y'", "'z'"]))"
      return random.pick([
        "UPDATE note SET title = \(value) WHERE id = \(id)",
        "UPDATE note SET body = \(value), n = \(id) WHERE id = \(id)",
        "DELETE FROM note WHERE id = \(id)", "INSERT OR REPLACE INTO note VALUES (\(id), \(value), \(value), \(id))",
        "INSERT OR IGNORE INTO note(id, title) VALUES (\(id), \(value))",
        "UPDATE tag SET colour = \(value) WHERE name = \(tag)", "UPDATE tag SET n = \(value) WHERE name = \(tag)",
        "DELETE FROM tag WHERE name = \(tag)", "INSERT OR IGNORE INTO tag VALUES (\(tag), \(value), \(id))",
        "UPDATE link SET weight = \(value) WHERE (a, b) = (\(link))", "DELETE FROM link WHERE (a, b) = (\(link))",
        "INSERT OR REPLACE INTO link VALUES (\(link), \(value))",
        "UPDATE plain SET b = \(value) WHERE rowid = \(id)", "DELETE FROM plain WHERE rowid = \(id)",
      ])
    }.joined(separator: "; ")
  }

  static let uniqueSchema = """
    CREATE TABLE person(id INTEGER PRIMARY KEY, email TEXT UNIQUE COLLATE NOCASE, name TEXT, seat INTEGER UNIQUE);
    INSERT INTO person VALUES (1, 'a', 'A', 1), (2, 'b', 'B', 2), (3, NULL, 'C', 3);
    CREATE TABLE item(list INTEGER, name TEXT, position INTEGER NOT NULL, n, PRIMARY KEY (name, list),
      UNIQUE (list, position)) WITHOUT ROWID;
    INSERT INTO item VALUES (1, 'x', 1, 0), (1, 'y', 2, 0), (2, 'x', 1, 0);
    CREATE TABLE word(id TEXT PRIMARY KEY, text TEXT, isActive INTEGER);
    CREATE UNIQUE INDEX word_active ON word(lower(text)) WHERE isActive;
    INSERT INTO word VALUES ('p', 'one', 1), ('q', 'ONE', 0)
    """

  /// Some random edits of tables with UNIQUE constraints as SQL.
  static func uniqueEdits(_ random: inout SeededGenerator, by member: Int) -> String {
    (0..<Int.random(in: 1...3, using: &random)).map { _ in
      let id = Int.random(in: 1...5, using: &random)
      let email = random.pick(["'a'", "'A'", "'b'", "'c'", "NULL"])
      let item = "\(random.pick(["'x'", "'y'", "'z'"])), \(Int.random(in: 1...2, using: &random))"
      let place = Int.random(in: 1...4, using: &random)
      let word = random.pick(["'p'", "'q'", "'r'", "'s'"])
      let text = random.pick(["'one'", "'ONE'", "'two'"])
      return random.pick([
        "UPDATE OR IGNORE person SET email = \(email) WHERE id = \(id)",
        "UPDATE OR IGNORE person SET seat = \(place) WHERE id = \(id)",
        "UPDATE person SET name = '\(member)\(place)' WHERE id = \(id)", "DELETE FROM person WHERE id = \(id)",
        "INSERT OR IGNORE INTO person VALUES (\(id), \(email), 'n\(member)', \(place))",
        "INSERT OR REPLACE INTO person VALUES (\(id), \(email), 'r\(member)', \(place))",
        "UPDATE OR IGNORE item SET position = \(place) WHERE (name, list) = (\(item))",
        "UPDATE item SET n = n + \(place) WHERE (name, list) = (\(item))",
        "DELETE FROM item WHERE (name, list) = (\(item))",
        "INSERT OR IGNORE INTO item(name, list, position) VALUES (\(item), \(place))",
        "UPDATE OR IGNORE word SET text = \(text) WHERE id = \(word)",
        "UPDATE OR IGNORE word SET isActive = NOT isActive WHERE id = \(word)",
        "DELETE FROM word WHERE id = \(word)", "INSERT OR IGNORE INTO word VALUES (\(word), \(text), 1)",
      ])
    }.joined(separator: "; ")
  }

  @Test(
    "After random edits, with files late, repeated and out of order, all replicas have the same rows",
    arguments: Seeds.shards, [false, true])
  func randomHistories(_ shard: Int, hasUnique: Bool) throws {
    for seed in Seeds.range(12) where Int(seed) % Seeds.shards.count == shard || Seeds.range(12).count == 1 {
      var random = SeededGenerator(seed: seed)
      var group = try Group(
        Int.random(in: 2...4, using: &random), hasUnique ? Self.uniqueSchema : Self.schema, ordersIDs: false)
      let edits = hasUnique ? Self.uniqueEdits : Self.edits
      for _ in 0..<Int.random(in: 5...25, using: &random) {
        let member = Int.random(in: 0..<group.members.count, using: &random)
        switch Int.random(in: 0..<10, using: &random) {
        case 0..<5: try group.edit(member, edits(&random, member))
        case 5..<7:
          try group.send(member)
          if random.oneIn(2) { try group.apply(member, []) }
        default:
          var files = group.members[member].mail.shuffled(using: &random)
          files = Array(files.prefix(Int.random(in: 1...4, using: &random)))
          // A file that was applied before may arrive again.
          if random.oneIn(3), let again = group.sent.filter({ $0.from != member }).randomElement(using: &random),
            !group.members[member].mail.contains(again.file)
          {
            files.append(again.file)
          }
          for file in files { try group.apply(member, [file]) }
        }
      }
      try group.settle()
      let expected = try group.content(0)
      for member in group.members.indices.dropFirst() {
        let content = try group.content(member)
        let differing = expected.filter { $0.value != content[$0.key] }
        #expect(
          differing.isEmpty,
          "\(Seeds.replay(seed)): member 0 has \(differing), member \(member) \(content.filter { differing[$0.key] != nil })"
        )
      }
    }
  }

  private func note(_ count: Int = 3) throws -> Group { try Group(count, Self.schema) }

  @Test("Of two edits of a column, the later diff wins, whichever arrives first; edits of other columns stay")
  func laterWins() throws {
    for isLateFirst in [false, true] {
      var group = try note()
      try group.edit(0, "UPDATE note SET title = 'A', n = 7 WHERE id = 1")
      let early = try #require(try group.send(0).path)
      try group.edit(1, "UPDATE note SET title = 'B', body = 'B' WHERE id = 1")
      let late = try #require(try group.send(1).path)
      try group.apply(2, isLateFirst ? [late] : [early])
      try group.apply(2)
      #expect(try group.rows(2, "SELECT title, body, n FROM note WHERE id = 1") == ["B|B|7.0"])
      try group.apply(0)
      try group.apply(1)
      for member in 0..<2 { #expect(try group.content(member) == group.content(2)) }
    }
  }

  @Test("A value that was set later stays, even if the author of an earlier diff saw the same value")
  func sameValueSetLater() throws {
    var group = try note(2)
    try group.edit(0, "UPDATE note SET title = 'mine' WHERE id = 1")
    let early = try #require(try group.send(0).path)
    // The value is changed and changed back: it equals the original value, but is the latest edit.
    try group.edit(1, "UPDATE note SET title = 'other' WHERE id = 1")
    try group.send(1)
    try group.apply(1, [])
    try group.edit(1, "UPDATE note SET title = 'one' WHERE id = 1")
    try group.send(1)
    let report = try group.apply(1, [early])
    #expect(report.diffs.map(\.conflicts) == [1])
    #expect(try group.rows(1, "SELECT title FROM note WHERE id = 1") == ["one"])
    try group.settle()
    #expect(try group.rows(0, "SELECT title FROM note WHERE id = 1") == ["one"])
    // The losing value is in the conflict record.
    let lost = try #require(try group.members[1].database.conflicts().first)
    #expect(lost.outcome == .keptLocal)
    #expect(lost.incoming?.first { $0.column == "title" }?.value == .text("mine"))
  }

  @Test("A DELETE beats every edit, even a later one; only a later INSERT brings the row back")
  func deletions() throws {
    var group = try note()
    try group.edit(0, "DELETE FROM note WHERE id = 1")
    try group.send(0)
    try group.edit(1, "UPDATE note SET body = 'later' WHERE id = 1")
    try group.send(1)
    try group.settle()
    for member in 0..<3 { #expect(try group.rows(member, "SELECT 1 FROM note WHERE id = 1").isEmpty) }
    try group.edit(2, "INSERT INTO note(id, title) VALUES (1, 'back')")
    try group.send(2)
    try group.settle()
    // The edit is later than the deletion, but the INSERT is later still, so its values win.
    for member in 0..<3 {
      #expect(try group.rows(member, "SELECT title, body FROM note WHERE id = 1") == ["back|NULL"])
    }
  }

  @Test("An INSERT that arrives after the later DELETE of its row is left out and recorded")
  func insertAfterDelete() throws {
    var group = try note()
    try group.edit(0, "INSERT INTO note(id, title) VALUES (9, 'nine')")
    let insertion = try #require(try group.send(0).path)
    try group.apply(0, [])
    try group.edit(0, "DELETE FROM note WHERE id = 9")
    let deletion = try #require(try group.send(0).path)
    try group.apply(1, [deletion])
    let report = try group.apply(1, [insertion])
    #expect(report.diffs.map(\.omitted) == [1])
    #expect(try group.rows(1, "SELECT 1 FROM note WHERE id = 9").isEmpty)
    #expect(try group.members[1].database.conflicts().first?.reason == "a later diff has deleted the row")
  }

  @Test("An UPDATE that arrives before the INSERT of its row is kept, and written when the row appears")
  func updateBeforeInsert() throws {
    var group = try note()
    try group.edit(0, "INSERT INTO tag VALUES ('green', 'g', 1)")
    let insertion = try #require(try group.send(0).path)
    try group.apply(0, [])
    try group.edit(0, "UPDATE tag SET n = 5 WHERE name = 'green'")
    let update = try #require(try group.send(0).path)
    let report = try group.apply(1, [update])
    #expect(report.diffs.map(\.omitted) == [1])
    try group.apply(1, [insertion])
    #expect(try group.rows(1, "SELECT colour, n FROM tag WHERE name = 'green'") == ["g|5"])
    #expect(try group.content(1) == group.content(0))
  }

  @Test("Unsent edits are later than all incoming changes, and the next diff sends them")
  func unsentEdits() throws {
    var group = try note(2)
    try group.edit(1, "UPDATE note SET title = 'theirs', body = 'theirs' WHERE id = 1; DELETE FROM note WHERE id = 2")
    try group.send(1)
    try group.edit(0, "UPDATE note SET title = 'mine' WHERE id = 1; UPDATE note SET title = 'gone' WHERE id = 2")
    let report = try group.apply(0)
    #expect(report.diffs.map(\.conflicts) == [2])
    #expect(try group.rows(0, "SELECT title, body FROM note WHERE id < 3") == ["mine|theirs"])
    // The edit of the deleted row is in the conflict record.
    let records = try group.members[0].database.conflicts()
    #expect(records.map(\.outcome).sorted { $0.rawValue < $1.rawValue } == [.keptLocal, .tookIncoming])
    let gone = records.first { $0.outcome == .tookIncoming }
    #expect(gone?.local?.first { $0.column == "title" }?.value == .text("gone"))
    #expect(try group.send(0).tables.map(\.updated) == [1])
    try group.settle()
    #expect(try group.content(0) == group.content(1))
    #expect(try group.rows(1, "SELECT title, body FROM note WHERE id < 3") == ["mine|theirs"])
  }

  @Test("An unsent edit that restores the original value wins over an incoming value")
  func takenBack() throws {
    var group = try note(2)
    try group.edit(1, "UPDATE note SET title = 'theirs' WHERE id = 1")
    try group.send(1)
    try group.edit(0, "UPDATE note SET title = 'mine' WHERE id = 1")
    try group.apply(0)
    try group.edit(0, "UPDATE note SET title = 'one' WHERE id = 1")
    try group.settle()
    // The incoming value had arrived before, so restoring the original value is a later edit.
    for member in 0..<2 { #expect(try group.rows(member, "SELECT title FROM note WHERE id = 1") == ["one"]) }
  }

  @Test(
    "The next diff sends the undo of an UPDATE and a DELETE, and the undo wins whichever diff arrives first",
    arguments: [false, true])
  func undo(isUndoFirst: Bool) throws {
    var group = try note()
    let before = try group.content(2)
    try group.edit(0, "UPDATE note SET title = 'ONE' WHERE id = 1; DELETE FROM note WHERE id = 2")
    let made = try group.send(0)
    let diff = try #require(made.path)
    try group.apply(0, [])
    try group.apply(1)
    #expect(try group.rows(1, "SELECT id, title FROM note ORDER BY id") == ["1|ONE", "3|three"])
    let (id, member) = (try #require(made.id), group.members[1])
    let report = try member.database.undo([.diff(id.description)])
    #expect(report.undone.map { [$0.inserted, $0.updated, $0.deleted, $0.conflicts] } == [[1, 1, 0, 0]])
    #expect(try group.content(1) == before)
    let sent = try group.send(1)
    #expect(sent.tables.map { [$0.inserted, $0.updated, $0.deleted] } == [[1, 1, 0]])
    let undo = try #require(sent.path)
    try group.apply(2, [isUndoFirst ? undo : diff])
    try group.settle()
    for member in 0..<3 { #expect(try group.content(member) == before) }
  }

  @Test("A policy of a column applies to that column only")
  func columnPolicies() throws {
    var group = try note(2)
    group.options.conflicts = [.table("note"): .latest, .column("title", of: "note"): .keepLocal]
    try group.edit(0, "UPDATE note SET title = 'A', body = 'A' WHERE id = 1")
    try group.send(0)
    try group.apply(0, [])
    try group.edit(1, "UPDATE note SET title = 'B', body = 'B' WHERE id = 1")
    try group.send(1)
    try group.apply(0)
    #expect(try group.rows(0, "SELECT title, body FROM note WHERE id = 1") == ["A|B"])
  }

  @Test("Changes without an id have no order, so they are refused, and nothing is applied")
  func withoutID() throws {
    var group = try note(2)
    try group.edit(0, "UPDATE note SET title = 'A' WHERE id = 1")
    let file = group.folder.file("plain.changeset")
    var options = DiffOptions()
    options.isRaw = true
    try group.members[0].database.createDatabaseDiff(
      since: group.members[0].shared, output: .file(file, replacing: false), options: options)
    let report = try group.apply(1, [file])
    #expect(report.diffs.map(\.state) == [.rejected])
    #expect(report.diffs.map(\.code) == [.noID])
    #expect(try group.rows(1, "SELECT title FROM note WHERE id = 1") == ["one"])
  }

  @Test(
    "Rows with consecutive keys take almost no space in the clock, and the origin of each row is known",
    arguments: [
      "INTEGER PRIMARY KEY", "TEXT PRIMARY KEY", "BLOB PRIMARY KEY",
    ])
  func runs(_ key: String) throws {
    var group = try Group(2, "CREATE TABLE t(id \(key), a, b); CREATE TABLE other(x PRIMARY KEY)")
    let id =
      key.hasPrefix("INTEGER")
      ? "value" : key.hasPrefix("TEXT") ? "printf('%05d', value)" : "CAST(printf('%05d', value) AS BLOB)"
    let numbers = "WITH RECURSIVE n(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM n WHERE value < 5000)"
    try group.edit(0, "\(numbers) INSERT INTO t SELECT \(id), value, 0 FROM n WHERE value % 10 <> 5")
    let all = try #require(try group.send(0).id)
    try group.apply(1)
    #expect(try group.rows(1, "SELECT count(*) FROM buckia_clock_1_run") == ["1"] || !key.hasPrefix("INTEGER"))
    #expect(try group.rows(1, "SELECT count(*) FROM buckia_clock_1") == ["0"] || key.hasPrefix("INTEGER"))
    try group.apply(0, [])
    try group.edit(
      0,
      "UPDATE t SET b = 1 WHERE a = 200; DELETE FROM t WHERE a = 300; \(numbers) INSERT INTO t SELECT \(id), value, 9 FROM n WHERE value = 5"
    )
    let few = try #require(try group.send(0).id)
    try group.apply(1)
    try group.apply(0, [])
    let name = try group.rows(1, "SELECT quote(id) FROM t WHERE a IN (200, 199, 5) ORDER BY a")
    #expect(name.count == 3)
    for (place, expected) in [(0, [few, few]), (1, [all, all]), (2, [all, few])].enumerated().map({
      ($0.offset, $0.element.1)
    }) {
      let value = try group.value(1, "SELECT id FROM t WHERE a = \([5, 199, 200][place])")
      let origin = try group.members[1].database.origin(ofRowIn: "t", key: ["id": value])
      #expect(origin.columns.dropFirst().map { $0.source?.diff } == expected)
      #expect(origin.exists)
    }
    // After an update of a whole column, the run covers all rows again, with both diffs.
    try group.edit(0, "UPDATE t SET a = a + 1000")
    let third = try #require(try group.send(0).id)
    try group.apply(1)
    let value = try group.value(1, "SELECT id FROM t WHERE a = 1100")
    let origin = try group.members[1].database.origin(ofRowIn: "t", key: ["id": value])
    #expect(origin.columns.dropFirst().map { $0.source?.diff } == [third, all])
    #expect(try group.content(0) == group.content(1))
  }
}
