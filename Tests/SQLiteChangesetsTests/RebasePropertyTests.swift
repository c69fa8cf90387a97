import BuckiaBytes
import SQLiteChangesets
import SQLiteConnections
import Testing
import TestSupport

@Suite("Rebasing random changesets")
struct RebasePropertyTests {
  private struct Difference: Error {
    let table: String
    let expected: [String: [String]]
    let found: [String: [String]]
  }

  @Test(
    "applied after the incoming changes, the result has no conflict and equals a three-way merge",
    arguments: Seeds.shards)
  func mergedStates(shard: Int) throws {
    try Seeds.tryEach(240, shard: shard) { seed in
      let policy: RebasePolicy = seed % 2 == 0 ? .keepLocal : .takeIncoming
      let (base, mine, theirs) = try (
        RandomDatabase(seed: seed), RandomDatabase(seed: seed), RandomDatabase(seed: seed)
      )
      mine.diverge(seed: seed &+ 1)
      theirs.diverge(seed: seed &+ 2)
      let local = try mine.changes(25).changeset
      let incoming = try theirs.changes(25).changeset
      let states = try (base.rows(), mine.rows(), theirs.rows())
      let rebased = try Changesets.rebased(local, onto: incoming, policy: policy).changeset
      guard try Spilled.rebased(local, onto: incoming, policy) == rebased else {
        throw Failure("other bytes from files")
      }
      try StockChangesets.apply(incoming, to: base.connection) { _, _ in .abort }
      try StockChangesets.apply(rebased, to: base.connection) { _, _ in .abort }
      let found = try base.rows()
      for (table, _, _) in RandomDatabase.tables {
        let rows = (states.0[table] ?? [:], states.1[table] ?? [:], states.2[table] ?? [:])
        let expected = merged(rows.0, rows.1, rows.2, policy)
        guard found[table] ?? [:] == expected else {
          throw Difference(table: table, expected: expected, found: found[table] ?? [:])
        }
      }
    }
  }

  private func merged(
    _ base: [String: [String]], _ mine: [String: [String]], _ theirs: [String: [String]], _ policy: RebasePolicy
  ) -> [String: [String]] {
    var result: [String: [String]] = [:]
    for key in Set(base.keys).union(mine.keys).union(theirs.keys) {
      let (was, one, other) = (base[key], mine[key], theirs[key])
      if one == was {
        result[key] = other
      } else if other == was || one == other {
        result[key] = one
      } else {
        guard let was, let one, let other else {
          result[key] = policy == .keepLocal ? one : other
          continue
        }
        result[key] = was.indices.map { column in
          if one[column] == was[column] { return other[column] }
          return other[column] == was[column] || policy == .keepLocal ? one[column] : other[column]
        }
      }
    }
    return result
  }

  @Test("with loose keys, too, the result starts from the state after the incoming changes", arguments: Seeds.shards)
  func looseKeys(shard: Int) throws {
    try Seeds.tryEach(80, shard: shard) { seed in
      let mine = try RandomDatabase(seed: seed, hasLooseKeys: true)
      let theirs = try RandomDatabase(seed: seed, hasLooseKeys: true)
      mine.diverge(seed: seed &+ 1)
      theirs.diverge(seed: seed &+ 2)
      let (local, incoming) = try (mine.changes(25).changeset, theirs.changes(25).changeset)
      for policy in RebasePolicy.allCases {
        let rebased = try Changesets.rebased(local, onto: incoming, policy: policy).changeset
        guard try Spilled.rebased(local, onto: incoming, policy) == rebased else { throw Failure("other bytes") }
      }
    }
  }

  // MARK: UNIQUE values

  private static let uniqueTable = "CREATE TABLE u(id INTEGER PRIMARY KEY, a UNIQUE, b, c, d, UNIQUE(b, c))"

