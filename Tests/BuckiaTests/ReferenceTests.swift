import Buckia
import BuckiaLedger
import Foundation
import SQLiteConnections
import TestSupport
import Testing

/// After a diff is applied, no reference dangles, whatever both sides have done to parents and children.
@Suite("References after a diff")
struct ReferenceTests {
  private static let policies: [ConflictPolicy] = [.keepLocal, .takeIncoming, .latest]

  private func apply(
    _ sent: String, after schema: String, here: String, _ policy: ConflictPolicy = .keepLocal
  ) throws -> Exchange {
    let exchange = try Exchange(schema)
    try TestDatabases.run(here, on: exchange.mine)
    try exchange.send(sent)
    #expect(try exchange.apply(ApplyOptions(conflicts: ConflictPolicies(policy))).diffs.map(\.state) == [.applied])
    #expect(try exchange.texts("PRAGMA foreign_key_check") == [])
    return exchange
  }

  /// Sends edits that are made after earlier ones, which are not sent.
  private func send(_ edits: String, after earlier: String, _ exchange: Exchange) throws {
    let before = try exchange.folder.copy("base.sqlite", to: "before.sqlite")
    try TestDatabases.run(earlier, on: before)
    let after = try exchange.folder.copy("before.sqlite", to: "after.sqlite")
    try TestDatabases.run(edits, on: after)
    _ = try DatabaseManager(after, home: exchange.home).createDatabaseDiff(
      since: before, output: .folder(exchange.inbound), options: DiffOptions())
  }

  private func conflicts(_ exchange: Exchange) throws -> [String] {
    try exchange.database.conflicts().map {
      "\($0.table) \($0.key.map { "\($0.value?.description ?? "?")" }.joined(separator: ",")) \($0.kind) \($0.outcome)"
    }
  }

  private static let albums = """
    CREATE TABLE album(id INTEGER PRIMARY KEY, t TEXT);
    CREATE TABLE photo(id INTEGER PRIMARY KEY, album INTEGER REFERENCES album(id), t TEXT);
    INSERT INTO album VALUES (1, 'one'), (2, 'two'); INSERT INTO photo VALUES (1, 1, 'theirs');
    """

  @Test(arguments: policies)
  func `a deleted album stays, with its values, if a photo was added to it here`(_ policy: ConflictPolicy) throws {
    let exchange = try apply(
      "DELETE FROM photo; DELETE FROM album", after: Self.albums, here: "INSERT INTO photo VALUES (7, 1, 'mine')",
      policy)
    #expect(try exchange.texts("SELECT * FROM album") == ["1|one"])
    #expect(try exchange.texts("SELECT * FROM photo") == ["7|1|mine"])
    #expect(try conflicts(exchange) == ["album 1 foreignKey keptLocal"])
    let reason = try exchange.database.conflicts().first?.reason
    #expect(reason == "the row id = 7 of table \"photo\" refers to it, so it stays")
  }

  @Test func `under abort, a diff that deletes a referenced album is refused`() throws {
    let exchange = try Exchange(Self.albums)
    try TestDatabases.run("INSERT INTO photo VALUES (7, 2, 'mine')", on: exchange.mine)
    try exchange.send("DELETE FROM album WHERE id = 2")
    #expect(try exchange.apply(ApplyOptions(conflicts: .abort)).diffs.map(\.state) == [.rejected])
    #expect(try exchange.texts("SELECT count(*) FROM album") == ["2"])
  }

  @Test func `a chain of referenced parents stays, however long it is, and an unreferenced row is deleted`() throws {
    let exchange = try apply(
      "DELETE FROM node",
      after: """
        CREATE TABLE node(id INTEGER PRIMARY KEY, parent INTEGER REFERENCES node(id));
        WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200)
        INSERT INTO node SELECT i, nullif(i - 1, 0) FROM n; INSERT INTO node VALUES (1000, 200), (1001, NULL);
        """,
      here: "INSERT INTO node VALUES (2000, 200)")
    #expect(try exchange.texts("SELECT count(*), max(id) FROM node") == ["201|2000"])
    #expect(try exchange.texts("SELECT id FROM node WHERE id BETWEEN 1000 AND 1999") == [])
  }

