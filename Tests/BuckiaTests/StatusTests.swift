import BuckiaBytes
import SQLiteSchemas
import Foundation
import TestSupport
import Testing

@testable import Buckia

/// The status of a database.
@Suite struct StatusTests {
  @Test("The status of a database without a ledger is empty")
  func nothing() throws {
    let exchange = try Exchange(StreamAuthor.schema)
    let status = try exchange.database.status()
    #expect(status.ledger == nil)
    #expect(status.trust == nil)
    #expect(status.replica == nil)
    #expect(status.streams.isEmpty)
  }

  @Test("The status has the last diff, the waiting and missing diffs, and the end of each stream")
  func streams() throws {
    let exchange = try Exchange(StreamAuthor.schema)
    var anna = try StreamAuthor(1, person: 1)
    var ben = try StreamAuthor(2)
    var old = try StreamAuthor(3)
    var new = try StreamAuthor(4)
    let files = try anna.files(5)
    ben.time = 1_650_000_000
    let lost = try ben.next(after: nil, row: 20)
    try exchange.deliver([files[0], files[1], files[3], files[4]])
    try exchange.deliver(ben.next(after: lost, row: 21))
    let last = try old.next(after: nil, row: 30)
    new.time = old.time
    try exchange.deliver(last, new.next(after: nil, row: 40, kind: .snapshot, replacing: old.stream))
    try exchange.apply()
    let status = try exchange.database.status()
    #expect(status.ledger?.applied == 4)
    #expect(status.ledger?.waiting == 3)
    let streams = Dictionary(uniqueKeysWithValues: status.streams.map { ($0.stream.prefix(2), $0) })
    let first = try #require(streams["01"])
    #expect(first.sequence == 2)
    #expect(first.id == files[1].id)
    #expect(first.appliedAt != nil)
    #expect(first.waiting == 2)
    #expect(first.missing == files[2].id)
    #expect(first.sender.hasPrefix("key "))
    #expect(!first.isEnded)
    let second = try #require(streams["02"])
    #expect(second.sequence == 0)
    #expect(second.id == nil)
    #expect(second.appliedAt == nil)
    #expect(second.missing == lost.id)
    #expect(second.sender == "unsigned")
    #expect(streams["03"]?.isEnded == true)
    #expect(streams["04"]?.isEnded == false)
    // Once all diffs have arrived, none is missing.
    try exchange.deliver(files[2], lost)
    try exchange.apply()
    let later = try exchange.database.status()
    #expect(later.ledger?.waiting == 0)
    #expect(later.streams.allSatisfy { $0.waiting == 0 && $0.missing == nil })
    #expect(later.streams.map(\.sequence).max() == 5)
  }

  @Test("The status has conflicts, refused files and the replica, and reading it changes nothing")
  func everythingElse() throws {
    let exchange = try Exchange(
      "CREATE TABLE notes(id INTEGER PRIMARY KEY, n); INSERT INTO notes VALUES (1, 1), (2, 2)")
    try exchange.send("UPDATE notes SET n = n + 10")
    try TestDatabases.run("UPDATE notes SET n = n + 20", on: exchange.mine)
    try exchange.apply()
    try exchange.plantRaw(Array("nonsense".utf8))
    try exchange.apply()
    _ = try exchange.database.resolve([1], taking: .local)
    let status = try exchange.database.status()
    #expect(status.conflicts == 2)
    #expect(status.openConflicts == 1)
    #expect(status.ledger?.applied == 1)
    #expect(status.ledger?.rejected == 1)
    #expect(status.newest != nil)
    let replica = try #require(status.replica)
    #expect(replica.standing == .present)
    #expect(replica.id.utf8.count == 32)
    let copy = try exchange.folder.copy(exchange.mine, to: "copy.sqlite")
    for _ in 0..<2 {
      let copied = try #require(try DatabaseManager(copy, home: exchange.home).status().replica)
      #expect(copied.standing == .copied)
      #expect(copied.id == replica.id)
    }
    let elsewhere = BuckiaHome(path: exchange.folder.file("elsewhere"))
    #expect(try DatabaseManager(copy, home: elsewhere).status().replica?.standing == .unknown)
    #expect(try DatabaseManager(exchange.mine, home: elsewhere).status().replica?.standing == .present)
    #expect(!FileSystem.exists(elsewhere.path))
  }
}
