import Buckia
import BuckiaBytes
import SQLiteChangesets
import SQLiteConnections
import TestSupport
import Testing

private let schema = """
  CREATE TABLE note(id INTEGER PRIMARY KEY, title TEXT, body TEXT);
  INSERT INTO note VALUES (1, 'one', 'a'), (2, 'two', 'b'), (3, 'three', 'c');
  CREATE TABLE tag(name TEXT PRIMARY KEY, n) WITHOUT ROWID;
  INSERT INTO tag VALUES ('red', 1), ('blue', 2);
  CREATE TABLE plain(a, b);
  INSERT INTO plain VALUES (1, 'x'), (2, 'y')
  """

private let edits = """
  INSERT INTO note VALUES (4, 'four', 'd'); UPDATE note SET title = 'TWO' WHERE id = 2; DELETE FROM note WHERE id = 3;
  UPDATE tag SET n = 9 WHERE name = 'red'; DELETE FROM tag WHERE name = 'blue'; INSERT INTO tag VALUES ('green', 3);
  INSERT INTO plain VALUES (3, 'z'); UPDATE plain SET b = 'Y' WHERE a = 2; DELETE FROM plain WHERE a = 1
  """

/// Undoing diffs.
@Suite struct UndoTests {
  @discardableResult
  private func undo(
    _ ids: KSUID?..., in exchange: Exchange, _ options: UndoOptions = UndoOptions()
  ) throws -> UndoReport {
    try exchange.database.undo(ids.compactMap { $0 }.map { .diff($0.description) }, options: options)
  }

  @Test(
    "Undoing a diff restores everything, and the undo can be undone, too",
    arguments: [false, true])
  func thereAndBack(_ isRaw: Bool) throws {
    let exchange = try Exchange(schema)
    let before = try exchange.everythingButOurs()
    try exchange.send(edits, raw: isRaw)
    let applied = try #require(try exchange.apply().diffs.first)
    let after = try exchange.everythingButOurs()
    let report = try undo(applied.id, in: exchange)
    #expect(report.undone.map(\.inserted) == [3])
    #expect(report.undone.map(\.updated) == [3])
    #expect(report.undone.map(\.deleted) == [3])
    #expect(report.undone.map(\.conflicts) == [0])
    #expect(try exchange.everythingButOurs() == before)
    let again = try undo(report.undone.first?.id, in: exchange)
    #expect(try exchange.everythingButOurs() == after)
    // The diff can be undone a second time.
    try undo(applied.id, in: exchange)
    #expect(try exchange.everythingButOurs() == before)
    #expect(again.undone.map(\.diff) == report.undone.map { "\($0.id)" })
    #expect(try exchange.database.log().map(\.state) == [.applied, .applied, .applied, .applied])
  }

  @Test(
    "References that a deletion has set to NULL or their default come back", arguments: ["SET NULL", "SET DEFAULT"])
  func references(action: String) throws {
    let exchange = try Exchange(
      """
      CREATE TABLE album(id TEXT PRIMARY KEY);
      CREATE TABLE photo(id INTEGER PRIMARY KEY, title, album TEXT DEFAULT 'all' REFERENCES album ON DELETE \(action));
      INSERT INTO album VALUES ('all'), ('sea')
      """)
    let sent = try exchange.send("DELETE FROM album WHERE id = 'sea'")
    try TestDatabases.run("INSERT INTO photo VALUES (6, 'boat', 'sea')", on: exchange.mine)
    let before = try exchange.everythingButOurs()
    try exchange.apply()
    #expect(try exchange.rows("SELECT album FROM photo WHERE album = 'sea'").isEmpty)
    try undo(sent.id, in: exchange)
    #expect(try exchange.everythingButOurs() == before)
  }

  @Test("An undone diff is marked in the log, cannot be undone twice, and is not applied again")
  func onlyOnce() throws {
    let exchange = try Exchange(schema)
    let sent = try exchange.send(edits)
    let bytes = try fileBytes(try #require(sent.path))
    try exchange.apply()
    let report = try undo(sent.id, in: exchange)
    let first = try #require(report.undone.first)
    #expect(try exchange.database.log().first?.reason == "undone by \(first.id)")
    #expect(try exchange.database.log().last?.sender == "this database")
    #expect(throws: BuckiaError.self) { try undo(sent.id, in: exchange) }
    let before = try exchange.everythingButOurs()
    try exchange.folder.write(bytes, to: "inbound/\(try #require(sent.id)).bdiff")
    #expect(try exchange.apply().diffs.map(\.state) == [.alreadyApplied])
    #expect(try exchange.everythingButOurs() == before)
    try undo(first.id, in: exchange)
    #expect(
      try exchange.database.log().map(\.reason) == [nil, "undone by \(try exchange.database.log()[2].diff!)", nil])
  }

