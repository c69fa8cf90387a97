import Buckia
import BuckiaApply
import BuckiaLedger
import TestSupport
import Testing

/// Small files of one folder are applied as a batch, with the same result as one by one.
@Suite struct OptimisticBatchTests {
  private static let schema = """
    CREATE TABLE plain(id INTEGER PRIMARY KEY, text TEXT CHECK (text <> 'no'), stars INTEGER);
    CREATE TABLE words(word TEXT PRIMARY KEY, n INTEGER) WITHOUT ROWID;
    CREATE TABLE unlike(name TEXT PRIMARY KEY COLLATE NOCASE, n UNIQUE);
    CREATE TABLE parent(id TEXT PRIMARY KEY, n INTEGER);
    CREATE TABLE child(id INTEGER PRIMARY KEY, parent TEXT REFERENCES parent(id) ON DELETE CASCADE);
    WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40)
    INSERT INTO plain SELECT i, 'text ' || i, i FROM n;
    INSERT INTO words SELECT 'w' || id, id FROM plain;
    INSERT INTO unlike SELECT 'N' || id, id FROM plain WHERE id <= 20;
    INSERT INTO parent SELECT 'p' || id, id FROM plain WHERE id <= 10;
    INSERT INTO child SELECT id, 'p' || (id % 10 + 1) FROM plain;
    """

  /// A small random edit, mostly of rows that no other edit touches.
  ///
  /// - Parameter clash: One in this many edits touches rows of other edits, too.
  private static func edit(_ number: Int, clash: Int, _ random: inout SeededGenerator) -> String {
    let mine = 100 + 10 * number
    let place = random.oneIn(clash) ? Int.random(in: 1...40, using: &random) : mine
    return switch Int.random(in: 0..<10, using: &random) {
    case 0, 1, 2: "INSERT OR REPLACE INTO plain VALUES (\(place), 't\(number)', 0), (\(mine + 1), 't', 1)"
    case 3: "INSERT OR REPLACE INTO words VALUES ('w\(place)', \(number)), ('v\(mine)', 1)"
    case 4: "UPDATE plain SET stars = \(number) WHERE id = \(number % 40 + 1)"
    case 5: "DELETE FROM words WHERE n = \(number % 40 + 1); INSERT INTO words VALUES ('x\(mine)', 0)"
    case 6: "INSERT OR IGNORE INTO unlike VALUES ('\(random.oneIn(2) ? "n" : "N")\(place + 20)', \(place + 20))"
    case 7: "UPDATE unlike SET n = -n WHERE name = 'N\(number % 20 + 1)'"
    case 8: "INSERT OR REPLACE INTO parent VALUES ('q\(place)', 1); INSERT INTO child VALUES (\(mine), 'q\(place)')"
    default: "DELETE FROM parent WHERE n = \(number % 10 + 1)"
    }
  }

  private static let policies: [ConflictPolicy] = [.keepLocal, .takeIncoming, .abort]

  @Test("A folder of small files has the same result as its files one by one", arguments: 0..<4)
  func likeOneByOne(shard: Int) throws {
    try Seeds.tryEach(40, shard: shard) { seed in
      var random = SeededGenerator(seed: seed)
      let together = try Exchange(Self.schema)
      let apart = try Exchange(Self.schema)
      let divergence = random.pick([
        "SELECT 1", "UPDATE plain SET stars = -1 WHERE id % 9 = 3", "DELETE FROM words WHERE n % 7 = 1",
        "INSERT INTO unlike VALUES ('n150', 'mine')",
      ])
      for exchange in [together, apart] { try TestDatabases.run(divergence, on: exchange.mine) }
      let clash = random.oneIn(2) ? 1_000 : 6
      for number in 0..<Int.random(in: 2...24, using: &random) {
        let sent = try together.send(Self.edit(number, clash: clash, &random))
        guard let path = sent.path, let id = sent.id else { continue }
        _ = try apart.folder.copy(path, to: "inbound/\(id).bdiff")
      }
      let options = ApplyOptions(
        conflicts: ConflictPolicies(Self.policies[Int.random(in: 0..<3, using: &random)]), triggers: random.oneIn(8),
        keepsFiles: true)
      let all = try together.apply(options).diffs
      var single: [DiffOutcome] = []
      for outcome in all {
        let path = outcome.path.replacing(together.inbound, with: apart.inbound)
        single += try apart.database.processInboundChanges([path], options: options).diffs
      }
      let note = Comment(rawValue: Seeds.replay(seed))
      #expect(all.map(Self.summary) == single.map(Self.summary), note)
      #expect(try TestDatabases.content(of: together.mine) == TestDatabases.content(of: apart.mine), note)
      for query in [
        """
        SELECT entry, diff, state, inserted, updated, deleted, conflicts, omitted, file FROM buckia_ledger
        """,
        "SELECT entry, kind, outcome, base, local, incoming, reason FROM buckia_conflict",
      ] {
        #expect(try together.rows(query).sorted() == apart.rows(query).sorted(), note)
      }
    }
  }

  private static func summary(_ outcome: DiffOutcome) -> String {
    "\(outcome.state) \(outcome.code?.rawValue ?? "") \(outcome.inserted) \(outcome.updated) \(outcome.deleted) "
      + "\(outcome.conflicts) \(outcome.omitted) \(outcome.changedTables.sorted()) \(outcome.warnings)"
  }

  @Test("Files that are named twice are applied once")
  func twice() throws {
    let exchange = try Exchange(Self.schema)
    for number in 0..<6 { try exchange.send("INSERT INTO plain VALUES (\(number + 100), 'x', 0)") }
    let names = try exchange.folder.names(in: "inbound").sorted()
    let paths = names.map { "\(exchange.inbound)/\($0)" }
    let report = try exchange.database.processInboundChanges(paths + paths, options: ApplyOptions(keepsFiles: true))
    #expect(report.diffs.count { $0.state == .applied } == 6)
    #expect(try exchange.rows("SELECT count(*), sum(inserted) FROM buckia_ledger") == ["6|6"])
    #expect(try exchange.rows("SELECT count(*) FROM plain WHERE id >= 100") == ["6"])
  }

  @Test("Successive changes of a row in several files are applied in order")
  func chain() throws {
    let exchange = try Exchange("CREATE TABLE t(k TEXT PRIMARY KEY, v INTEGER)")
    let path = try TestDatabases.run(
      "CREATE TABLE t(k TEXT PRIMARY KEY, v INTEGER)", on: exchange.folder.file("author.sqlite"))
    var older = exchange.base
    for step in 0..<30 {
      try TestDatabases.run(
        """
        DELETE FROM t WHERE v % 5 = \(step % 5) AND k < 'k3';
        INSERT OR IGNORE INTO t SELECT 'k' || column1, \(step) FROM (VALUES (9), (8), (\(step)), (1), (\(step % 7)))
          ;
        UPDATE t SET v = v + 1 WHERE k >= 'k5'
        """, on: path)
      _ = try DatabaseManager(path, home: BuckiaHome(path: exchange.folder.file("author-home"))).createDatabaseDiff(
        since: older, output: .folder(exchange.inbound))
      older = try exchange.folder.copy("author.sqlite", to: "step\(step).sqlite")
    }
    let report = try exchange.apply(ApplyOptions(conflicts: .abort))
    #expect(report.diffs.allSatisfy { $0.state == .applied && $0.conflicts == 0 })
    #expect(try TestDatabases.content(of: exchange.mine) == TestDatabases.content(of: path))
  }
}
