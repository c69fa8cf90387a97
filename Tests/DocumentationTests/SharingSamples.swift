import Buckia
import TestSupport
import Testing

/// Shares some rows with somebody.
private func share(photos: String, outbox: String, home: BuckiaHome) throws {
  let scope = ShareScope(name: "summer") {
    SharedTable("album").where("id = :album", ["album": 7]).omitting("note")
    SharedTable("photo").children(of: "album").rewriting("owner", to: .null)
  }
  let ben = try ShareRecipient(home.contact(named: "Ben"))
  let report = try DatabaseManager(photos, home: home).share(
    scope, to: [ben], output: .folder(outbox), signedBy: home.identity())
  for table in report.tables { print(table.name, table.columns, table.inserted) }
}

@Suite("Samples: sharing a part of a database")
struct SharingSamples {
  @Test func `the album and its photos are sent, and nothing else`() throws {
    let folder = try TemporaryFolder()
    let photos = try TestDatabases.run(
      """
      CREATE TABLE album(id INTEGER PRIMARY KEY, name TEXT, note TEXT);
      CREATE TABLE photo(id INTEGER PRIMARY KEY, album INTEGER REFERENCES album(id), owner INTEGER);
      INSERT INTO album VALUES (7, 'summer', 'private'), (8, 'winter', 'private');
      INSERT INTO photo VALUES (1, 7, 3), (2, 8, 3);
      """, on: folder.file("photos.sqlite"))
    let home = BuckiaHome(path: folder.file("home of Anna"))
    try home.makeIdentity(named: "Anna")
    let ben = try BuckiaHome(path: folder.file("home of Ben")).makeIdentity(named: "Ben")
    try home.addContact(ben.card.text)
    let printed = try Printed.lines { try share(photos: photos, outbox: folder.file("outbox"), home: home) }
    #expect(printed == [#"album ["id", "name"] 1"#, #"photo ["id", "album", "owner"] 1"#])
  }
}
