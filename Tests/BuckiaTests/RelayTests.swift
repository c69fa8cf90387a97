import Buckia
import BuckiaBytes
import SQLiteConnections
import TestSupport
import Testing

/// Relayed changes keep the id of the diff that they come from, so they become no later by being relayed.
@Suite struct RelayTests {
  /// People who share all notes with each other.
  private struct Circle {
    let folder: TemporaryFolder
    let names: [String]
    /// True if all share one home, so that later diffs have greater ids. Otherwise, ids of one second have no order.
    private let ordersIDs: Bool

    /// - Parameter keepsClocks: True if the later diff wins.
    init(_ names: [String], _ rows: String, keepsClocks: Bool = true, ordersIDs: Bool = true) throws {
      self.names = names
      self.ordersIDs = ordersIDs
      self.keepsClocks = keepsClocks
      folder = try TemporaryFolder()
      for name in names {
        try TestDatabases.run(RelayTests.schema, on: folder.file("\(name).sqlite"))
        let database = database(name)
        try database.initialize()
        if keepsClocks { try database.keepClocks() }
        try folder.makeFolder("for \(name)")
      }
      try run(names[0], rows)
    }

    private let keepsClocks: Bool
    private func home(_ name: String) -> BuckiaHome {
      BuckiaHome(path: folder.file(ordersIDs ? "home" : "home of \(name)"))
    }
    private func database(_ name: String) -> DatabaseManager {
      DatabaseManager(folder.file("\(name).sqlite"), home: home(name))
    }

    func run(_ name: String, _ sql: String) throws { try TestDatabases.run(sql, on: folder.file("\(name).sqlite")) }

    @discardableResult
    func share(
      _ name: String, with others: [String], where condition: String? = nil, resyncing: Bool = false
    ) throws -> ShareReport {
      var options = ShareOptions()
      options.isUnencrypted = true
      options.resyncs = resyncing
      var note = SharedTable("note")
      if let condition { note = note.where(condition) }
      let scope = ShareScope(name: "notes of \(name)") { note }
      let report = try database(name).share(
        scope, to: others.map { ShareRecipient($0) }, output: .folder(folder.file("from \(name)")), options: options)
      if let path = report.path {
        for other in others {
          let file = path.split(separator: "/").last.map(String.init) ?? ""
          _ = try folder.write(fileBytes(path), to: "for \(other)/\(file)")
        }
      }
      return report
    }

    @discardableResult
    func receive(_ name: String) throws -> [DiffOutcome] {
      let options = keepsClocks ? ApplyOptions(conflicts: .latest) : ApplyOptions()
      let report = try database(name).processInboundChanges([folder.file("for \(name)")], options: options)
      #expect(
        report.diffs.allSatisfy { $0.state == .applied || $0.state == .alreadyApplied },
        "\(name): \(report.diffs.map { $0.reason ?? "" })")
      return report.diffs
    }

    func notes(_ name: String) throws -> [String] {
      try TestDatabases.texts("SELECT id, title, body FROM note ORDER BY id", on: folder.file("\(name).sqlite"))
    }