  @Test func `rows that refer to each other in a cycle stay together`() throws {
    let exchange = try apply(
      "DELETE FROM a; DELETE FROM b",
      after: """
        CREATE TABLE a(id TEXT COLLATE NOCASE PRIMARY KEY, b REFERENCES b(id) DEFERRABLE INITIALLY DEFERRED) WITHOUT ROWID;
        CREATE TABLE b(id INTEGER PRIMARY KEY, a TEXT REFERENCES a(id) DEFERRABLE INITIALLY DEFERRED);
        CREATE TABLE c(id INTEGER PRIMARY KEY, a TEXT REFERENCES a(id));
        INSERT INTO a VALUES ('x', 1), ('y', 2); INSERT INTO b VALUES (1, 'X'), (2, 'Y');
        """,
      here: "INSERT INTO c VALUES (1, 'X')")
    #expect(try exchange.texts("SELECT * FROM a") == ["x|1"])
    #expect(try exchange.texts("SELECT * FROM b") == ["1|X"])
  }

  @Test func `a composite key that local rows refer to keeps its values`() throws {
    let exchange = try apply(
      "UPDATE p SET b = 22, t = 'new' WHERE id = 2; DELETE FROM p WHERE id = 3",
      after: """
        CREATE TABLE p(id INTEGER PRIMARY KEY, a TEXT COLLATE NOCASE, b, t, UNIQUE (a, b));
        CREATE TABLE c(k TEXT PRIMARY KEY, a, b, FOREIGN KEY (a, b) REFERENCES p(a, b)) WITHOUT ROWID;
        INSERT INTO p VALUES (1, 'x', 1, ''), (2, 'y', 2, ''), (3, 'z', 3, '');
        """,
      here: "INSERT INTO c VALUES ('two', 'Y', 2), ('three', 'Z', 3), ('half', 'no', NULL)")
    #expect(try exchange.texts("SELECT * FROM p") == ["1|x|1|", "2|y|2|new", "3|z|3|"])
    #expect(try conflicts(exchange).sorted() == ["p 2 foreignKey merged", "p 3 foreignKey keptLocal"])
  }

  @Test(arguments: [("CASCADE", "new", 0), ("SET NULL", "NULL", 0), ("SET DEFAULT", "d", 0), ("NO ACTION", "a", 1)])
  func `the declared ON UPDATE action is executed`(_ action: String, _ reference: String, _ kept: Int) throws {
    let exchange = try apply(
      "UPDATE p SET u = 'new' WHERE id = 1",
      after: """
        CREATE TABLE p(id INTEGER PRIMARY KEY, u TEXT UNIQUE);
        CREATE TABLE c(id INTEGER PRIMARY KEY, u TEXT DEFAULT 'd' REFERENCES p(u) ON UPDATE \(action));
        INSERT INTO p VALUES (1, 'a'), (4, 'd');
        """,
      here: "INSERT INTO c VALUES (1, 'a')")
    #expect(try exchange.texts("SELECT u FROM c") == [reference])
    #expect(try exchange.texts("SELECT count(*) FROM p WHERE u = 'a'") == ["\(kept)"])
  }

