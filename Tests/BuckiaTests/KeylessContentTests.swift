import Buckia
import BuckiaDiff
import SQLiteChangesets
import Testing
import TestSupport

/// Tables without a key in databases where equal rows have different rowids. Rows are identified by their content.
@Suite struct KeylessContentTests {
  private static let schema = "CREATE TABLE log(line TEXT, n, real REAL); CREATE TABLE wide(a, b)"

  /// Random rows. Many are repeated, and some are equal only as numbers.
  private static func rows(_ count: Int, _ random: inout SeededGenerator) -> String {
    let values = ["1", "1.0", "NULL", "'a'", "'A'", "x'61'", "''", "x''", "9223372036854775807", "-0.0"]
    return (0..<count).map { _ in
      random.oneIn(3)
        ? "INSERT INTO wide VALUES (\(random.pick(values)), \(random.pick(values)))"
        : "INSERT INTO log VALUES (\(random.pick(values)), \(random.pick(values)), \(random.pick(["1", "2.5", "NULL"])))"
    }.joined(separator: ";")
  }

  /// Every row with its number of copies.
  private static func content(of path: String) throws -> [String: Int] {
    var counts: [String: Int] = [:]
    for (table, rows) in try TestDatabases.content(of: path) {
      for row in rows { counts["\(table): \(row)", default: 0] += 1 }
    }
    return counts
  }

  @Test(
    "Rows that the author adds and removes are added and removed here, whatever their rowids", arguments: Seeds.shards)
  func likeCounting(shard: Int) throws {
    try Seeds.tryEach(40, shard: shard) { seed in
      var random = SeededGenerator(seed: seed)
      let folder = try TemporaryFolder()
      let home = BuckiaHome(path: folder.file("home"))
      let encoding = "PRAGMA encoding = \(random.pick(["'UTF-8'", "'UTF-16le'"]))"
      let older = try TestDatabases.run(
        "\(encoding); \(Self.schema); \(Self.rows(30, &random))", on: folder.file("older"))
      let newer = try folder.copy("older", to: "newer")
      // The receiver has the same rows in another order, and some of its own.
      let mine = try TestDatabases.run(
        """
        \(encoding); \(Self.schema); ATTACH '\(older)' AS o; INSERT INTO log SELECT * FROM o.log ORDER BY n, rowid DESC;
        INSERT INTO wide SELECT * FROM o.wide ORDER BY b, a; \(Self.rows(5, &random))
        """, on: folder.file("mine"))
      let id = Int.random(in: 1...20, using: &random)
      try TestDatabases.run(
        """
        DELETE FROM log WHERE rowid % 3 = \(id % 3); UPDATE wide SET b = a WHERE rowid > \(id); \(Self.rows(12, &random));
        \(random.oneIn(2) ? "VACUUM" : "ALTER TABLE log ADD COLUMN more DEFAULT 7; UPDATE log SET more = rowid % 2")
        """, on: newer)
      let report = try DatabaseManager(newer, home: home).createDatabaseDiff(
        since: older, output: .folder(folder.path), options: DiffOptions(keyless: .content))
      #expect(report.tables.allSatisfy { $0.updated == 0 })
      if let path = report.path {
        // The rows of the old database and the receiver get the new column, too, so that all can be counted alike.
        if report.tables.contains(where: { !$0.newColumns.isEmpty }) {
          for path in [older, mine] { try TestDatabases.run("ALTER TABLE log ADD COLUMN more DEFAULT 7", on: path) }
        }
        let before = try (older: Self.content(of: older), newer: Self.content(of: newer), mine: Self.content(of: mine))
        let outcome = try DatabaseManager(mine).processInboundChanges([path], options: ApplyOptions(conflicts: .abort))
        #expect(outcome.diffs.map(\.state) == [.applied], "\(Seeds.replay(seed))")
        let difference = before.newer.merging(before.older.mapValues { -$0 }, uniquingKeysWith: +)
        let expected = before.mine.merging(difference, uniquingKeysWith: +).filter { $0.value != 0 }
        #expect(try Self.content(of: mine) == expected, "\(Seeds.replay(seed))")
      } else {
        #expect(try Self.content(of: older) == Self.content(of: newer))
      }
    }
  }

