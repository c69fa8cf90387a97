import Buckia
import BuckiaKSUID
import SQLiteConnections
import TestSupport
import Testing

/// Several people who edit the same rows apart, and send what they have changed to all others.
struct Group {
  /// One of them.
  struct Member {
    let database: DatabaseManager
    let shared: String
    let home: BuckiaHome
    /// The files that have not been applied here yet.
    var mail: [String] = []
  }

  let folder: TemporaryFolder
  var members: [Member] = []
  /// All files that were sent.
  var sent: [(file: String, from: Int)] = []
  var options = ApplyOptions(conflicts: .latest)

  init(_ count: Int, _ schema: String) throws {
    folder = try TemporaryFolder()
    try TestDatabases.run(schema, on: folder.file("base.sqlite"))
    for index in 0..<count {
      let database = DatabaseManager(try folder.copy("base.sqlite", to: "\(index).sqlite"))
      try database.initialize()
      try database.keepClocks()
      members.append(
        Member(
          database: database, shared: folder.file("\(index)-shared.sqlite"),
          home: BuckiaHome(path: folder.file("\(index)-home"))))
      try database.snapshot(to: members[index].shared)
    }
  }

  func edit(_ member: Int, _ sql: String) throws { try TestDatabases.run(sql, on: members[member].database.path) }

  /// Sends what a member has changed to all others.
  @discardableResult
  mutating func send(_ member: Int) throws -> DiffReport {
    let report = try members[member].database.createDatabaseDiff(
      since: members[member].shared, output: .folder(folder.file("sent")), home: members[member].home)
    if let file = report.path {
      sent.append((file, member))
      for other in members.indices where other != member { members[other].mail.append(file) }
    }
    return report
  }

  /// Applies some of the files that a member has got.
  @discardableResult
  mutating func apply(_ member: Int, _ files: [String]? = nil) throws -> ApplyReport {
    let files = files ?? members[member].mail
    var options = options
    options.snapshot = members[member].shared
    members[member].mail.removeAll { files.contains($0) }
    return try members[member].database.processInboundChanges(files, options: options, home: members[member].home)
  }

  /// Lets everybody have everything.
  mutating func settle() throws {
    var isSettled = false
    while !isSettled {
      isSettled = true
      for member in members.indices {
        if try send(member).id != nil { isSettled = false }
        try apply(member)
      }
    }
  }

  /// The rows of a member, without what Buckia keeps.
  func content(_ member: Int) throws -> [String: [String]] {
    try TestDatabases.content(of: members[member].database.path).filter { !$0.key.hasPrefix("buckia_") }
  }

  /// The rows of a query at a member.
  func rows(_ member: Int, _ sql: String) throws -> [String] {
    let connection = try SQLiteConnection(opening: members[member].database.path, as: .readOnly)
    var rows: [String] = []
    try connection.forEachRow(of: sql) { row in
      rows.append((0..<row.columnCount).map { row.text(at: $0) ?? "NULL" }.joined(separator: "|"))
    }
    return rows
  }
}

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

  @Test(
    "Whoever edits what, and however files are delayed, doubled and mixed up, all have the same rows in the end",
    arguments: Seeds.shards)
  func randomHistories(_ shard: Int) throws {
    for seed in Seeds.range(12) where Int(seed) % Seeds.shards.count == shard || Seeds.range(12).count == 1 {
      var random = SeededGenerator(seed: seed)
      var group = try Group(Int.random(in: 2...4, using: &random), Self.schema)
      for _ in 0..<Int.random(in: 5...25, using: &random) {
        let member = Int.random(in: 0..<group.members.count, using: &random)
        switch Int.random(in: 0..<10, using: &random) {
        case 0..<5: try group.edit(member, Self.edits(&random, by: member))
        case 5..<7:
          try group.send(member)
          try group.apply(member, [])
        default:
          var files = group.members[member].mail.shuffled(using: &random)
          files = Array(files.prefix(Int.random(in: 1...4, using: &random)))
          // One that was applied before may come again.
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
}
