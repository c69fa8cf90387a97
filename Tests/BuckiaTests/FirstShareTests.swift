import Buckia
import Foundation
import TestSupport
import Testing

/// Changes that people have made to received rows before their own first share.
@Suite struct FirstShareTests {
  /// A person with a database, a home and keys, whom the other people trust.
  private struct Person {
    let name: String
    let folder: TemporaryFolder
    let policy: ConflictPolicy
    var path: String { folder.file("\(name).sqlite") }
    var home: BuckiaHome { BuckiaHome(path: folder.file("home of \(name)")) }
    var database: DatabaseManager { DatabaseManager(path, home: home) }

    func run(_ sql: String) throws { try TestDatabases.run(sql, on: path) }

    /// Replaces the database with a copy of another person's.
    func copy(_ other: Person) throws {
      try FileManager.default.removeItem(atPath: path)
      try FileManager.default.copyItem(atPath: other.path, toPath: path)
    }

    @discardableResult
    func share(with others: Person..., change: (inout ShareOptions) -> Void = { _ in }) throws -> ShareReport {
      var options = ShareOptions()
      change(&options)
      let report = try database.share(
        ShareScope(name: "all") { SharedTable("note") },
        to: others.map { try ShareRecipient(home.contact(named: $0.name)) },
        output: .folder(folder.file("from \(name)")),
        options: options, signedBy: home.identity())
      for delivery in report.files {
        let path = try #require(delivery.path)
        let file = path.split(separator: "/").last.map(String.init) ?? ""
        for other in others {
          try folder.makeFolder("for \(other.name)")
          _ = try folder.write(fileBytes(path), to: "for \(other.name)/\(file)")
        }
      }
      return report
    }

    @discardableResult
    func receive(copies: CopyPolicy = .ask) throws -> [DiffOutcome] {
      try folder.makeFolder("for \(name)")
      var options = ApplyOptions()
      options.copies = copies
      options.conflicts = [.otherwise: policy]
      return try database.processInboundChanges([folder.file("for \(name)")], options: options).diffs
    }

    var notes: [String] {
      get throws { try TestDatabases.texts("SELECT title, body FROM note ORDER BY 1, 2", on: path) }
    }
  }

  /// Makes people who trust each other.
  ///
  /// - Parameter key: The type of the table's key.
  private func people(
    _ names: [String] = ["anna", "ben"], key: String = "INTEGER", _ policy: ConflictPolicy = .keepLocal,
    hasClocks: Bool = false
  ) throws -> [Person] {
    let folder = try TemporaryFolder()
    let people = names.map { Person(name: $0, folder: folder, policy: policy) }
    for person in people {
      try person.home.makeIdentity(named: person.name)
      try person.run("CREATE TABLE note(id \(key) PRIMARY KEY, title TEXT, body TEXT)")
      if hasClocks {
        try person.database.initialize()
        try person.database.keepClocks()
      }
    }
    for person in people {
      for other in people where other.name != person.name {
        let card = try other.home.identity().card
        try person.home.addContact(card.text)
        try person.home.trustContact(other.name, fingerprint: card.fingerprint)
      }
    }
    return people
  }

  private static let notes = "INSERT INTO note VALUES (1,'one','x'), (2,'two','x'), (3,'three','x')"

  @Test(arguments: ["INTEGER", "TEXT"], [ConflictPolicy.keepLocal, .takeIncoming, .latest])
  func `a deletion and an edit made before the first share reach the sender`(key: String, policy: ConflictPolicy)
    throws
  {
    for hasClocks in [false, true] {
      let people = try people(key: key, policy, hasClocks: hasClocks)
      let (anna, ben) = (people[0], people[1])
      try anna.run(Self.notes)
      try anna.share(with: ben)
      try ben.receive()
      try ben.run("DELETE FROM note WHERE title = 'two'; UPDATE note SET title = 'THREE' WHERE title = 'three'")
      try ben.share(with: anna)
      #expect(try anna.receive().map(\.conflicts) == [0])
      #expect(try anna.notes == ["THREE|x", "one|x"])
      #expect(try ben.notes == anna.notes)
      // Nothing is left to send.
      #expect(try anna.share(with: ben).id == nil)
      try ben.receive()
      #expect(try ben.share(with: anna).id == nil)
    }
  }

