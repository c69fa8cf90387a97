import BuckiaSync
import TestSupport
import Testing

@Suite("Samples about backups")
struct BackupSamples {
  private let files: TemporaryFolder
  private let database: DatabaseManager
  private let home: BuckiaHome

  init() throws {
    files = try TemporaryFolder()
    let path = try TestDatabases.run(
      "CREATE TABLE photo(id INTEGER PRIMARY KEY, album); INSERT INTO photo VALUES (1, 7), (2, 8)",
      on: files.file("photos.sqlite"))
    home = BuckiaHome(path: files.file("home"))
    database = DatabaseManager(path, home: home)
  }

  @Test func `a database is backed up, checked and restored`() async throws {
    let (folder, copy) = (files.file("backups"), files.file("copy.sqlite"))
    let store = BackupStore(folder: folder)
    var options = BackupOptions()
    options.note = "before the import"
    let report = try await store.backUp(database, options)
    print(report.point.id, report.isNew, report.byteCount)
    #expect(report.isNew)

    let drill = try await store.drill(home: home)
    print(drill.fault ?? "in order")
    for status in try BackupStore.status(of: database) { print(status.store, status.verifiedAt ?? 0) }
    #expect(drill.fault == nil)

    let time = report.point.time
    for entry in try await store.history(home: home).points { print(entry.point.id, entry.point.time) }
    try await store.restore(to: copy, at: .time(time))
    try await store.restore(into: database, at: .id(report.point.id))
    #expect(try fileBytes(copy).count == report.point.databaseByteCount)

    try TestDatabases.run("DELETE FROM photo", on: database.path)
    var photos = SharedTable("photo")
    photos.condition = "album = 7"
    let (point, rows, _) = try await store.restoreRows(of: ShareScope(tables: [photos]), into: database)
    print(point.time, rows?.applied.count ?? 0)
    #expect(try TestDatabases.rows("SELECT id FROM photo", on: database.path) == ["1"])

    let rules = try RetentionPolicy("hourly=24,daily=30,monthly=12")
    let pruned = try await store.prune(keeping: rules, home: home)
    print(pruned.removed.count, pruned.keptCount)
    let identity = AgeIdentity()
    options.recipients = [try identity.recipient()]
    try await store.backUp(database, options)
    #expect(try await store.history(home: home).points.last?.isEncrypted == true)
  }
}