  @Test("Deleting a row that no longer exists deletes no other row")
  func missing() throws {
    let exchange = try Exchange(
      "CREATE TABLE log(line, n); INSERT INTO log VALUES ('a', 1), ('b', 2), ('b', 2), ('c', 3)")
    try TestDatabases.run("DELETE FROM log WHERE line = 'a'; INSERT INTO log VALUES ('mine', 0)", on: exchange.mine)
    let theirs = try exchange.folder.copy("base.sqlite", to: "theirs")
    try TestDatabases.run("DELETE FROM log WHERE rowid < 3; INSERT INTO log VALUES ('new', 9)", on: theirs)
    _ = try DatabaseManager(theirs, home: BuckiaHome(path: exchange.folder.file("home"))).createDatabaseDiff(
      since: exchange.base, output: .folder(exchange.inbound), options: DiffOptions(keyless: .content))
    let report = try exchange.apply()
    #expect(report.diffs.map(\.inserted) == [1])
    #expect(report.diffs.map(\.deleted) == [1])
    #expect(try exchange.rows("SELECT n FROM log ORDER BY n") == ["0", "2", "3", "9"])
  }

  @Test(
    "Rows that only compare equal are distinguished by sign, storage class and case",
    arguments: [
      ("0.0", "-0.0"), ("-0.0", "0.0"), ("0", "-0.0"), ("1", "1.0"), ("1.0", "1"), ("'a'", "'A'"), ("'A'", "'a'"),
    ])
  func equalRows(old: String, new: String) throws {
    for isKeyless in [true, false] {
      let exchange = try Exchange(
        """
        CREATE TABLE log(k \(isKeyless ? "" : "TEXT PRIMARY KEY"), line COLLATE NOCASE, n);
        INSERT INTO log VALUES (NULL, \(new), 1), (NULL, \(old), 1), (NULL, 'other', \(old))
        """)
      let path = exchange.folder.file("changes.bdiff")
      let theirs = try exchange.folder.copy("base.sqlite", to: "theirs")
      try TestDatabases.run("DELETE FROM log WHERE rowid = 2; UPDATE log SET n = \(new) WHERE rowid = 3", on: theirs)
      _ = try DatabaseManager(theirs, home: BuckiaHome(path: exchange.folder.file("home"))).createDatabaseDiff(
        since: exchange.base, output: .file(path, replacing: false), options: DiffOptions(keyless: .content))
      let options = ApplyOptions(conflicts: .abort)
      let report = try exchange.database.processInboundChanges([path], options: options)
      #expect(report.diffs.map { [$0.inserted, $0.deleted] } == [[1, 2]])
      #expect(try Self.content(of: exchange.mine) == Self.content(of: theirs))

      // If the row itself is gone, the row that compares equal stays.
      try TestDatabases.run("DELETE FROM log", on: theirs)
      let rest = exchange.folder.file("rest.bdiff")
      _ = try DatabaseManager(theirs, home: BuckiaHome(path: exchange.folder.file("home"))).createDatabaseDiff(
        since: exchange.base, output: .file(rest, replacing: false), options: DiffOptions(keyless: .content))
      #expect(try exchange.database.processInboundChanges([rest]).diffs.map(\.deleted) == [1])
      #expect(try exchange.rows("SELECT typeof(n) = typeof(\(new)) FROM log") == ["1"])
    }
  }

  @Test("Rows are identified by their values after the conversion by the column")
  func convertedValues() throws {
    let exchange = try Exchange(
      "CREATE TABLE log(i INTEGER, r REAL, t TEXT); INSERT INTO log VALUES (1.0, 2, 3), (0, -0.0, 'a')")
    var writer = ChangesetWriter()
    writer.beginTable(ChangesetTable(name: "log", keyFlags: [1, 0, 0, 0]))
    writer.beginChange(.delete)
    writer.appendNull()
    writer.append(real: 1)
    writer.append(integer: 2)
    writer.append(integer: 3)
    writer.beginChange(.delete)
    writer.appendNull()
    writer.append(real: -0.0)
    writer.append(real: -0.0)
    writer.append(text: "a")
    try exchange.plantRaw(writer.bytes)
    #expect(try exchange.apply().diffs.map(\.deleted) == [2])
    #expect(try exchange.rows("SELECT * FROM log") == [])
  }

  @Test("The DELETE of a patchset has no content, so it deletes no row without a key")
  func patchset() throws {
    let exchange = try Exchange("CREATE TABLE log(line); INSERT INTO log VALUES ('a'), ('b')")
    var writer = ChangesetWriter()
    writer.beginTable(ChangesetTable(name: "log", format: .patchset, keyFlags: [1, 0]))
    writer.beginChange(.delete)
    writer.appendNull()
    try exchange.plantRaw(writer.bytes)
    #expect(try exchange.apply().diffs.map(\.deleted) == [0])
    #expect(try exchange.rows("SELECT count(*) FROM log") == ["2"])
  }
}