  @Test("with the definitions, no two rows end with the same UNIQUE values", arguments: Seeds.shards)
  func uniqueValues(shard: Int) throws {
    let definition = RebaseTable(
      name: "u", collations: Array(repeating: .binary, count: 5), unique: [[1], [2, 3]], integerKey: 0)
    try Seeds.tryEach(240, shard: shard) { seed in
      var random = SeededGenerator(seed: seed)
      let policy: RebasePolicy = seed % 2 == 0 ? .keepLocal : .takeIncoming
      let start = edits(12, &random)
      let (local, incoming) = try (
        changes(edits(10, &random), after: start), changes(edits(10, &random), after: start)
      )
      let output = TemporaryBuffer()
      let conflicts = try Changesets.rebase(
        TemporaryBuffer(local), onto: TemporaryBuffer(incoming), policy, definitions: [definition], into: output)
      // Only the result is checked: the order in which rows make room for each other is up to the receiver.
      let receiver = try SQLiteConnection(opening: ":memory:", as: .create)
      try receiver.execute("CREATE TABLE u(id INTEGER PRIMARY KEY, a, b, c, d)")
      let original = try database(start)
      try receiver.execute(try inserts(of: original))
      try StockChangesets.apply(incoming, to: receiver) { _, _ in .abort }
      try StockChangesets.apply(output.allBytes(), to: receiver) { _, _ in .abort }
      var twice = 0
      try receiver.forEachRow(
        of: """
          SELECT a FROM u WHERE a IS NOT NULL GROUP BY a HAVING count(*) > 1 UNION ALL
          SELECT b FROM u WHERE b IS NOT NULL AND c IS NOT NULL GROUP BY b, c HAVING count(*) > 1
          """
      ) { _ in twice += 1 }
      let isNamed = conflicts.listed.contains { $0.kind == .undecidedUnique }
      guard twice == 0 || isNamed else { throw Failure("\(twice) values are there twice") }
    }
  }

  private func edits(_ count: Int, _ random: inout SeededGenerator) -> [String] {
    func value(_ random: inout SeededGenerator) -> String {
      random.oneIn(6) ? "NULL" : "\(Int.random(in: 0..<7, using: &random))"
    }
    return (0..<count).map { _ in
      let id = Int.random(in: 0..<14, using: &random)
      let values = (0..<4).map { _ in value(&random) }
      switch Int.random(in: 0..<5, using: &random) {
      case 0, 1: return "INSERT OR IGNORE INTO u VALUES(\(id),\(values.joined(separator: ",")))"
      case 2: return "DELETE FROM u WHERE id = \(id)"
      case 3: return "UPDATE OR IGNORE u SET a = \(values[0]) WHERE id = \(id)"
      default: return "UPDATE OR IGNORE u SET b = \(values[1]), c = \(values[2]), d = \(values[3]) WHERE id = \(id)"
      }
    }
  }

  private func database(_ edits: [String]) throws -> SQLiteConnection {
    let connection = try SQLiteConnection(opening: ":memory:", as: .create)
    try connection.execute(Self.uniqueTable)
    for edit in edits { try connection.execute(edit) }
    return connection
  }

  private func changes(_ edits: [String], after start: [String]) throws -> [UInt8] {
    let connection = try database(start)
    let session = try SQLiteSession(on: connection)
    try session.attach()
    for edit in edits { try connection.execute(edit) }
    return try session.changeset()
  }

  private func inserts(of connection: borrowing SQLiteConnection) throws -> String {
    try TestDatabases.texts(
      "SELECT format('INSERT INTO u VALUES(%d,%s,%s,%s,%s);', id, quote(a), quote(b), quote(c), quote(d)) FROM u",
      on: connection
    ).joined()
  }

  // MARK: New keys

  private static let family = """
    CREATE TABLE person(id INTEGER PRIMARY KEY, parent REFERENCES person, v);
    CREATE TABLE detail(id INTEGER PRIMARY KEY REFERENCES person(id), v);
    CREATE TABLE note(id INTEGER PRIMARY KEY, person REFERENCES person, detail REFERENCES detail(id), v);
    CREATE TABLE link(a REFERENCES note, b REFERENCES person, v, PRIMARY KEY(a, b)) WITHOUT ROWID;
    INSERT INTO person VALUES(1, NULL, 'first'), (2, 1, 'second'); INSERT INTO note VALUES(1, 2, NULL, 'first');
    """
  private static let familyTables: [RebaseTable] = {
    let person = RebaseTable.Reference(columns: [1], parent: "person", parentColumns: [0])
    return [
      RebaseTable(name: "person", collations: [], references: [person], integerKey: 0),
      RebaseTable(
        name: "detail", collations: [],
        references: [RebaseTable.Reference(columns: [0], parent: "person", parentColumns: [0])], integerKey: 0),
      RebaseTable(
        name: "note", collations: [],
        references: [person, RebaseTable.Reference(columns: [2], parent: "detail", parentColumns: [0])], integerKey: 0),
      RebaseTable(
        name: "link", collations: [],
        references: [
          RebaseTable.Reference(columns: [0], parent: "note", parentColumns: [0]),
          RebaseTable.Reference(columns: [1], parent: "person", parentColumns: [0]),
        ]),
    ]
  }()
  /// The contents and references of each row, independent of keys.
  private static let relations = """
    SELECT 'person', p.v, q.v FROM person p LEFT JOIN person q ON q.id = p.parent
    UNION ALL SELECT 'detail', d.v, p.v FROM detail d JOIN person p USING(id)
    UNION ALL SELECT 'note', n.v, p.v || ifnull(d.v, '') FROM note n JOIN person p ON p.id = n.person LEFT JOIN detail d ON d.id = n.detail
    UNION ALL SELECT 'link', l.v, n.v || p.v FROM link l JOIN note n ON n.id = l.a JOIN person p ON p.id = l.b
    """

