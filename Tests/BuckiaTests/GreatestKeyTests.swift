import Buckia
import BuckiaFormat
import TestSupport
import Testing

/// A trusted contact uses keys near the greatest integer.
@Suite struct GreatestKeyTests {
  private static let notes = ShareScope(name: "notes") { SharedTable("note") }

  private let folder: TemporaryFolder
  private let anna: HostileContact
  private let mallory: HostileContact

  init() throws {
    folder = try TemporaryFolder()
    anna = try HostileContact("anna", in: folder, "")
    mallory = try HostileContact("mallory", in: folder, "")
    try anna.meet(mallory)
  }

  private func make(_ schema: String) throws {
    for person in [anna, mallory] {
      try person.run("CREATE TABLE note(id \(schema), text); INSERT INTO note VALUES (1, 'of \(person.name)')")
    }
  }

  private static let greatKeys: [Int64] = [.max, .max - 1 << 32, 1 << 62, (1 << 62) - 1]

  @Test(arguments: ["", " AUTOINCREMENT"].flatMap { schema in greatKeys.map { (schema, $0) } }, [false, true])
  func `a contact's row with a very large key leaves free keys for colliding rows and for the app`(
    _ table: (String, Int64), isLatest: Bool
  ) throws {
    let policies: ConflictPolicies = isLatest ? .latest : .keepLocal
    try make("INTEGER PRIMARY KEY\(table.0)")
    try mallory.run("INSERT INTO note VALUES (\(table.1), 'great')")
    try mallory.share(Self.notes, with: anna)
    #expect(try anna.receive(policies).map(\.state) == [.applied])
    #expect(try anna.rows("SELECT text FROM note ORDER BY text") == ["great", "of anna", "of mallory"])
    #expect(try anna.rows("SELECT text FROM note WHERE id = 1") == ["of anna"])
    #expect(try anna.rows("SELECT max(id) <= \(Int64.max - 1 << 32) FROM note") == ["1"])
    try anna.run("INSERT INTO note(text) VALUES ('later')")
    // Later changes of the contact find that row.
    try mallory.run("UPDATE note SET text = 'greater' WHERE id = \(table.1); INSERT INTO note VALUES (2, 'second')")
    try mallory.share(Self.notes, with: anna)
    #expect(try anna.receive(policies).map(\.state) == [.applied])
    #expect(
      try anna.rows("SELECT text FROM note ORDER BY text") == ["greater", "later", "of anna", "of mallory", "second"])
  }

  @Test(arguments: [ConflictPolicies.keepLocal, .takeIncoming, .latest])
  func `a very large origin key that a contact names leaves free keys`(_ policies: ConflictPolicies) throws {
    try make("INTEGER PRIMARY KEY")
    let elsewhere = try #require(ReplicaID(hex: String(repeating: "ab", count: 16)))
    try mallory.share(Self.notes, with: anna) {
      let names = RowKeys.Names(replica: 0, keys: [Int64.max - 1])
      let keys = RowKeys(replicas: [elsewhere], runs: [RowKeys.Run(count: 1, names: [names])])
      $0.annotations = Annotations(origins: [], runs: [], keys: keys)
    }
    #expect(try anna.receive(policies).map(\.state) == [.applied])
    #expect(try anna.rows("SELECT text FROM note ORDER BY text") == ["of anna", "of mallory"])
    for (person, key) in [(anna, 20), (mallory, 20), (anna, 21)] {
      try person.run("INSERT INTO note VALUES (\(key), '\(key) of \(person.name)')")
    }
    try mallory.share(Self.notes, with: anna)
    #expect(try anna.receive(policies).map(\.state) == [.applied])
    #expect(
      try anna.rows("SELECT text FROM note ORDER BY text")
        == ["20 of anna", "20 of mallory", "21 of anna", "of anna", "of mallory"])
    try anna.run("INSERT INTO note(text) VALUES ('later')")
    #expect(try anna.rows("SELECT count(*), max(id) < 100 FROM note") == ["6|1"])
  }

  @Test func `random keys of 63 bits stay unchanged`() throws {
    try make("INTEGER PRIMARY KEY")
    let keys = "1 << 62, (1 << 62) + 5, 7234567890123456789, 9123456789012345678, 8000000000000000000, 1700000000000"
    try mallory.run("DELETE FROM note; INSERT INTO note SELECT value, 'x' || value FROM json_each(json_array(\(keys)))")
    try anna.run("INSERT INTO note VALUES (3, 'of anna'), (8888888888888888888, 'of anna, too')")
    try mallory.share(Self.notes, with: anna)
    try anna.receive()
    #expect(try anna.rows("SELECT count(*) FROM note WHERE text = 'x' || id") == ["6"])
  }
}