  @Test("Later edits of the same values are conflicts, which keep-local keeps and take-incoming undoes")
  func changedSince() throws {
    let later = """
      UPDATE note SET body = 'later' WHERE id = 2; UPDATE note SET title = 'later' WHERE id = 4;
      UPDATE tag SET n = 10 WHERE name = 'red'; INSERT INTO tag VALUES ('blue', 7)
      """
    for policy in [ConflictPolicies.keepLocal, .takeIncoming] {
      let exchange = try Exchange(schema)
      let sent = try exchange.send(edits)
      try exchange.apply()
      try TestDatabases.run(later, on: exchange.mine)
      let report = try undo(sent.id, in: exchange, UndoOptions(conflicts: policy))
      #expect(report.undone.map(\.conflicts) == [3])
      let isKept = policy == .keepLocal
      #expect(
        try exchange.rows("SELECT id FROM note WHERE title IN ('one', 'two', 'three', 'later') ORDER BY id")
          == (isKept ? ["1", "2", "3", "4"] : ["1", "2", "3"]))
      #expect(try exchange.rows("SELECT body = 'later' FROM note WHERE id = 2") == ["1"])
      #expect(try exchange.rows("SELECT n FROM tag ORDER BY name") == (isKept ? ["7", "10"] : ["2", "1"]))
      #expect(try exchange.database.conflicts().count == 3)
    }
  }

  @Test("After conflicts, an undo reverts what the diff did here, not what its author did")
  func afterConflicts() throws {
    for policy in [
      ConflictPolicies.keepLocal, .takeIncoming, [.column("title", of: "note"): .takeIncoming, .otherwise: .keepLocal],
    ] {
      let exchange = try Exchange(schema)
      try TestDatabases.run(
        """
        UPDATE note SET title = 'mine', body = 'mine' WHERE id = 2; INSERT INTO note VALUES (4, 'mine', 'mine');
        UPDATE note SET body = 'mine' WHERE id = 3; DELETE FROM tag WHERE name = 'red';
        INSERT INTO tag VALUES ('green', 'mine'); DELETE FROM plain WHERE a = 2
        """, on: exchange.mine)
      let before = try exchange.everythingButOurs()
      let sent = try exchange.send(edits)
      let applied = try exchange.apply(ApplyOptions(conflicts: policy))
      #expect(applied.diffs.first?.conflicts ?? 0 > 3)
      let report = try undo(sent.id, in: exchange)
      #expect(report.undone.map(\.conflicts) == [0])
      #expect(try exchange.everythingButOurs() == before)
    }
  }

  @Test("Changes by triggers are undone with their rows, and columns that exist only here keep their values")
  func triggersAndLocalColumns() throws {
    let exchange = try Exchange(schema)
    try TestDatabases.run(
      """
      ALTER TABLE note ADD COLUMN mine; UPDATE note SET mine = id * 100;
      CREATE TABLE done(what); CREATE TABLE counter(n INTEGER PRIMARY KEY, c); INSERT INTO counter VALUES (1, 0);
      CREATE TRIGGER a AFTER INSERT ON note BEGIN INSERT INTO done VALUES (NEW.title); UPDATE counter SET c = c + 1; END;
      CREATE TRIGGER b AFTER DELETE ON note BEGIN INSERT INTO done VALUES (OLD.mine); UPDATE counter SET c = c + 10; END
      """, on: exchange.mine)
    let before = try exchange.everythingButOurs()
    let sent = try exchange.send(edits)
    var options = ApplyOptions()
    options.triggers = true
    try exchange.apply(options)
    #expect(try exchange.rows("SELECT c FROM counter") == ["11"])
    #expect(try undo(sent.id, in: exchange).undone.map(\.conflicts) == [0])
    #expect(try exchange.everythingButOurs() == before)
  }

  @Test("Many small diffs that were applied together can be undone one by one, and all of a sender at once")
  func many() throws {
    let exchange = try Exchange(schema)
    var ids: [KSUID] = []
    for number in 10..<30 {
      let sent = try exchange.send(
        "INSERT INTO note VALUES (\(number), 'n', 'n'); UPDATE note SET body = '\(number)' WHERE id = 1")
      ids.append(try #require(sent.id))
    }
    let before = try exchange.everythingButOurs()
    try exchange.apply(ApplyOptions(conflicts: .takeIncoming))
    let single = try undo(ids[7], in: exchange)
    #expect(single.undone.map(\.deleted) == [1])
    #expect(try exchange.rows("SELECT count(*) FROM note WHERE id = 17") == ["0"])
    try undo(single.undone.first?.id, in: exchange)
    let report = try exchange.database.undo([.unsigned])
    #expect(report.undone.map(\.diff) == ids.reversed().map(\.description))
    #expect(report.skipped.isEmpty)
    #expect(try exchange.everythingButOurs() == before)
  }

  @Test("When several diffs of one value are undone in any order, the value from before them comes back")
  func anyOrder() throws {
    for seed in Seeds.range(20) {
      var random = SeededGenerator(seed: seed)
      let exchange = try Exchange(schema)
      let before = try exchange.everythingButOurs()
      var ids: [KSUID] = []
      for number in 0..<6 {
        let sent = try exchange.send(
          """
          UPDATE note SET title = 'title \(number)' WHERE id = 1; UPDATE tag SET n = \(number + 10) WHERE name = 'red';
          UPDATE plain SET b = \(number) WHERE a = 1
          """)
        ids.append(try #require(sent.id))
      }
      try exchange.apply(ApplyOptions(conflicts: .takeIncoming))
      // Some are undone and redone in between.
      for id in ids.shuffled(using: &random) {
        let undone = try undo(id, in: exchange)
        guard random.oneIn(3) else { continue }
        try undo(undone.undone.first?.id, in: exchange)
        try undo(id, in: exchange)
      }
      #expect(try exchange.everythingButOurs() == before, "\(Seeds.replay(seed))")
    }
  }

  @Test("A row is identified even if a changeset lacks the order of its key columns")
  func orderOfKey() throws {
    let exchange = try Exchange("CREATE TABLE pair(a, b, v, PRIMARY KEY (b, a)); INSERT INTO pair VALUES (1, 2, 0)")
    var first = ChangesetWriter()
    // As older versions of SQLite write it: 1 for each column of a key.
    first.beginTable(ChangesetTable(name: "pair", keyFlags: [1, 1, 0]))
    first.beginChange(.update)
    for value: Int64 in [1, 2, 0] { first.append(integer: value) }
    first.appendUndefined()
    first.appendUndefined()
    first.append(integer: 10)
    let id = Exchange.id(at: 1_600_000_000)
    try exchange.plantRaw(first.bytes, id: id)
    let second = try exchange.send("UPDATE pair SET v = 20")
    try exchange.apply(ApplyOptions(conflicts: .takeIncoming))
    #expect(try exchange.rows("SELECT v FROM pair") == ["20"])
    try undo(id, in: exchange)
    try undo(second.id, in: exchange)
    #expect(try exchange.rows("SELECT v FROM pair") == ["0"])
  }

  @Test("Undo records are kept up to a limit, and undoing a diff without them is an error")
  func retention() throws {
    let exchange = try Exchange(schema)
    try exchange.database.setUndoRetention(bytes: 3_000)
    let small = try exchange.send("INSERT INTO note VALUES (10, 'n', 'n')")
    let large = try exchange.send("INSERT INTO note VALUES (11, 'n', hex(zeroblob(2000)))")
    try exchange.apply()
    let before = try exchange.everythingButOurs()
    let error = #expect(throws: BuckiaError.self) { try undo(large.id, in: exchange) }
    #expect(error?.code == .notKept)
    // An undo of several diffs is all or nothing.
    #expect(throws: BuckiaError.self) { try undo(small.id, large.id, in: exchange) }
    #expect(try exchange.everythingButOurs() == before)
    let report = try exchange.database.undo([.unsigned])
    #expect(report.undone.map(\.diff) == [small.id?.description])
    #expect(report.skipped.map(\.diff) == [large.id?.description])
    for number in 20..<60 { try exchange.send("INSERT INTO note VALUES (\(number), 'n', hex(zeroblob(400)))") }
    try exchange.apply()
    #expect(try exchange.rows("SELECT sum(size) <= 3000 FROM buckia_effect") == ["1"])
    try exchange.database.setUndoRetention(days: 0)
    #expect(try exchange.rows("SELECT count(*) FROM buckia_effect") == ["0"])
    try exchange.send("INSERT INTO note VALUES (70, 'n', 'n')")
    try exchange.apply()
    #expect(try exchange.rows("SELECT count(*) FROM buckia_effect") == ["0"])
  }

  @Test("Undo records are kept for 30 days, and older ones are deleted")
  func expiry() throws {
    let exchange = try Exchange(schema)
    var sent: [DiffReport] = []
    for number in 10...11 {
      sent.append(try exchange.send("INSERT INTO note VALUES (\(number), 'n', 'n')"))
      try exchange.apply()
    }
    let day = 86_400_000
    try TestDatabases.run(
      "UPDATE buckia_ledger SET recorded_at = recorded_at - CASE entry WHEN 1 THEN 31 ELSE 29 END * \(day)",
      on: exchange.mine)
    #expect(try exchange.rows("SELECT first, last FROM buckia_effect ORDER BY 1") == ["1|1", "2|2"])
    try exchange.send("INSERT INTO note VALUES (12, 'n', 'n')")
    try exchange.apply()
    #expect(try exchange.rows("SELECT first, last FROM buckia_effect ORDER BY 1") == ["2|2", "3|3"])
    #expect(#expect(throws: BuckiaError.self) { try undo(sent[0].id, in: exchange) }?.code == .notKept)
    #expect(try undo(sent[1].id, in: exchange).undone.map(\.deleted) == [1])
    #expect(try exchange.rows("SELECT id FROM note WHERE id >= 10 ORDER BY id") == ["10", "12"])
  }

  @Test("A diff of many rows has several undo blocks, and is undone as a whole")
  func manyBlocks() throws {
    let exchange = try Exchange(schema)
    let before = try exchange.everythingButOurs()
    try exchange.database.setUndoRetention(bytes: 64 << 20)
    let large = try exchange.send(
      """
      WITH RECURSIVE n(i) AS (VALUES (10) UNION ALL SELECT i + 1 FROM n WHERE i < 30009)
      INSERT INTO note SELECT i, 'row ' || i, hex(zeroblob(50)) FROM n
      """)
    try exchange.apply()
    #expect(
      try exchange.rows("SELECT count(*) > 2, sum(size) > 3000000, sum(length(contents)) < 500000 FROM buckia_effect")
        == ["1|1|1"])
    #expect(try undo(large.id, in: exchange).undone.map(\.deleted) == [30_000])
    #expect(try exchange.everythingButOurs() == before)
    // Its older blocks exceed the limit, so the others are of no use.
    let next = try exchange.send("INSERT INTO note VALUES (40000, 'n', 'n')")
    try exchange.apply()
    try exchange.database.setUndoRetention(bytes: 500_000)
    #expect(#expect(throws: BuckiaError.self) { try undo(large.id, in: exchange) }?.code == .alreadyUndone)
    #expect(try exchange.rows("SELECT count(*) FROM buckia_effect") == ["1"])
    #expect(try undo(next.id, in: exchange).undone.map(\.deleted) == [1])
  }

  @Test("Small diffs that are applied together share an undo block, and each can be undone")
  func sharedBlock() throws {
    let exchange = try Exchange(schema)
    let sent = try (10..<60).map { try exchange.send("INSERT INTO note VALUES (\($0), 'n', 'n')") }
    try exchange.apply()
    #expect(try exchange.rows("SELECT count(*), first, last FROM buckia_effect") == ["1|1|50"])
    for one in [sent[49], sent[0], sent[20]] { #expect(try undo(one.id, in: exchange).undone.map(\.deleted) == [1]) }
    #expect(try exchange.rows("SELECT count(*) FROM note WHERE id IN (10, 30, 59)") == ["0"])
    #expect(try exchange.rows("SELECT count(*) FROM note WHERE id >= 10") == ["47"])
  }

  @Test("Undo blocks that another program has altered are an error, and nothing is undone")
  func alteredBlocks() throws {
    let exchange = try Exchange(schema)
    let sent = try exchange.send("INSERT INTO note VALUES (10, 'n', 'n')")
    try exchange.apply()
    for contents in [
      "x''", "x'28b52ffd'", "zeroblob(100)", "CAST(contents || x'00' AS BLOB)", "substr(contents, 1, 20)",
    ] {
      try TestDatabases.run("UPDATE buckia_effect SET contents = \(contents)", on: exchange.mine)
      #expect(#expect(throws: BuckiaError.self) { try undo(sent.id, in: exchange) }?.code == .alteredLedger)
    }
    #expect(try exchange.rows("SELECT count(*) FROM note WHERE id = 10") == ["1"])
  }

  @Test("A row that is too large to be kept is not copied, and its diff cannot be undone")
  func largeRows() throws {
    let exchange = try Exchange("\(schema); INSERT INTO note VALUES (9, 'n', zeroblob(100000))")
    try exchange.database.setUndoRetention(bytes: 50_000)
    let conflicting = try exchange.send("UPDATE note SET title = 'theirs' WHERE id = 9")
    let inserted = try exchange.send("INSERT INTO note VALUES (10, 'n', zeroblob(100000))")
    let small = try exchange.send("INSERT INTO note VALUES (11, 'n', 'n')")
    try TestDatabases.run("UPDATE note SET title = 'mine' WHERE id = 9", on: exchange.mine)
    try exchange.apply(ApplyOptions(conflicts: .takeIncoming))
    for sent in [conflicting, inserted] {
      #expect(#expect(throws: BuckiaError.self) { try undo(sent.id, in: exchange) }?.code == .notKept)
    }
    #expect(try undo(small.id, in: exchange).undone.map(\.deleted) == [1])
  }

  @Test("A dry run changes nothing")
  func dryRun() throws {
    let exchange = try Exchange(schema)
    let sent = try exchange.send(edits)
    try exchange.apply()
    let before = try exchange.everythingButOurs()
    #expect(try undo(sent.id, in: exchange, UndoOptions(isDryRun: true)).undone.map(\.deleted) == [3])
    #expect(try exchange.everythingButOurs() == before)
    #expect(try exchange.database.log().count == 1)
  }

  @Test("An undo works after columns were added, and names columns that were dropped")
  func changedSchema() throws {
    let exchange = try Exchange(schema)
    let before = try exchange.rows("SELECT * FROM note")
    let sent = try exchange.send(edits)
    try exchange.apply()
    try TestDatabases.run("ALTER TABLE note ADD COLUMN more DEFAULT 5", on: exchange.mine)
    let report = try undo(sent.id, in: exchange)
    #expect(try exchange.rows("SELECT id, title, body FROM note") == before)
    #expect(try exchange.rows("SELECT more FROM note") == ["5", "5", "5"])
    try TestDatabases.run("ALTER TABLE note DROP COLUMN body", on: exchange.mine)
    let error = #expect(throws: BuckiaError.self) { try undo(report.undone.first?.id, in: exchange) }
    #expect(error?.description.contains("note.body") == true)
  }

  @Test("Undoing random changes restores the rows from before")
  func anyChanges() throws {
    for seed in Seeds.range(60) {
      var random = SeededGenerator(seed: seed)
      let exchange = try Exchange(schema)
      func statement(_ who: String) -> String {
        let id = Int.random(in: 1...8, using: &random)
        let value = "'\(who)\(Int.random(in: 0..<4, using: &random))'"
        return switch Int.random(in: 0..<8, using: &random) {
        case 0: "INSERT OR REPLACE INTO note VALUES (\(id), \(value), \(value));"
        case 1: "UPDATE note SET title = \(value) WHERE id = \(id);"
        case 2: "UPDATE note SET body = \(value), title = \(value) WHERE id = \(id);"
        case 3: "DELETE FROM note WHERE id = \(id);"
        case 4: "INSERT OR REPLACE INTO tag VALUES (\(value), \(id));"
        case 5: "DELETE FROM tag WHERE n < \(id);"
        case 6: "INSERT INTO plain VALUES (\(id), \(value));"
        default: "UPDATE plain SET b = \(value) WHERE a = \(id % 3);"
        }
      }
      let mine = (0..<6).map { _ in statement("m") }.joined()
      let theirs = (0..<8).map { _ in statement("t") }.joined()
      if random.oneIn(2) { try TestDatabases.run(mine, on: exchange.mine) }
      let before = try exchange.everythingButOurs()
      guard try exchange.send(theirs).id != nil else { continue }
      let policy: ConflictPolicies = random.oneIn(2) ? .keepLocal : .takeIncoming
      let applied = try exchange.apply(ApplyOptions(conflicts: policy))
      let after = try exchange.everythingButOurs()
      let report = try undo(applied.diffs.first?.id, in: exchange)
      #expect(try exchange.everythingButOurs() == before, "\(Seeds.replay(seed))")
      try undo(report.undone.first?.id, in: exchange)
      #expect(try exchange.everythingButOurs() == after, "\(Seeds.replay(seed))")
    }
  }
}