  @Test(arguments: [
    ("SET NULL", "", "NULL", 0), ("SET DEFAULT", "DEFAULT 2", "2", 0), ("SET DEFAULT", "DEFAULT 9", "1", 1),
    ("SET DEFAULT", "", "NULL", 0), ("SET NULL", "NOT NULL", "1", 1), ("CASCADE", "", "1", 1), ("RESTRICT", "", "1", 1),
  ])
  func `the declared ON DELETE action is executed, unless it deletes a row or is refused`(
    _ action: String, _ rest: String, _ reference: String, _ kept: Int
  ) throws {
    let exchange = try apply(
      "DELETE FROM p WHERE id = 1",
      after: """
        CREATE TABLE p(id INTEGER PRIMARY KEY);
        CREATE TABLE c(id INTEGER PRIMARY KEY, p INTEGER \(rest) REFERENCES p ON DELETE \(action));
        INSERT INTO p VALUES (1), (2);
        """,
      here: "INSERT INTO c VALUES (5, 1)")
    #expect(try exchange.texts("SELECT p FROM c") == [reference])
    #expect(try exchange.texts("SELECT count(*) FROM p WHERE id = 1") == ["\(kept)"])
    #expect(try conflicts(exchange).count == 1)
  }

  @Test(arguments: policies)
  func `a photo without an album is parked, with later changes of it`(_ policy: ConflictPolicy) throws {
    let exchange = try Exchange(
      Self.albums + "CREATE TABLE note(id INTEGER PRIMARY KEY, photo REFERENCES photo(id));")
    let options = ApplyOptions(conflicts: ConflictPolicies(policy))
    try TestDatabases.run("DELETE FROM album WHERE id = 2", on: exchange.mine)
    let first = """
      INSERT INTO photo VALUES (2, 2, 'new'), (3, 2, 'gone'), (4, 1, 'here'); INSERT INTO note VALUES (1, 2), (2, 4);
      """
    try exchange.send(first)
    let report = try exchange.apply(options)
    #expect(report.diffs.map { [$0.inserted, $0.omitted, $0.conflicts] } == [[2, 3, 3]])
    #expect(try exchange.texts("PRAGMA foreign_key_check") == [])
    #expect(try exchange.texts("SELECT id FROM photo ORDER BY id") == ["1", "4"])
    #expect(
      try conflicts(exchange).sorted() == [
        "note 1 foreignKey omitted", "photo 2 foreignKey omitted", "photo 3 foreignKey omitted",
      ])
    try send("UPDATE photo SET t = 'newer' WHERE id = 2; DELETE FROM photo WHERE id = 3", after: first, exchange)
    try exchange.apply(options)
    #expect(try exchange.texts("SELECT id FROM photo ORDER BY id") == ["1", "4"])
    #expect(try exchange.database.conflicts().count == 3)
    // The app inserts the album again, and the next diff brings the photo back, whatever the diff changes.
    try TestDatabases.run("INSERT INTO album VALUES (2, 'again')", on: exchange.mine)
    try exchange.send("UPDATE album SET t = 'first' WHERE id = 1")
    try exchange.apply(options)
    #expect(try exchange.texts("SELECT * FROM photo WHERE id > 1 ORDER BY id") == ["2|2|newer", "4|1|here"])
    #expect(try exchange.texts("SELECT * FROM note ORDER BY id") == ["1|2", "2|4"])
    #expect(try exchange.texts("SELECT count(*) FROM buckia_parked") == ["0"])
  }

  @Test func `a reference that changes to a missing row keeps its value, and the other columns are written`() throws {
    let exchange = try apply(
      "UPDATE photo SET album = 2, t = 'newer' WHERE id = 1", after: Self.albums, here: "DELETE FROM album WHERE id = 2"
    )
    #expect(try exchange.texts("SELECT * FROM photo") == ["1|1|newer"])
    #expect(try conflicts(exchange) == ["photo 1 foreignKey merged"])
  }

  @Test func `a reference that dangled before is left unchanged`() throws {
    let exchange = try Exchange(Self.albums + "INSERT INTO photo VALUES (5, 77, 'lost');")
    try TestDatabases.run("INSERT INTO photo VALUES (6, 78, 'lost')", on: exchange.mine)
    try exchange.send("UPDATE photo SET t = 'still' WHERE id = 5; INSERT INTO album VALUES (3, 'three')")
    try exchange.apply()
    #expect(try exchange.texts("SELECT * FROM photo WHERE id > 1") == ["5|77|still", "6|78|lost"])
    #expect(try exchange.database.conflicts().isEmpty)
  }

  // MARK: Shares

  private static let scope = ShareScope(name: "all") {
    SharedTable("album")
    SharedTable("photo")
  }

  private static func albums(_ key: String, _ action: String = "") -> String {
    """
    CREATE TABLE album(id \(key) PRIMARY KEY, t TEXT);
    CREATE TABLE photo(id TEXT PRIMARY KEY, album \(key) REFERENCES album(id) \(action), t TEXT);
    """
  }

  @Test(arguments: policies)
  func `an album that one deletes while another adds a photo to it returns to both`(_ policy: ConflictPolicy) throws {
    let folder = try TemporaryFolder()
    let schema = Self.albums("INTEGER")
    let anna = try SharingPerson("anna", in: folder, schema + "INSERT INTO album VALUES (1, 'one'), (2, 'two');")
    let ben = try SharingPerson("ben", in: folder, schema)
    let options = ApplyOptions(conflicts: ConflictPolicies(policy))
    try anna.share(Self.scope, with: ben)
    try ben.receive(options)
    try ben.share(Self.scope, with: anna)
    try anna.receive(options)
    try anna.run("DELETE FROM album WHERE id = 1")
    try ben.run("INSERT INTO photo VALUES ('p', 1, 'new')")
    for _ in 0..<3 {
      try anna.share(Self.scope, with: ben)
      try ben.share(Self.scope, with: anna)
      try ben.receive(options)
      try anna.receive(options)
      for person in [anna, ben] { #expect(try TestDatabases.texts("PRAGMA foreign_key_check", on: person.path) == []) }
    }
    for person in [anna, ben] {
      #expect(try TestDatabases.texts("SELECT * FROM album ORDER BY id", on: person.path) == ["1|one", "2|two"])
      #expect(try TestDatabases.texts("SELECT * FROM photo", on: person.path) == ["p|1|new"])
    }
    #expect(try anna.share(Self.scope, with: ben).id == nil)
    #expect(try ben.share(Self.scope, with: anna).id == nil)
  }

  private func exchange(_ people: [HostileContact], _ policy: ConflictPolicy, rounds: Int) throws {
    for _ in 0..<rounds {
      for person in people { for other in people where other !== person { try person.share(Self.scope, with: other) } }
      for person in people {
        for outcome in try person.receive(ConflictPolicies(policy)) {
          #expect(outcome.state == .applied, "\(person.name): \(outcome.reason ?? "")")
        }
        #expect(try person.rows("PRAGMA foreign_key_check") == [])
      }
    }
  }

  @Test(arguments: ["INTEGER", "TEXT"], policies)
  func `a deleted album comes back if another person has added a photo`(key: String, policy: ConflictPolicy) throws {
    let people = try HostileContact.people(
      ["anna", "ben", "cara"], in: TemporaryFolder(), Self.albums(key))
    let (anna, ben) = (people[0], people[1])
    try anna.run("INSERT INTO album VALUES (1, 'one')")
    try anna.share(Self.scope, with: ben)
    try ben.receive(ConflictPolicies(policy))
    try ben.run("DELETE FROM album")
    try anna.run("UPDATE album SET t = 'uno'; INSERT INTO photo VALUES ('p', 1, 'new')")
    try exchange(people, policy, rounds: 6)
    for person in people {
      #expect(try person.rows("SELECT t FROM album") == ["uno"], "\(person.name)")
      #expect(try person.rows("SELECT p.t, a.t FROM photo AS p JOIN album AS a ON a.id = p.album") == ["new|uno"])
      for other in people where other !== person { #expect(try person.share(Self.scope, with: other).id == nil) }
    }
  }

  @Test(arguments: policies, [false, true])
  func `a photo in a deleted album does not get into another album with its key`(
    _ policy: ConflictPolicy, hasClocks: Bool
  ) throws {
    let people = try HostileContact.people(
      ["anna", "ben"], in: TemporaryFolder(), Self.albums("INTEGER", "ON DELETE CASCADE"))
    let (anna, ben) = (people[0], people[1])
    if hasClocks { for person in people { try DatabaseManager(person.path, home: person.home).keepClocks() } }
    try ben.run("INSERT INTO album VALUES (1, 'of ben')")
    try anna.run("INSERT INTO album VALUES (1, 'of anna')")
    for (one, other) in [(ben, anna), (anna, ben)] { try one.share(Self.scope, with: other) }
    try anna.receive(ConflictPolicies(policy))
    try anna.run("INSERT INTO photo SELECT 'p', id, 'new' FROM album WHERE t = 'of ben'")
    try ben.run("DELETE FROM album")
    try exchange(people, policy, rounds: 4)
    for person in people {
      #expect(try person.rows("SELECT t FROM album ORDER BY t") == ["of anna", "of ben"], "\(person.name)")
      #expect(try person.rows("SELECT a.t FROM photo AS p JOIN album AS a ON a.id = p.album") == ["of ben"])
    }
  }

  @Test(arguments: policies)
  func `an album of a dataset comes back once, although its key was given to another album`(_ policy: ConflictPolicy)
    throws
  {
    let people = try HostileContact.people(["anna", "ben"], in: TemporaryFolder(), Self.albums("INTEGER"))
    let (anna, ben) = (people[0], people[1])
    try anna.run("INSERT INTO album VALUES (1, 'one'), (2, 'two')")
    _ = try DatabaseManager(anna.path, home: anna.home).beginDataset()
    try FileManager.default.removeItem(atPath: ben.path)
    try FileManager.default.copyItem(atPath: anna.path, toPath: ben.path)
    try anna.run("INSERT INTO photo VALUES ('p', 2, 'new')")
    try ben.run("DELETE FROM album WHERE id = 2")
    try ben.share(Self.scope, with: anna)
    try ben.run("INSERT INTO album VALUES (NULL, 'three')")
    try exchange(people, policy, rounds: 4)
    for person in people {
      #expect(try person.rows("SELECT t FROM album ORDER BY t") == ["one", "three", "two"], "\(person.name)")
      #expect(try person.rows("SELECT a.t FROM photo AS p JOIN album AS a ON a.id = p.album") == ["two"])
    }
  }
}

/// Random exchanges with foreign keys of all kinds.
@Suite struct ReferencePropertyTests {
  private static let schema = """
    CREATE TABLE folder(id INTEGER PRIMARY KEY, up INTEGER REFERENCES folder(id), code TEXT COLLATE NOCASE UNIQUE);
    CREATE TABLE album(k TEXT COLLATE NOCASE PRIMARY KEY, folder INTEGER REFERENCES folder(id) DEFERRABLE INITIALLY DEFERRED,
      cover TEXT REFERENCES photo(id) DEFERRABLE INITIALLY DEFERRED, t) WITHOUT ROWID;
    CREATE TABLE photo(id TEXT PRIMARY KEY, album TEXT REFERENCES album(k) ON DELETE CASCADE,
      maker INTEGER DEFAULT 1 REFERENCES maker(id) ON DELETE SET DEFAULT, code TEXT REFERENCES folder(code) ON UPDATE CASCADE, t);
    CREATE TABLE maker(id INTEGER PRIMARY KEY, a, b, UNIQUE (a, b));
    CREATE TABLE note(id INTEGER PRIMARY KEY, photo TEXT REFERENCES photo(id) ON DELETE SET NULL, a, b,
      FOREIGN KEY (a, b) REFERENCES maker(a, b));
    """
  private static let tables = ["folder", "album", "photo", "maker", "note"]
  private static let scope = ShareScope(name: "all") {
    SharedTable("folder")
    SharedTable("album")
    SharedTable("photo")
    SharedTable("maker")
    SharedTable("note")
  }

  @Test(arguments: Seeds.shards)
  func `no reference dangles after any diff of a random exchange`(shard: Int) throws {
    try Seeds.tryEach(40, shard: shard) { try exchange(seed: $0) }
  }

  private func exchange(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let folder = try TemporaryFolder()
    let people = try ["anna", "ben"].map { try SharingPerson($0, in: folder, Self.schema) }
    let options = ApplyOptions(
      conflicts: ConflictPolicies([ConflictPolicy.keepLocal, .takeIncoming, .latest][Int(seed % 3)]))
    var made = 0
    for round in 0..<6 {
      for person in people {
        for _ in 0..<Int.random(in: 0...8, using: &random) {
          made += 1
          edit(person, &random, made)
        }
        #expect(
          try TestDatabases.texts("PRAGMA foreign_key_check", on: person.path) == [],
          "\(Seeds.replay(seed)): the edits break nothing")
      }
      for (index, person) in people.enumerated() { try person.share(Self.scope, with: people[1 - index]) }
      for person in people {
        let report = try person.receive(options)
        #expect(report.diffs.allSatisfy { $0.state == .applied }, "\(Seeds.replay(seed)): \(report.diffs)")
        #expect(
          try TestDatabases.texts("PRAGMA foreign_key_check", on: person.path) == [],
          "\(Seeds.replay(seed)): round \(round), \(person.name)")
      }
    }
  }

  /// Makes a random edit, if the foreign keys allow it.
  private func edit(_ person: SharingPerson, _ random: inout SeededGenerator, _ made: Int) {
    func one(_ table: String, _ column: String) -> String {
      "(SELECT \(column) FROM \(table) ORDER BY abs(random() % 1000 + \(made)) LIMIT 1)"
    }
    let table = Self.tables.randomElement(using: &random) ?? "note"
    let letter = ["a", "B", "c", "D", "e", "f"].randomElement(using: &random) ?? "a"
    let number = Int.random(in: 1...6, using: &random)
    let sql =
      switch (table, Int.random(in: 0...4, using: &random)) {
      case (_, 0): "DELETE FROM \(table) WHERE abs(random()) % 3 = 0"
      case ("album", 1): "DELETE FROM album WHERE k = '\(letter)'"
      case ("album", 2): "UPDATE album SET folder = \(one("folder", "id")), cover = \(one("photo", "id"))"
      case ("album", _): "INSERT OR IGNORE INTO album VALUES ('\(letter)', \(one("folder", "id")), NULL, \(made))"
      case ("folder", 1): "UPDATE folder SET code = '\(letter)\(made)' WHERE id = \(number)"
      case ("folder", 2): "UPDATE folder SET up = \(one("folder", "id")) WHERE id = \(number)"
      case ("folder", _):
        "INSERT OR IGNORE INTO folder VALUES (\(number), \(one("folder", "id")), '\(letter)\(number)')"
      case ("photo", 1): "UPDATE photo SET album = \(one("album", "k")), t = \(made)"
      case ("photo", _):
        """
        INSERT INTO photo VALUES ('\(person.name)\(made)', \(one("album", "k")), \(one("maker", "id")), \
        \(one("folder", "code")), \(made))
        """
      case ("maker", 1): "UPDATE maker SET b = \(made) WHERE id = \(number)"
      case ("maker", _): "INSERT OR IGNORE INTO maker VALUES (\(number), 'x', \(number))"
      case (_, 1): "UPDATE note SET photo = \(one("photo", "id"))"
      default:
        """
        INSERT INTO note(photo, a, b) SELECT \(one("photo", "id")), a, b FROM (SELECT 1) LEFT JOIN maker ON maker.id = \(number)
        """
      }
    // Edits that a foreign key or a primary key refuses are skipped.
    _ = Result { try person.run("PRAGMA foreign_keys = ON; \(sql)") }
  }
}
