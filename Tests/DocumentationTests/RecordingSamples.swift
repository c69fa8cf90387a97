import Buckia
import TestSupport
import Testing

@Suite("Samples about recording")
struct RecordingSamples {
  @Test func `changes are recorded, undone and sent`() throws {
    let files = try TemporaryFolder()
    let (folder, outbox) = (files.file("."), files.file("outbox"))
    let path = try TestDatabases.run(
      "CREATE TABLE album(id INTEGER PRIMARY KEY, title); INSERT INTO album VALUES (7, 'Sea')",
      on: files.file("photos.sqlite"))
    let database = DatabaseManager(path, home: BuckiaHome(path: files.file("home")))
    let sqlite = try LoadedSQLite.linked.get()
    func titles() throws -> [String] { try TestDatabases.texts("SELECT title FROM album", on: path) }

    try sqlite.withHandle(to: path) { connection in
      func run(_ sql: String) throws { try sqlite.execute(sql, on: connection) }
      try DatabaseManager.borrowing(connection) { database in
        try database.recorder.record("Rename album") { _ in
          try run("UPDATE album SET title = 'Summer' WHERE id = 7")
        }
      }
    }
    #expect(try titles() == ["Summer"])

    let undone = try database.recorder.undo()
    print(undone?.undone.first?.changedTables ?? [])
    try database.recorder.redo()
    #expect(undone?.undone.count == 1)

    let recorder = database.recorder
    for change in try recorder.changes(since: 12) { print(change.number, change.note ?? "", change.isUndone) }
    if let last = try recorder.changes().last { print(try recorder.dependencies(of: last).map(\.number)) }
    let report = try recorder.createDiff(since: 12, output: .folder(outbox))
    print(report.path ?? "nothing has changed")
    #expect(report.id == nil)
    #expect(try recorder.changes().map(\.note) == ["Rename album", nil, nil])
    #expect(try titles() == ["Summer"])

    if let found = try database.recorder.catchUp(with: "\(folder)/recorded.sqlite") {
      print("\(found.inserted + found.updated + found.deleted) rows were changed elsewhere")
    }
    try TestDatabases.run("DELETE FROM album", on: path)
    let found = try recorder.catchUp(with: "\(folder)/recorded.sqlite")
    #expect(found?.deleted == 1)
  }
}
