import Buckia
import SQLiteChangesets
import TestSupport
import Testing

@testable import BuckiaFormat

/// A trusted contact states how many rows without a key other replicas have inserted and deleted.
@Suite struct HostileCountsTests {
  private static let all = ShareScope(name: "all") { SharedTable("note") }
  private static let schema = "CREATE TABLE note(title, body);"

  private let folder: TemporaryFolder
  private let anna: HostileContact
  private let ben: HostileContact
  private let mallory: HostileContact

  init() throws {
    folder = try TemporaryFolder()
    anna = try HostileContact("anna", in: folder, Self.schema)
    ben = try HostileContact("ben", in: folder, Self.schema + "INSERT INTO note VALUES ('first', 1)")
    mallory = try HostileContact("mallory", in: folder, Self.schema)
    for contact in [ben, mallory] { try anna.meet(contact) }
    for person in [anna, ben, mallory] { try DatabaseManager(person.path, home: person.home).initialize() }
    try ben.share(Self.all, with: anna)
    try anna.receive()
  }

  private func incarnation(of person: HostileContact) throws -> ReplicaID {
    let ids = try person.rows("SELECT lower(hex(value)) FROM buckia_settings WHERE name = 'incarnation'")
    let id = try #require(ids.first)
    return try #require(ReplicaID(hex: id))
  }

  /// Sends an INSERT of a row, or a DELETE, with counts.
  private func claim(
    _ copies: [(ReplicaID, inserted: Int64, deleted: Int64)], of body: Int64 = 2, deletes: Bool = false,
    to other: HostileContact
  ) throws {
    // The changes of this share are replaced.
    try mallory.run("INSERT INTO note VALUES ('other', random())")
    let row: [ChangesetValue?] = [.null, .text("meeting"), .integer(body)]
    let changes = ChangesetWriter(
      "note", key: [1, 0, 0],
      [(deletes ? .delete : .insert, old: deletes ? row : [], new: deletes ? [] : row)])
    try mallory.share(Self.all, with: other, changes: changes) {
      $0.annotations = Annotations(
        origins: [], runs: [],
        keys: RowKeys(
          replicas: copies.map(\.0),
          runs: [
            RowKeys.Run(
              count: 1,
              names: copies.indices.map {
                RowKeys.Names(
                  replica: $0, copies: RowKeys.Copies(inserted: copies[$0].inserted, deleted: copies[$0].deleted))
              })
          ]))
    }
    #expect(try other.receive().map(\.state) == [.applied])
  }

  private func meetings(_ person: HostileContact) throws -> Int {
    try person.rows("SELECT 1 FROM note WHERE title = 'meeting'").count
  }

  @Test(arguments: [(1, 1), (7, 7), (1 << 40, 1 << 40)] as [(Int64, Int64)], [false, true])
  func `rows arrive even if another contact has claimed their deletion in advance`(
    _ claimed: (inserted: Int64, deleted: Int64), deletes: Bool
  ) throws {
    let bens = try incarnation(of: ben)
    for count in 1...3 {
      try claim([(bens, claimed.inserted, claimed.deleted)], deletes: deletes, to: anna)
      #expect(try meetings(anna) == 0)
      try ben.run("DELETE FROM note WHERE title = 'meeting'")
      try ben.share(Self.all, with: anna)
      try anna.receive()
      for _ in 0..<count { try ben.run("INSERT INTO note VALUES ('meeting', 2)") }
      try ben.share(Self.all, with: anna)
      try anna.receive()
      #expect(try meetings(anna) == count)
      try anna.share(Self.all, with: ben)
      try ben.receive()
      #expect(try meetings(ben) == count)
      // Deleted rows stay deleted.
      try anna.run("DELETE FROM note WHERE title = 'meeting'")
      try anna.share(Self.all, with: ben)
      try ben.receive()
      #expect(try meetings(ben) == 0)
      try ben.share(Self.all, with: anna)
      try anna.receive()
      #expect(try meetings(anna) == 0)
    }
  }