  @Test("with new keys, the rows of both sides exist, with their references", arguments: Seeds.shards)
  func newKeys(shard: Int) throws {
    try Seeds.tryEach(160, shard: shard) { seed in
      var random = SeededGenerator(seed: seed)
      let (local, mine) = try grown("L", &random)
      let (incoming, theirs) = try grown("I", &random)
      let (remapped, output) = (TemporaryBuffer(), TemporaryBuffer())
      let keys = try Changesets.remapKeys(
        of: TemporaryBuffer(local), inUseBy: TemporaryBuffer(incoming), definitions: Self.familyTables, into: remapped)
      let conflicts = try Changesets.rebase(
        remapped, onto: TemporaryBuffer(incoming), .keepLocal, definitions: Self.familyTables, into: output)
      guard conflicts.count == 0 else { throw Failure("conflicts: \(conflicts.listed)") }
      let receiver = try SQLiteConnection(opening: ":memory:", as: .create)
      try receiver.execute(Self.family)
      try StockChangesets.apply(incoming, to: receiver) { _, _ in .abort }
      try StockChangesets.apply(output.allBytes(), to: receiver) { _, _ in .abort }
      let found = try relations(of: receiver)
      guard found == mine.union(theirs) else {
        throw Failure("lost: \(mine.union(theirs).subtracting(found)); more: \(found.subtracting(mine.union(theirs)))")
      }
      guard Set(keys.map { "\($0.table) \($0.newKey)" }).count == keys.count else { throw Failure("one key for two") }
    }
  }

  /// The changes of a person who adds rows, each with a mark, and the resulting relations of all rows.
  private func grown(_ mark: String, _ random: inout SeededGenerator) throws -> ([UInt8], Set<String>) {
    let connection = try SQLiteConnection(opening: ":memory:", as: .create)
    try connection.execute(Self.family)
    let session = try SQLiteSession(on: connection)
    try session.attach()
    for step in 0..<Int.random(in: 3..<14, using: &random) {
      let value = "'\(mark)\(step)'"
      let person = "(SELECT id FROM person ORDER BY (id * \(Int.random(in: 1..<97, using: &random))) % 97 LIMIT 1)"
      let note = "(SELECT id FROM note ORDER BY (id * \(Int.random(in: 1..<97, using: &random))) % 97 LIMIT 1)"
      switch Int.random(in: 0..<6, using: &random) {
      case 0, 1: try connection.execute("INSERT INTO person VALUES(NULL, \(person), \(value))")
      case 2:
        try connection.execute(
          "INSERT OR IGNORE INTO detail SELECT id, \(value) FROM person WHERE id > 2 ORDER BY id DESC LIMIT 1")
      case 3:
        try connection.execute(
          // Sometimes both add the same row, which only counts as one if it refers to the same person.
          "INSERT INTO note VALUES(NULL, \(person), (SELECT max(id) FROM detail), \(random.oneIn(2) ? "'both'" : value))"
        )
      case 4: try connection.execute("INSERT OR IGNORE INTO link VALUES(\(note), \(person), 'link')")
      default:
        // Sometimes in a cycle.
        try connection.execute(
          "UPDATE person SET parent = (SELECT max(id) FROM person) WHERE id = (SELECT max(id) - 1 FROM person WHERE id > 3)"
        )
      }
    }
    return (try session.changeset(), try relations(of: connection))
  }

  private func relations(of connection: borrowing SQLiteConnection) throws -> Set<String> {
    try Set(TestDatabases.texts(Self.relations, on: connection))
  }

  private struct Failure: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
  }
}
