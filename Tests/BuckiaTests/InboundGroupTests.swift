import Buckia
import BuckiaApply
import BuckiaLedger
import SQLiteConnections
import TestSupport
import Testing

private let notes = """
  CREATE TABLE notes(id INTEGER PRIMARY KEY, text TEXT CHECK (text <> 'no'), stars INTEGER);
  INSERT INTO notes VALUES (1, 'one', 1), (2, 'two', 2), (3, 'three', 3)
  """

/// Many files share a transaction, which does not change the result.
@Suite struct InboundGroupTests {
  private struct Stop: Error {}

  @Test("A file that fails midway is rolled back alone, and the files before and after it are applied")
  func oneFails() throws {
    let exchange = try Exchange(notes)
    for number in 4...8 { try exchange.send("INSERT INTO notes VALUES (\(number), 'x', 0)") }
    // The second change of this file meets a local row.
    try exchange.send("INSERT INTO notes VALUES (10, 'x', 0), (11, 'x', 0)")
    for number in 20...24 { try exchange.send("INSERT INTO notes VALUES (\(number), 'x', 0)") }
    try TestDatabases.run("INSERT INTO notes VALUES (11, 'mine', 0)", on: exchange.mine)
    let report = try exchange.apply(ApplyOptions(conflicts: .abort))
    #expect(
      report.diffs.map(\.state) == [DiffState](repeating: .applied, count: 5) + [.rejected]
        + [DiffState](repeating: .applied, count: 5))
    #expect(report.diffs.map(\.inserted) == [1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1])
    #expect(
      try exchange.rows("SELECT id FROM notes WHERE text = 'x' ORDER BY id").map { Int($0) }
        == [4, 5, 6, 7, 8, 20, 21, 22, 23, 24])
    #expect(try exchange.folder.names(in: "inbound").count == 1)
    #expect(try exchange.database.log().count { $0.state == .applied } == 10)
    #expect(try exchange.database.log().count { $0.state == .rejected } == 1)
  }

  @Test("The app can stop between two files: earlier files stay applied, and the next call applies the rest")
  func stop() throws {
    let exchange = try Exchange(notes)
    for number in 4...9 { try exchange.send("INSERT INTO notes VALUES (\(number), 'x', 0)") }
    let stopped = try #require(
      #expect(throws: ApplyInterruption.self) {
        try exchange.database.processInboundChanges([exchange.inbound], progress: { if $0.files == 3 { throw Stop() } })
      })
    #expect(stopped.report.diffs.map(\.state) == [.applied, .applied, .applied])
    #expect(stopped.cause is Stop)
    #expect(try exchange.rows("SELECT count(*) FROM notes") == ["6"])
    #expect(try exchange.folder.names(in: "inbound").count == 3)
    #expect(try exchange.apply().diffs.map(\.state) == [.applied, .applied, .applied])
    #expect(throws: Stop.self) {
      try exchange.send("INSERT INTO notes VALUES (30, 'x', 0)")
      _ = try exchange.database.processInboundChanges([exchange.inbound], progress: { _ in throw Stop() })
    }
  }

  @Test("A resolver that throws stops applying, and earlier files stay applied")
  func resolverThrows() throws {
    let exchange = try Exchange(notes)
    for number in 4...6 { try exchange.send("INSERT INTO notes VALUES (\(number), 'x', 0)") }
    try exchange.send("UPDATE notes SET text = 'theirs' WHERE id = 2")
    try exchange.send("INSERT INTO notes VALUES (7, 'x', 0)")
    try TestDatabases.run("UPDATE notes SET text = 'mine' WHERE id = 2", on: exchange.mine)
    let stopped = try #require(
      #expect(throws: ApplyInterruption.self) { try exchange.apply { _ in throw Stop() } })
    #expect(stopped.report.diffs.map(\.state) == [.applied, .applied, .applied])
    #expect(stopped.cause is Stop)
    #expect(try exchange.rows("SELECT id FROM notes ORDER BY id") == ["1", "2", "3", "4", "5", "6"])
    #expect(try exchange.folder.names(in: "inbound").count == 2)
  }

  @Test("Later files build on earlier ones of the same group: rows, columns and tables")
  func buildingOn() throws {
    let exchange = try Exchange(notes)
    let path = try TestDatabases.run(notes, on: exchange.folder.file("author.sqlite"))
    var older = exchange.base
    for (index, edit) in [
      "CREATE TABLE tags(id INTEGER PRIMARY KEY, name TEXT); INSERT INTO tags VALUES (1, 'a')",
      "ALTER TABLE tags ADD COLUMN colour TEXT; UPDATE tags SET colour = 'red'",
      "INSERT INTO tags VALUES (2, 'b', 'blue'); UPDATE notes SET stars = 9 WHERE id = 1",
      "DELETE FROM tags WHERE id = 1; ALTER TABLE notes ADD COLUMN mood; UPDATE notes SET mood = id",
    ].enumerated() {
      try TestDatabases.run(edit, on: path)
      _ = try DatabaseManager(path, home: BuckiaHome(path: exchange.folder.file("author-home"))).createDatabaseDiff(
        since: older, output: .folder(exchange.inbound))
      older = try exchange.folder.copy("author.sqlite", to: "step\(index).sqlite")
    }
    #expect(try exchange.apply().diffs.map(\.state) == [.applied, .applied, .applied, .applied])
    for table in ["notes", "tags"] {
      let query = "SELECT * FROM \(table) ORDER BY 1"
      #expect(try exchange.rows(query) == TestDatabases.rows(query, on: path))
    }
  }

  @Test("The foreign keys of a new table are checked in later files of the same group")
  func newForeignKeys() throws {
    let together = try Exchange(notes)
    let apart = try Exchange(notes)
    let path = try TestDatabases.run(notes, on: together.folder.file("author.sqlite"))
    var older = together.base
    for (index, edit) in [
      "INSERT INTO notes VALUES (4, 'x', 0)",
      """
      CREATE TABLE albums(id INTEGER PRIMARY KEY, name); INSERT INTO albums VALUES (1, 'a');
      CREATE TABLE photos(id INTEGER PRIMARY KEY, album REFERENCES albums); INSERT INTO photos VALUES (1, 1)
      """,
      "INSERT INTO photos VALUES (2, 99)", "DELETE FROM albums",
    ].enumerated() {
      try TestDatabases.run(edit, on: path)
      let sent = try DatabaseManager(path, home: BuckiaHome(path: together.folder.file("author-home")))
        .createDatabaseDiff(since: older, output: .folder(together.inbound))
      older = try together.folder.copy("author.sqlite", to: "step\(index).sqlite")
      let copy = try apart.folder.copy(#require(sent.path), to: "inbound/\(#require(sent.id)).bdiff")
      _ = try apart.database.processInboundChanges([copy])
    }
    let report = try together.apply()
    #expect(report.diffs.map(\.state) == [.applied, .applied, .applied, .applied])
    #expect(report.diffs.map(\.conflicts) == [0, 0, 1, 1])
    let conflicts = [together, apart].map { exchange in
      Result { try exchange.database.conflicts().map { "\($0.table) \($0.key) \($0.kind)" } }
    }
    #expect(try conflicts[0].get() == conflicts[1].get())
  }

  @Test("A group of 120 files has the same outcomes as the files one by one")
  func likeOneByOne() throws {
    let together = try Exchange(notes)
    let apart = try Exchange(notes)
    for number in 0..<120 {
      let edit =
        switch number % 6 {
        case 0: "INSERT INTO notes VALUES (\(number + 10), 'x', \(number))"
        case 1: "UPDATE notes SET stars = \(number + 100) WHERE id = 1"
        case 2: "DELETE FROM notes WHERE id = 3"
        case 3: "INSERT INTO notes VALUES (\(number % 12 + 10), 'y', \(number))"
        case 4: "CREATE TABLE t\(number % 4)(x PRIMARY KEY); INSERT INTO t\(number % 4) VALUES (\(number))"
        default: "CREATE TABLE t\(number % 4)(y PRIMARY KEY); INSERT INTO t\(number % 4) VALUES (\(number))"
        }
      let sent = try together.send(edit)
      _ = try apart.folder.copy(#require(sent.path), to: "inbound/\(#require(sent.id)).bdiff")
    }
    let options = ApplyOptions(conflicts: .abort, keepsFiles: true)
    let one = try together.apply(options)
    var others: [DiffOutcome] = []
    for outcome in one.diffs {
      let path = outcome.path.replacing(together.inbound, with: apart.inbound)
      others += try apart.database.processInboundChanges([path], options: options).diffs
    }
    #expect(one.diffs.map(\.state) == others.map(\.state))
    #expect(one.diffs.map(\.code) == others.map(\.code))
    #expect(one.diffs.map(\.inserted) == others.map(\.inserted))
    #expect(one.diffs.contains { $0.state == .rejected } && one.diffs.contains { $0.state == .applied })
    let query = "SELECT * FROM notes ORDER BY id"
    #expect(try together.rows(query) == apart.rows(query))
  }
}