  @Test func `a person who has received false counts does not relay them`() throws {
    let cleo = try HostileContact("cleo", in: folder, Self.schema)
    for contact in [anna, ben] { try cleo.meet(contact) }
    try claim([(incarnation(of: ben), 1 << 40, 1 << 40)], to: anna)
    try anna.run("INSERT INTO note VALUES ('meeting', 2)")
    try anna.share(Self.all, with: cleo)
    try cleo.receive()
    #expect(try meetings(cleo) == 1)
    try ben.run("INSERT INTO note VALUES ('meeting', 2)")
    try ben.share(Self.all, with: cleo)
    try cleo.receive()
    #expect(try meetings(cleo) == 2)
    for _ in 0..<3 {
      try cleo.share(Self.all, with: anna)
      try cleo.share(Self.all, with: ben)
      try ben.share(Self.all, with: anna)
      try anna.share(Self.all, with: ben)
      try anna.share(Self.all, with: cleo)
      for person in [anna, ben, cleo] { try person.receive() }
    }
    for person in [anna, ben, cleo] { #expect(try meetings(person) == 2) }
    #expect(try anna.share(Self.all, with: cleo).id == nil)
  }

  @Test func `claimed counts of many replicas add only a few rows, and delete no rows of others`() throws {
    try ben.run("INSERT INTO note VALUES ('meeting', 2)")
    try ben.share(Self.all, with: anna)
    try anna.receive()
    try claim((0..<40).map { (ReplicaID(checked: Array(repeating: $0 * 6, count: 16)), 1, 0) }, to: anna)
    #expect(try meetings(anna) == 17)
    try anna.run("INSERT INTO note VALUES ('meeting', 2)")
    for _ in 0..<2 {
      try anna.share(Self.all, with: ben)
      try ben.receive()
      try ben.share(Self.all, with: anna)
      try anna.receive()
    }
    #expect(try meetings(anna) == 18)
    #expect(try meetings(ben) == 18)
    #expect(
      try anna.rows(
        """
        SELECT deleted FROM buckia_counted_copies
        JOIN buckia_settings ON value = origin AND name = 'incarnation' WHERE deleted > 0
        """) == [])
  }

  @Test(arguments: [false, true])
  func `a contact's counts of rows that were inserted here are ignored`(_ deletes: Bool) throws {
    let annas = try incarnation(of: anna)
    try claim([(annas, 1 << 40, 1 << 40)], deletes: deletes, to: anna)
    try anna.run("INSERT INTO note VALUES ('meeting', 2)")
    try claim([(annas, 1 << 40, 0)], to: anna)
    #expect(try meetings(anna) == 1)
    try anna.share(Self.all, with: ben)
    try ben.receive()
    #expect(try meetings(ben) == 1)
    #expect(try ben.rows("SELECT max(inserted) FROM buckia_counted_copies") == ["1"])
  }

  @Test func `only a recipient of a row can report its deletion`() throws {
    let annas = try incarnation(of: anna)
    let some = ShareScope(name: "some") { SharedTable("note").where("title <> 'meeting'") }
    try anna.run("INSERT INTO note VALUES ('meeting', 2)")
    try anna.share(Self.all, with: ben)
    try anna.share(some, with: mallory)
    for deletes in [true, false, true] {
      try claim([(annas, 1, 1)], deletes: deletes, to: anna)
      #expect(try meetings(anna) == 1)
    }
    // Ben is a recipient, so his deletion counts.
    try ben.receive()
    #expect(try meetings(ben) == 1)
    try ben.run("DELETE FROM note WHERE title = 'meeting'")
    try ben.share(Self.all, with: anna)
    try anna.receive()
    #expect(try meetings(anna) == 0)
  }

  @Test func `the sum of counts stays within the limit of a diff when rows become equal`() throws {
    let bens = try incarnation(of: ben)
    for body in 2...4 { try claim([(bens, 1 << 40, 1 << 40)], of: Int64(body), to: anna) }
    try anna.run("ALTER TABLE note DROP COLUMN body; INSERT INTO note VALUES ('meeting')")
    try anna.share(Self.all, with: ben)
    #expect(try ben.receive().map(\.state) == [.applied])
    #expect(try anna.rows("SELECT max(inserted) FROM buckia_counted_copies") == ["\(1 << 40)"])
  }
}
