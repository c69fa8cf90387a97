import Buckia
import BuckiaBytes
import Foundation
import TestSupport
import Testing

/// Two people begin with different values of a row, and both share before they apply the other's share.
@Suite struct CrossingShareTests {
  private static let notes = ShareScope(name: "notes") { SharedTable("note") }

  private let folder: TemporaryFolder
  private let anna: HostileContact
  private let ben: HostileContact

  init() throws {
    folder = try TemporaryFolder()
    let schema = "CREATE TABLE note(id TEXT PRIMARY KEY, text, more NOT NULL DEFAULT 'more');"
    anna = try HostileContact("anna", in: folder, schema + "INSERT INTO note VALUES ('a', 'of anna', 'same')")
    ben = try HostileContact("ben", in: folder, schema + "INSERT INTO note VALUES ('a', 'of ben', 'same')")
    try anna.meet(ben)
  }

  private func exchange(_ policies: ConflictPolicies) throws {
    try anna.receive(policies)
    try ben.receive(policies)
    try anna.share(Self.notes, with: ben)
    try ben.share(Self.notes, with: anna)
  }

  @Test(arguments: [ConflictPolicies.latest, .takeIncoming], 0..<4)
  func `people who share different values of a row with each other end with one of them`(
    _ policies: ConflictPolicies, extra: Int
  ) throws {
    try anna.share(Self.notes, with: ben)
    try ben.share(Self.notes, with: anna)
    // The last diff of a stream need not be the one that sent the row.
    if extra & 1 != 0 {
      try anna.run("INSERT INTO note(id) VALUES ('b')")
      try anna.share(Self.notes, with: ben)
    }
    if extra & 2 != 0 {
      try ben.run("UPDATE note SET text = 'of ben, edited' WHERE id = 'a'")
      try ben.share(Self.notes, with: anna)
    }
    for _ in 0..<4 { try exchange(policies) }
    let annas = try anna.rows("SELECT id, text, more FROM note ORDER BY id")
    #expect(try ben.rows("SELECT id, text, more FROM note ORDER BY id") == annas)
    #expect(try anna.share(Self.notes, with: ben).id == nil && ben.share(Self.notes, with: anna).id == nil)
    let conflicts = try [anna, ben].map { try DatabaseManager($0.path).conflicts().count }
    #expect(conflicts.reduce(0, +) > 0, "\(conflicts)")
  }

  @Test(arguments: [ConflictPolicies.latest, .takeIncoming], [true, false])
  func `crossing edits of a received row end equal, and edits of different columns all stay`(
    _ policies: ConflictPolicies, isFirst: Bool
  ) throws {
    try ben.run("DELETE FROM note")
    try anna.run("INSERT INTO note VALUES ('b', 'of anna', 'same')")
    try anna.share(Self.notes, with: ben)
    try ben.receive(policies)
    try anna.run("UPDATE note SET text = text || ', edited by anna'")
    try ben.run("UPDATE note SET text = 'of ben' WHERE id = 'a'; UPDATE note SET more = 'of ben' WHERE id = 'b'")
    let (first, second) = isFirst ? (anna, ben) : (ben, anna)
    try first.share(Self.notes, with: second)
    try second.share(Self.notes, with: first)
    for _ in 0..<4 { try exchange(policies) }
    let annas = try anna.rows("SELECT id, text, more FROM note ORDER BY id")
    #expect(try ben.rows("SELECT id, text, more FROM note ORDER BY id") == annas)
    #expect(annas.last == "b|of anna, edited by anna|of ben")
  }

  @Test(
    arguments: [ConflictPolicies.latest, .takeIncoming],
    ["INSERT INTO note(id) VALUES ('b')", "UPDATE note SET more = 'of anna'"])
  func `the diff that has sent a value decides, not a later one of the same share`(
    _ policies: ConflictPolicies, edit: String
  ) throws {
    var second = UInt32(Int64(Date().timeIntervalSince1970) - KSUID.epoch) + 20
    func share(from person: HostileContact, with other: HostileContact) throws {
      second += 1
      try person.setClock(second)
      try person.share(Self.notes, with: other)
    }
    try share(from: anna, with: ben)
    try share(from: ben, with: anna)
    try anna.run(edit)
    try share(from: anna, with: ben)
    for _ in 0..<4 { try exchange(policies) }
    let annas = try anna.rows("SELECT id, text, more FROM note ORDER BY id")
    #expect(
      annas.first?.hasPrefix("a|of ben|") == true && annas.joined().contains("of anna") == edit.contains("of anna"))
    #expect(try ben.rows("SELECT id, text, more FROM note ORDER BY id") == annas)
    let kept = try [anna, ben].flatMap { try DatabaseManager($0.path).conflicts() }
    #expect(kept.contains { [$0.local, $0.incoming].contains { "\($0 ?? [])".contains("of anna") } })
  }

  @Test func `people who keep their own values of a row both have an open conflict`() throws {
    try anna.share(Self.notes, with: ben)
    try ben.share(Self.notes, with: anna)
    for _ in 0..<3 { try exchange(.keepLocal) }
    #expect(try anna.rows("SELECT text FROM note") == ["of anna"])
    #expect(try ben.rows("SELECT text FROM note") == ["of ben"])
    for person in [anna, ben] {
      #expect(try DatabaseManager(person.path, home: person.home).status().openConflicts == 1)
    }
  }
}