    /// The diffs that have set the columns of a note.
    func deciding(_ name: String, _ id: String) throws -> [KSUID?] {
      let origin = try database(name).origin(ofRowIn: "note", key: ["id": .text(id)])
      return origin.columns.map { $0.source?.diff }
    }
  }

  private static let schema = "CREATE TABLE note(id TEXT PRIMARY KEY, title TEXT, body TEXT)"
  private static let rows = "INSERT INTO note VALUES ('a','one','x'),('b','two','y'),('c','three','z')"

  @Test(
    "Changes that arrive directly and by relay have the author's diff as origin, and all replicas have the same rows",
    arguments: [false, true])
  func chain(isDirectFirst: Bool) throws {
    let circle = try Circle(["anna", "ben", "cara"], Self.rows)
    let first = try #require(try circle.share("anna", with: ["ben"]).id)
    try circle.receive("ben")
    try circle.share("ben", with: ["cara"])
    try circle.receive("cara")
    #expect(try circle.deciding("cara", "a") == [first, first, first])
    try circle.run("anna", "UPDATE note SET title = 'uno' WHERE id = 'a'; INSERT INTO note VALUES ('d','four','w')")
    try circle.run("anna", "DELETE FROM note WHERE id = 'c'")
    let edit = try #require(try circle.share("anna", with: ["ben"]).id)
    try circle.receive("ben")
    if isDirectFirst {
      try circle.share("anna", with: ["cara"])
      try circle.receive("cara")
    }
    try circle.share("ben", with: ["cara"])
    try circle.receive("cara")
    if !isDirectFirst {
      #expect(try circle.deciding("cara", "a") == [first, edit, first])
      #expect(try circle.deciding("cara", "d") == [edit, edit, edit])
    }
    for name in circle.names { #expect(try circle.notes(name) == ["a|uno|x", "b|two|y", "d|four|w"]) }
    // Relayed changes keep their origin at the relay, too, and nothing is left to send.
    #expect(try circle.deciding("ben", "a") == [first, edit, first])
    #expect(try circle.share("ben", with: ["cara"]).id == nil)
  }

  @Test("A relayed older value does not beat a newer one, but the relay's own edit of another column does")
  func olderByALongerWay() throws {
    let circle = try Circle(["anna", "ben", "cara"], Self.rows)
    try circle.share("anna", with: ["ben"])
    try circle.share("anna", with: ["cara"])
    try circle.receive("ben")
    try circle.receive("cara")
    try circle.share("cara", with: ["ben"])
    try circle.receive("ben")
    try circle.run("anna", "UPDATE note SET title = 'of anna', body = 'of anna' WHERE id = 'a'")
    try circle.share("anna", with: ["cara"])
    try circle.run("ben", "UPDATE note SET title = 'of ben', body = 'of ben' WHERE id = 'a'")
    let newer = try #require(try circle.share("ben", with: ["anna"]).id)
    try circle.receive("cara")
    try circle.run("cara", "UPDATE note SET body = 'of cara' WHERE id = 'a'")
    // The relay's diff has a greater id than Ben's.
    let last = try #require(try circle.share("cara", with: ["ben"]).id)
    #expect(last > newer)
    try circle.receive("ben")
    #expect(try circle.notes("ben")[0] == "a|of ben|of cara")
    #expect(try Array(circle.deciding("ben", "a").dropFirst()) == [newer, last])
    try circle.share("ben", with: ["cara"])
    try circle.share("ben", with: ["anna"])
    try circle.receive("cara")
    try circle.receive("anna")
    for name in circle.names {
      #expect(try circle.notes(name)[0] == "a|of ben|of cara")
      #expect(try Array(circle.deciding(name, "a").dropFirst()) == [newer, last])
    }
  }

  @Test(
    "An echo in a stream for several people does nothing, even if the row was edited since",
    arguments: [false, true])
  func echo(keepsClocks: Bool) throws {
    let circle = try Circle(["anna", "ben", "cara"], Self.rows, keepsClocks: keepsClocks)
    try circle.share("anna", with: ["ben", "cara"])
    try circle.receive("ben")
    try circle.receive("cara")
    try circle.share("ben", with: ["anna", "cara"])
    try circle.receive("anna")
    try circle.receive("cara")
    try circle.run("anna", "UPDATE note SET title = 'first' WHERE id = 'a'; DELETE FROM note WHERE id = 'b'")
    try circle.run("anna", "INSERT INTO note VALUES ('d','four','w')")
    try circle.share("anna", with: ["ben", "cara"])
    try circle.receive("ben")
    try circle.run("ben", "UPDATE note SET body = 'of ben' WHERE id = 'a'")
    try circle.share("ben", with: ["anna", "cara"])
    try circle.run("anna", "UPDATE note SET title = 'second' WHERE id = 'a'; INSERT INTO note VALUES ('b','new','n')")
    try circle.run("anna", "DELETE FROM note WHERE id = 'd'")
    #expect(try circle.receive("anna").map(\.conflicts) == [0])
    #expect(try circle.notes("anna") == ["a|second|of ben", "b|new|n", "c|three|z"])
    #expect(try circle.receive("cara").map(\.conflicts) == [0, 0])
    #expect(try circle.notes("cara") == ["a|first|of ben", "c|three|z", "d|four|w"])
  }

  @Test("A snapshot for several people does not bring back a row that its author, one of them, has deleted")
  func ownRowsInASnapshot() throws {
    let circle = try Circle(["anna", "ben", "cara"], Self.rows, keepsClocks: false)
    try circle.share("anna", with: ["ben", "cara"])
    try circle.receive("ben")
    try circle.receive("cara")
    try circle.share("ben", with: ["anna", "cara"])
    try circle.receive("anna")
    try circle.run("ben", "INSERT INTO note VALUES ('d','four','w')")
    try circle.share("ben", with: ["anna", "cara"])
    try circle.receive("anna")
    // With this diff in transit, Ben does not know which of his rows Anna has.
    try circle.run("ben", "UPDATE note SET body = 'later' WHERE id = 'c'")
    try circle.share("ben", with: ["anna", "cara"])
    try circle.run("ben", "DELETE FROM note WHERE id = 'd'")
    // A diff does not bring back Ben's deleted row.
    try circle.run("anna", "UPDATE note SET title = 'uno' WHERE id = 'a'")
    try circle.share("anna", with: ["ben", "cara"])
    try circle.receive("ben")
    #expect(try circle.notes("ben") == ["a|uno|x", "b|two|y", "c|three|later"])
    try circle.share("anna", with: ["ben", "cara"], resyncing: true)
    #expect(try circle.receive("ben").map(\.conflicts) == [0])
    #expect(try circle.notes("ben") == ["a|uno|x", "b|two|y", "c|three|later"])
  }

  @Test("A withdrawn row that is shared again comes back with the updates that were made meanwhile")
  func withdrawal() throws {
    let circle = try Circle(["anna", "ben", "cara"], Self.rows)
    let first = try #require(try circle.share("anna", with: ["ben"], where: "body <> 'q'").id)
    try circle.share("anna", with: ["cara"])
    try circle.receive("ben")
    try circle.receive("cara")
    try circle.run("anna", "UPDATE note SET body = 'q' WHERE id = 'a'")
    let report = try circle.share("anna", with: ["ben"], where: "body <> 'q'")
    #expect(report.tables.map(\.withdrawn) == [1])
    try circle.receive("ben")
    #expect(try circle.notes("ben") == ["b|two|y", "c|three|z"])
    // The row was not deleted: neither the replica that withdrew it nor its recipient has a tombstone.
    for name in ["anna", "ben"] {
      let connection = try SQLiteConnection(opening: circle.folder.file("\(name).sqlite"), as: .readOnly)
      #expect(
        try connection.integer(
          "SELECT count(*) FROM buckia_clock_1 JOIN buckia_row_version ON row_version = row_versions WHERE operation = 'delete'"
        ) == 0)
    }
    try circle.share("cara", with: ["anna", "ben"])
    try circle.receive("anna")
    // An update by a third person, who still has the row, reaches both.
    try circle.run("cara", "UPDATE note SET title = 'of cara' WHERE id = 'a'")
    try circle.share("cara", with: ["anna", "ben"])
    try circle.receive("anna")
    #expect(try circle.notes("anna")[0] == "a|of cara|q")
    try circle.run("anna", "UPDATE note SET body = 'x' WHERE id = 'a'")
    try circle.share("anna", with: ["ben"], where: "body <> 'q'")
    try circle.receive("ben")
    #expect(try circle.notes("ben")[0] == "a|of cara|x")
    #expect(first < (try #require(try circle.deciding("ben", "a")[1])))
  }

  @Test("After random shares in a ring, all replicas have the same rows in the end", arguments: Seeds.shards)
  func ring(_ shard: Int) throws {
    for seed in Seeds.range(6, shard: shard) {
      var random = SeededGenerator(seed: seed)
      let names = ["anna", "ben", "cara", "dora"].prefix(Int.random(in: 3...4, using: &random)).map { $0 }
      let circle = try Circle(names, Self.rows, ordersIDs: random.oneIn(2))
      /// The recipients of each person: the next one in the ring, or the next two.
      let recipients = names.indices.map { place in
        let next = names[(place + 1) % names.count]
        let other = names[(place + 2) % names.count]
        return random.oneIn(3) ? [next, other] : [next]
      }
      // All begin with the same rows.
      for place in names.indices {
        try circle.share(names[place], with: recipients[place])
        for other in recipients[place] { try circle.receive(other) }
      }
      for _ in 0..<Int.random(in: 5...20, using: &random) {
        let place = Int.random(in: names.indices, using: &random)
        switch Int.random(in: 0..<6, using: &random) {
        case 0..<2: try circle.run(names[place], Self.edit(&random, by: names[place]))
        case 2..<4: try circle.share(names[place], with: recipients[place])
        default: try circle.receive(names[place])
        }
      }
      var rounds = 0
      var isSettled = false
      while !isSettled, rounds < 20 {
        rounds += 1
        isSettled = true
        for place in names.indices {
          if try circle.share(names[place], with: recipients[place]).id != nil { isSettled = false }
          for other in recipients[place] { try circle.receive(other) }
        }
      }
      #expect(isSettled, "\(Seeds.replay(seed)): they still have something to say to each other")
      let expected = try circle.notes(names[0])
      for name in names.dropFirst() {
        let notes = try circle.notes(name)
        #expect(notes == expected, "\(Seeds.replay(seed)): \(names[0]) has \(expected), \(name) \(notes)")
      }
    }
  }

  private static func edit(_ random: inout SeededGenerator, by name: String) -> String {
    let id = random.pick(["'a'", "'b'", "'c'", "'d'", "'e'"])
    let value = "'\(name) \(Int.random(in: 0...9, using: &random))'"
    return random.pick([
      "UPDATE note SET title = \(value) WHERE id = \(id)", "UPDATE note SET body = \(value) WHERE id = \(id)",
      "UPDATE note SET title = \(value), body = \(value) WHERE id = \(id)", "DELETE FROM note WHERE id = \(id)",
      "INSERT OR IGNORE INTO note VALUES (\(id), \(value), \(value))",
    ])
  }
}