  @Test(arguments: ["INTEGER", "TEXT"], [ConflictPolicy.keepLocal, .takeIncoming, .latest])
  func `a restored database gets back what its owner had shared since the backup`(key: String, policy: ConflictPolicy)
    throws
  {
    for hasClocks in [false, true] {
      let people = try people(key: key, policy, hasClocks: hasClocks)
      let (anna, ben) = (people[0], people[1])
      try anna.run(Self.notes)
      try anna.share(with: ben)
      try ben.receive()
      try ben.run("INSERT INTO note VALUES (10,'ten','x')")
      try ben.share(with: anna)
      try anna.receive()
      let backup = try fileBytes(anna.path)
      try anna.run(
        """
        UPDATE note SET title = 'ONE' WHERE title = 'one'; DELETE FROM note WHERE title = 'two';
        INSERT INTO note VALUES (4,'four','x')
        """)
      try anna.share(with: ben)
      try ben.run("UPDATE note SET body = 'y' WHERE title = 'ten'")
      try ben.receive()
      try ben.share(with: anna)
      try anna.receive()
      try anna.folder.write(backup, to: "anna.sqlite")
      try FileManager.default.removeItem(atPath: anna.folder.file("for anna"))
      // The integer key 4 is assigned again.
      try anna.run(
        """
        UPDATE note SET title = 'THREE' WHERE title = 'three';
        INSERT INTO note VALUES (\(key == "TEXT" ? 5 : 4),'five','x')
        """)
      try anna.share(with: ben)
      #expect(try ben.receive().map(\.conflicts) == [0])
      let all = ["ONE|x", "THREE|x", "five|x", "four|x", "ten|y"]
      #expect(try ben.notes == all)
      #expect(try ben.share(with: anna).isSnapshot)
      #expect(try anna.receive().map(\.conflicts) == [0])
      #expect(try anna.notes == all)
      try anna.run("DELETE FROM note WHERE title = 'four'; UPDATE note SET body = 'z' WHERE title = 'ONE'")
      try anna.share(with: ben)
      try ben.receive()
      #expect(try ben.notes == ["ONE|z", "THREE|x", "five|x", "ten|y"])
      #expect(try ben.share(with: anna).id == nil)
    }
  }

  @Test(arguments: ["INTEGER", "TEXT"])
  func `edits of different columns before the first share are merged`(key: String) throws {
    let people = try people(key: key)
    let (anna, ben) = (people[0], people[1])
    try anna.run(Self.notes)
    try anna.share(with: ben)
    try ben.receive()
    try anna.run("UPDATE note SET title = 'uno' WHERE title = 'one'")
    try anna.share(with: ben)
    try ben.run("UPDATE note SET body = 'of ben' WHERE title = 'one'")
    try ben.share(with: anna)
    #expect(try anna.receive().map(\.conflicts) == [0])
    #expect(try ben.receive().map(\.conflicts) == [0])
    #expect(try anna.notes == ["three|x", "two|x", "uno|of ben"])
    #expect(try ben.notes == anna.notes)
  }

  @Test(arguments: ["INTEGER", "TEXT"])
  func `a deletion in a share with several recipients reaches the author of the row`(key: String) throws {
    let people = try people(["anna", "ben", "cara"], key: key)
    let (anna, ben, cara) = (people[0], people[1], people[2])
    try ben.run("INSERT INTO note VALUES (9,'of ben','x')")
    try ben.share(with: anna, cara)
    try anna.run(Self.notes)
    try anna.share(with: ben, cara)
    try ben.receive()
    try cara.receive()
    try ben.run("DELETE FROM note WHERE title = 'two'")
    try ben.share(with: anna, cara)
    try anna.receive()
    try cara.receive()
    for person in people { #expect(try person.notes == ["of ben|x", "one|x", "three|x"]) }
  }

  @Test func `a row that an undo has removed before the first share stays at its author`() throws {
    let people = try people()
    let (anna, ben) = (people[0], people[1])
    try anna.run("INSERT INTO note VALUES (1, 'a', 'anna')")
    try anna.share(with: ben)
    let diff = try #require(try ben.receive().first?.id)
    _ = try ben.database.undo([.diff("\(diff)")])
    #expect(try ben.notes == [])
    #expect(try ben.share(with: anna).tables.reduce(0) { $0 + $1.deleted } == 0)
    try anna.receive()
    #expect(try anna.notes == ["a|anna"])
  }

  @Test(arguments: [ConflictPolicy.takeIncoming, .latest])
  func `a third person's row is not mistaken for a deleted row with its key`(policy: ConflictPolicy) throws {
    let people = try people(["anna", "ben", "cara"], policy, hasClocks: true)
    let (anna, ben, cara) = (people[0], people[1], people[2])
    try ben.run("INSERT INTO note VALUES (1, 'b', 'ben')")
    try ben.share(with: anna)
    try ben.run("DELETE FROM note")
    try cara.run("INSERT INTO note VALUES (1, 'c', 'cara')")
    for _ in 0..<4 {
      for person in people { for other in people where other.name != person.name { try person.share(with: other) } }
      for person in people { try person.receive() }
    }
    for person in people { #expect(try person.notes == ["c|cara"]) }
  }

  @Test func `a row that a constraint refused is not deleted at its author`() throws {
    let people = try people(key: "TEXT")
    let (anna, ben) = (people[0], people[1])
    for person in people { try person.run("CREATE UNIQUE INDEX titles ON note(title)") }
    try anna.run("INSERT INTO note VALUES ('a','same','of anna')")
    try ben.run("INSERT INTO note VALUES ('b','same','of ben')")
    try anna.share(with: ben)
    #expect(try ben.receive().map(\.conflicts) == [1])
    try ben.share(with: anna)
    try anna.receive()
    #expect(try anna.notes == ["same|of anna"])
  }

  @Test func `a resync does not bring back a row that its recipient has deleted`() throws {
    let people = try people()
    let (anna, ben) = (people[0], people[1])
    try anna.run(Self.notes)
    try anna.share(with: ben)
    try ben.receive()
    try ben.run("DELETE FROM note WHERE title = 'two'")
    try anna.share(with: ben) { $0.resyncs = true }
    try ben.receive()
    #expect(try ben.notes == ["one|x", "three|x"])
    try ben.share(with: anna)
    try anna.receive()
    #expect(try anna.notes == ben.notes)
  }

  @Test(arguments: ["INTEGER", "TEXT"])
  func `rows that copies of a dataset began with are the same rows`(key: String) throws {
    let people = try people(key: key)
    let (anna, ben) = (people[0], people[1])
    try anna.run(Self.notes)
    try anna.database.beginDataset()
    try ben.copy(anna)
    try anna.run("UPDATE note SET title = 'uno' WHERE title = 'one'; DELETE FROM note WHERE title = 'two'")
    try ben.run("UPDATE note SET body = 'of ben' WHERE title IN ('one', 'three')")
    for _ in 0..<2 {
      try anna.share(with: ben)
      try ben.share(with: anna)
      try anna.receive()
      try ben.receive()
    }
    #expect(try anna.notes == ["three|of ben", "uno|of ben"])
    #expect(try ben.notes == anna.notes)
    #expect(try anna.database.conflicts().isEmpty && ben.database.conflicts().isEmpty)
  }

  @Test(arguments: ["INTEGER", "TEXT"], [ConflictPolicy.keepLocal, .takeIncoming, .latest])
  func `a row of a dataset that was deleted before the first share stays deleted`(key: String, policy: ConflictPolicy)
    throws
  {
    let people = try people(["anna", "ben", "cara"], key: key, policy)
    let (anna, ben, cara) = (people[0], people[1], people[2])
    try anna.run(Self.notes)
    try anna.database.beginDataset()
    for other in [ben, cara] {
      try other.copy(anna)
    }
    try anna.run("DELETE FROM note WHERE title = 'two'")
    for _ in 0..<3 {
      try anna.share(with: ben, cara)
      try ben.share(with: anna, cara)
      try cara.share(with: anna, ben)
      for person in people { try person.receive() }
    }
    for person in people { #expect(try person.notes == ["one|x", "three|x"], "\(person.name)") }
  }

  @Test(arguments: ["INTEGER", "TEXT"], [ConflictPolicy.keepLocal, .takeIncoming, .latest])
  func `a first share from a copy does not bring back a row whose deletion crosses it`(
    key: String, policy: ConflictPolicy
  ) throws {
    for hasClocks in [false, true] {
      let people = try people(key: key, policy)
      let (anna, ben) = (people[0], people[1])
      try anna.run(Self.notes)
      try ben.copy(anna)
      if hasClocks { for person in people { try person.database.keepClocks() } }
      try ben.share(with: anna)
      try ben.run("DELETE FROM note WHERE title = 'two'")
      for _ in 0..<3 {
        try anna.share(with: ben)
        try ben.share(with: anna)
        for person in people { try person.receive(copies: .same) }
      }
      // With clocks and another policy than keep-local, the later diff of the two counts.
      if !hasClocks || policy == .keepLocal { #expect(try anna.notes == ["one|x", "three|x"]) }
      #expect(try ben.notes == anna.notes)
    }
  }

  @Test(arguments: ["INTEGER", "TEXT", "TEXT with NULL"], [ConflictPolicy.keepLocal, .takeIncoming, .latest])
  func `a backup from before the first share gets back what was shared since`(key: String, policy: ConflictPolicy)
    throws
  {
    let isKeyless = key.hasSuffix("NULL")
    let people = try people(key: isKeyless ? "TEXT" : key, policy)
    let (anna, ben) = (people[0], people[1])
    try anna.run("INSERT INTO note VALUES (\(isKeyless ? "NULL" : "1"), 'one', 'x')")
    let backup = try fileBytes(anna.path)
    try anna.run("INSERT INTO note VALUES (\(isKeyless ? "NULL" : "2"), 'two', 'x')")
    try anna.share(with: ben)
    try ben.receive()
    try anna.folder.write(backup, to: "anna.sqlite")
    for _ in 0..<3 {
      try anna.share(with: ben)
      try ben.receive()
      try ben.share(with: anna)
      try anna.receive()
    }
    for person in people { #expect(try person.notes == ["one|x", "two|x"], "\(person.name)") }
    try anna.run("DELETE FROM note WHERE title = 'two'")
    try anna.share(with: ben)
    try ben.receive()
    #expect(try ben.notes == ["one|x"])
    #expect(try ben.share(with: anna).id == nil)
  }

  @Test(arguments: [ConflictPolicy.keepLocal, .takeIncoming, .latest])
  func `a row without a key that is added again after its author deleted it reaches the author`(
    policy: ConflictPolicy
  ) throws {
    let people = try people(key: "TEXT", policy)
    let (anna, ben) = (people[0], people[1])
    let row = "INSERT INTO note VALUES (NULL, 'one', 'x')"
    try anna.run(row)
    try anna.share(with: ben)
    try ben.receive()
    try anna.run("UPDATE note SET title = 'two'")
    try ben.share(with: anna)
    try anna.share(with: ben)
    try ben.receive()
    try ben.run(row)
    try ben.share(with: anna)
    try anna.receive()
    for person in people { #expect(try person.notes == ["one|x", "two|x"], "\(person.name)") }
    #expect(try anna.share(with: ben).id == nil)
    #expect(try ben.share(with: anna).id == nil)
  }

  @Test func `a row that two copies have deleted stays deleted although one had shared an edit of it`() throws {
    let people = try people(key: "TEXT")
    let (anna, ben) = (people[0], people[1])
    try anna.run(Self.notes)
    try ben.copy(anna)
    try anna.run("UPDATE note SET body = 'edited' WHERE title = 'two'")
    try anna.share(with: ben)
    try anna.run("DELETE FROM note WHERE title = 'two'")
    try ben.share(with: anna)
    try anna.receive(copies: .same)
    #expect(try anna.notes == ["one|x", "three|x"])
    try ben.run("DELETE FROM note WHERE title = 'two'")
    for _ in 0..<3 {
      try anna.share(with: ben)
      try ben.share(with: anna)
      for person in people { try person.receive(copies: .same) }
    }
    for person in people { #expect(try person.notes == ["one|x", "three|x"], "\(person.name)") }
    // The edit crossed Ben's deletion.
    let values = try ben.database.conflicts().flatMap { $0.incoming ?? [] }.map(\.value)
    #expect(values.contains(.text("edited")))
  }

  @Test(arguments: ["INTEGER", "TEXT"], [ConflictPolicy.keepLocal, .takeIncoming, .latest])
  func `an edit that crosses a deletion is in a row or a conflict`(key: String, policy: ConflictPolicy) throws {
    let people = try people(["anna", "ben", "cara"], key: key, policy)
    let (anna, ben, cara) = (people[0], people[1], people[2])
    try anna.run(Self.notes)
    for other in [ben, cara] {
      try anna.share(with: other)
      try other.receive()
    }
    try ben.run("DELETE FROM note WHERE title = 'two'")
    try cara.run("UPDATE note SET body = 'of cara' WHERE title = 'two'")
    try ben.share(with: anna)
    try cara.share(with: anna)
    try anna.receive()
    // The order of the two files is open.
    let values = try anna.database.conflicts().flatMap { ($0.local ?? []) + ($0.incoming ?? []) }.map(\.value)
    #expect(try anna.notes.contains("two|of cara") || values.contains(.text("of cara")))
  }

  @Test(arguments: [ConflictPolicy.keepLocal, .takeIncoming])
  func `an edit wins over a later share of the unedited row`(policy: ConflictPolicy) throws {
    let people = try people(["anna", "ben", "cara"], policy)
    let (anna, ben, cara) = (people[0], people[1], people[2])
    try anna.run("INSERT INTO note VALUES (1, 'one', 'x')")
    // Anna's row has another key there.
    try cara.run("INSERT INTO note VALUES (1, 'two', 'y')")
    try anna.share(with: ben)
    try ben.receive()
    try ben.run("UPDATE note SET body = 'of ben'")
    try ben.share(with: anna)
    try anna.share(with: cara)
    try ben.share(with: cara)
    for _ in 0..<3 {
      for person in people { try person.receive() }
      for person in people {
        for other in people where other.name != person.name { try person.share(with: other) }
      }
    }
    for person in people {
      #expect(try person.notes == ["one|of ben", "two|y"], "\(person.name)")
    }
  }

  @Test(arguments: ["INTEGER", "TEXT"], [ConflictPolicy.keepLocal, .takeIncoming, .latest])
  func `a relayed row stays deleted when its author has deleted it, too`(key: String, policy: ConflictPolicy) throws {
    let people = try people(["anna", "ben", "cara"], key: key, policy)
    let (anna, ben, cara) = (people[0], people[1], people[2])
    try anna.run(Self.notes)
    for other in [ben, cara] {
      try other.copy(anna)
    }
    try ben.run("INSERT INTO note VALUES (4, 'four', 'x')")
    try cara.share(with: anna, ben)
    try ben.share(with: anna, cara)
    for person in [anna, cara] { try person.receive(copies: .same) }
    try anna.run("DELETE FROM note WHERE title = 'four'")
    try anna.share(with: ben, cara)
    try ben.receive(copies: .same)
    try ben.share(with: anna, cara)
    try cara.share(with: anna, ben)
    for _ in 0..<3 {
      for person in people { try person.receive(copies: .same) }
      try anna.share(with: ben, cara)
      try ben.share(with: anna, cara)
      try cara.share(with: anna, ben)
    }
    for person in people { #expect(try person.notes == ["one|x", "three|x", "two|x"], "\(person.name)") }
  }

  @Test(arguments: ["INTEGER", "TEXT"], [ConflictPolicy.keepLocal, .takeIncoming, .latest])
  func `a row with an unsent deletion stays deleted when another person relays the row`(
    key: String, policy: ConflictPolicy
  ) throws {
    for hasClocks in [false, true] {
      let people = try people(["anna", "ben", "cara"], key: key, policy, hasClocks: hasClocks)
      let (anna, ben, cara) = (people[0], people[1], people[2])
      try anna.run("INSERT INTO note VALUES (1, 'one', 'x')")
      for other in [ben, cara] {
        try anna.share(with: other)
        try other.receive()
      }
      try cara.run("DELETE FROM note")
      try ben.share(with: anna, cara)
      try cara.receive()
      #expect(try cara.notes == [])
      for _ in 0..<2 {
        try cara.share(with: anna, ben)
        for person in people { try person.receive() }
        try anna.share(with: ben, cara)
        try ben.share(with: anna, cara)
      }
      for person in people { #expect(try person.notes == [], "\(person.name)") }
    }
  }

  @Test(arguments: ["INTEGER", "TEXT"], [ConflictPolicy.keepLocal, .takeIncoming, .latest])
  func `a row of a copy stays deleted when another copy shares for the first time`(key: String, policy: ConflictPolicy)
    throws
  {
    for isTold in [false, true] {
      let people = try people(["anna", "ben", "cara"], key: key, policy, hasClocks: !isTold)
      let (anna, ben, cara) = (people[0], people[1], people[2])
      try anna.run(Self.notes)
      for other in [ben, cara] { try other.copy(anna) }
      try cara.share(with: ben)
      try cara.run("DELETE FROM note WHERE title = 'one'")
      if isTold { try cara.share(with: ben) }
      try anna.share(with: cara)
      try cara.receive(copies: .same)
      #expect(try cara.notes == ["three|x", "two|x"])
      for _ in 0..<3 {
        try cara.share(with: anna)
        try cara.share(with: ben)
        for person in people { try person.receive(copies: .same) }
        try anna.share(with: ben)
        try ben.share(with: anna)
      }
      for person in people { #expect(try person.notes == ["three|x", "two|x"], "\(person.name)") }
    }
  }

  @Test(arguments: [ConflictPolicy.keepLocal, .takeIncoming, .latest], [false, true])
  func `a row does not get the key of an edited and deleted row`(policy: ConflictPolicy, hasClocks: Bool) throws {
    let people = try people(["anna", "ben"], policy, hasClocks: hasClocks)
    let (anna, ben) = (people[0], people[1])
    try ben.share(with: anna)
    try anna.run("INSERT INTO note VALUES (1, 'one', 'x')")
    try anna.share(with: ben)
    try ben.receive()
    try ben.run("UPDATE note SET body = 'of ben'")
    try ben.share(with: anna)
    try ben.run("INSERT INTO note VALUES (2, 'two', 'y')")
    try ben.share(with: anna)
    try anna.run("DELETE FROM note")
    try anna.share(with: ben)
    try ben.share(with: anna) { $0.resyncs = true }
    for _ in 0..<3 {
      for person in people { try person.receive() }
      try anna.share(with: ben)
      try ben.share(with: anna)
    }
    for person in people {
      #expect(try person.notes.filter { $0.hasPrefix("two") } == ["two|y"], "\(person.name)")
    }
  }

  @Test(arguments: [ConflictPolicy.keepLocal, .takeIncoming, .latest])
  func `a row that was relayed before its author shared it is one row`(_ policy: ConflictPolicy) throws {
    let people = try people(["anna", "ben", "cara"], policy)
    let (anna, ben, cara) = (people[0], people[1], people[2])
    try ben.run("INSERT INTO note VALUES (1, 'one', 'x')")
    try ben.share(with: cara)
    try cara.receive()
    try ben.run("UPDATE note SET title = 'uno', body = 'y'")
    try cara.share(with: anna, ben)
    try anna.receive()
    try ben.share(with: anna, cara)
    for _ in 0..<3 {
      for person in people { try person.receive() }
      try anna.share(with: ben, cara)
      try ben.share(with: anna, cara)
      try cara.share(with: anna, ben)
    }
    for person in people { #expect(try person.notes.count == 1, "\(person.name)") }
  }

  @Test(arguments: [ConflictPolicy.keepLocal, .takeIncoming, .latest])
  func `an edit by a recipient finds a row whose key its author has respelled`(_ policy: ConflictPolicy) throws {
    let people = try people(key: "TEXT COLLATE NOCASE", policy)
    let (anna, ben) = (people[0], people[1])
    try anna.run("INSERT INTO note VALUES ('a', 'one', 'x')")
    try ben.share(with: anna)
    try anna.share(with: ben)
    try anna.run("UPDATE note SET id = 'A'")
    try anna.share(with: ben)
    try ben.receive()
    try ben.run("UPDATE note SET body = 'of ben'")
    try ben.share(with: anna)
    #expect(try anna.receive().flatMap(\.warnings).isEmpty)
    #expect(try anna.notes == ["one|of ben"])
  }

  @Test(arguments: [CopyPolicy.same, .apart])
  func `a person decides if the rows of a suspected copy are the same rows`(_ answer: CopyPolicy) throws {
    let people = try people()
    let (anna, ben) = (people[0], people[1])
    try anna.run(Self.notes + ", (5,'five','x')")
    try ben.copy(anna)
    try ben.run("UPDATE note SET title = 'TWO' WHERE title = 'two'; INSERT INTO note VALUES (4, 'four', 'ben')")
    try anna.run("INSERT INTO note VALUES (4, 'vier', 'anna')")
    try anna.share(with: ben)
    let asked = try ben.receive()
    #expect(asked.map(\.state) == [.rejected])
    #expect(asked.map(\.code) == [.fromCopy])
    #expect(asked.first?.reason?.contains("--copies same") == true)
    #expect(try ben.notes == ["TWO|x", "five|x", "four|ben", "one|x", "three|x"])
    #expect(try ben.receive(copies: answer).map(\.state) == [.applied])
    for _ in 0..<2 {
      try ben.share(with: anna)
      try anna.receive()
      try anna.share(with: ben)
      try ben.receive()
    }
    #expect(try anna.notes.count == (answer == .same ? 6 : 7))
    #expect(try ben.notes.filter { $0.hasPrefix("one") } == ["one|x"])
    #expect(try ben.notes.filter { $0.hasPrefix("vier") || $0.hasPrefix("four") } == ["four|ben", "vier|anna"])
  }

  @Test(arguments: [ConflictPolicy.keepLocal, .takeIncoming, .latest], [false, true])
  func `a row that was added after the first share is not the copy's row with its key`(
    policy: ConflictPolicy, hasClocks: Bool
  ) throws {
    let people = try people(key: "INTEGER", policy)
    let (anna, ben) = (people[0], people[1])
    try anna.run(Self.notes)
    try ben.copy(anna)
    if hasClocks { for person in people { try person.database.keepClocks() } }
    try anna.share(with: ben)
    try anna.run("INSERT INTO note VALUES (4, 'four', 'same')")
    try ben.run("INSERT INTO note VALUES (4, 'vier', 'same')")
    for _ in 0..<3 {
      try anna.share(with: ben)
      try ben.share(with: anna)
      try anna.receive(copies: .same)
      try ben.receive(copies: .same)
    }
    for person in people {
      #expect(try person.notes == ["four|same", "one|x", "three|x", "two|x", "vier|same"], "\(person.name)")
    }
  }

  @Test(arguments: ["INTEGER", "TEXT"])
  func `people who use take-incoming end with the same one of their crossing edits`(key: String) throws {
    let people = try people(["anna", "ben", "cleo"], key: key, .takeIncoming)
    try people[0].run(Self.notes)
    func exchange() throws {
      for one in people {
        for other in people where other.name != one.name { try one.share(with: other) }
      }
      for person in people { try person.receive() }
    }
    try exchange()
    try exchange()
    for person in people {
      try person.run("UPDATE note SET title = '\(person.name)' WHERE body = 'x' AND title LIKE 't%'")
    }
    for _ in 0..<4 { try exchange() }
    #expect(try people[0].notes.count == 3)
    for person in people.dropFirst() { #expect(try person.notes == people[0].notes) }
    for one in people {
      for other in people where other.name != one.name { #expect(try one.share(with: other).id == nil) }
    }
  }

  @Test(arguments: ["INTEGER", "TEXT"])
  func `people who both resolve a conflict with the incoming version end with the same row`(key: String) throws {
    let people = try people(key: key)
    let (anna, ben) = (people[0], people[1])
    func exchange() throws {
      try anna.share(with: ben)
      try ben.share(with: anna)
      try anna.receive()
      try ben.receive()
    }
    try anna.run(Self.notes)
    try exchange()
    try exchange()
    for person in people { try person.run("UPDATE note SET title = '\(person.name)' WHERE title = 'one'") }
    try exchange()
    for person in people {
      let open = try person.database.conflicts().filter(\.isOpen).map(\.id)
      #expect(open.count == 1)
      _ = try person.database.resolve(open, taking: .incoming)
    }
    for _ in 0..<3 { try exchange() }
    #expect(try anna.notes == ben.notes)
    #expect(try anna.notes.contains("anna|x") != anna.notes.contains("ben|x"))
    #expect(try anna.share(with: ben).id == nil && ben.share(with: anna).id == nil)
  }

  @Test(arguments: ["INTEGER", "TEXT"])
  func `the diffs of a copy and of the original's stream are both applied`(key: String) throws {
    let people = try people(key: key)
    let (anna, ben) = (people[0], people[1])
    try anna.run("INSERT INTO note VALUES (1,'one','x')")
    try anna.share(with: ben)
    try ben.receive()
    let copy = Person(name: "copy", folder: anna.folder, policy: .keepLocal)
    try FileManager.default.copyItem(atPath: anna.path, toPath: copy.path)
    try FileManager.default.copyItem(atPath: anna.home.path, toPath: copy.home.path)
    try anna.run("INSERT INTO note VALUES (2,'two','x')")
    try anna.share(with: ben)
    try copy.run("INSERT INTO note VALUES (3,'three','x'); UPDATE note SET title = 'uno' WHERE id = 1")
    try copy.share(with: ben)
    try anna.run("INSERT INTO note VALUES (4,'four','x')")
    try anna.share(with: ben)
    #expect(try ben.receive().map(\.state) == [.applied, .applied, .applied])
    #expect(try ben.notes == ["four|x", "three|x", "two|x", "uno|x"])
  }
}
