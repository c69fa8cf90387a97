import BuckiaLedger
import Foundation
import SQLiteConnections
import TestSupport
import Testing

/// The fixture `ledger-format-1.sqlite` was made by the last version that wrote format 1. It has applied, held and waiting
/// entries, a refused file, conflicts, a rename, and parts that are held.
@Suite("Migrating the ledger tables")
struct LedgerMigrationTests {
  private let folder: TemporaryFolder
  private let path: String

  init() throws {
    folder = try TemporaryFolder()
    path = folder.file("ledger.sqlite")
    let fixture = try #require(
      Bundle.module.url(forResource: "Fixtures/ledger-format-1", withExtension: "sqlite"))
    try FileManager.default.copyItem(at: fixture, to: URL(fileURLWithPath: path))
  }

  private func open(as access: SQLiteConnection.Access = .readWrite) throws -> SQLiteConnection {
    try SQLiteConnection(opening: path, as: access)
  }

  /// All that the ledger's readers give, as text.
  private func content(of connection: borrowing SQLiteConnection) throws -> [String] {
    let entries = try LedgerEntries.newest(100, on: connection).map { "\($0)" }
    let conflicts = try ConflictRecord.all(on: connection).map { "\($0)" }
    let held = try HeldPart.all(on: connection).map { "\($0)" }
    return entries + conflicts + held + ["\(try LedgerSettings.trust(on: connection))"]
  }

  private func schema(of connection: borrowing SQLiteConnection) throws -> [String] {
    try TestDatabases.texts(
      "SELECT sql FROM sqlite_schema WHERE tbl_name LIKE 'buckia_%' AND sql IS NOT NULL ORDER BY name", on: connection)
  }

  @Test("A ledger of format 1 keeps all it holds, and ends with the tables of a new one")
  func migrates() throws {
    let connection = try open()
    let before = try content(of: connection)
    #expect(before.count > 12)
    #expect(try Ledger.prepare(on: connection) == .migrated(from: 1))
    #expect(try content(of: connection) == before)
    let fresh = try SQLiteConnection(opening: ":memory:", as: .create)
    #expect(try Ledger.prepare(on: fresh) == .created)
    #expect(try schema(of: connection) == schema(of: fresh))
    #expect(try connection.text("PRAGMA integrity_check") == "ok")
    #expect(try Ledger.prepare(on: connection) == .present)
  }

  @Test("A ledger of format 1 can be read without being migrated")
  func readsEarlierFormat() throws {
    let connection = try open(as: .readOnly)
    #expect(try Ledger.format(on: connection) == 1)
    #expect(try LedgerEntries.newest(100, on: connection).map(\.state).contains(.waiting))
    #expect(try !ConflictRecord.all(on: connection).isEmpty)
    #expect(try LedgerEntries.newestID(on: connection) != nil)
  }

  @Test("Renames that nobody is known to have declared are dropped by the migration")
  func anonymousRenames() throws {
    let connection = try open()
    #expect(try connection.integer("SELECT count(*) FROM buckia_rename") == 1)
    try Ledger.prepare(on: connection)
    #expect(try connection.integer("SELECT count(*) FROM buckia_rename") == 0)
  }

  @Test("The tables of format 2 take states that later versions may add")
  func statesAreNotFrozen() throws {
    let connection = try open()
    let update = "UPDATE buckia_ledger SET state = 'reviewed' WHERE entry = 1"
    #expect(throws: SQLiteError.self) { try connection.execute(update) }
    try Ledger.prepare(on: connection)
    try connection.execute(update)
    try connection.execute("UPDATE buckia_refused SET state = 'reviewed'")
  }

  @Test(
    "A migration that runs out of room leaves the ledger as it was, and succeeds when there is room", arguments: 0..<12)
  func interrupted(room: Int64) throws {
    // A page more each time, so that the migration ends at another statement.
    let connection = try open()
    let before = try content(of: connection)
    let schemaBefore = try schema(of: connection)
    try connection.execute(
      "CREATE TABLE filler(x); INSERT INTO filler SELECT hex(zeroblob(200)) FROM buckia_ledger, buckia_ledger")
    // Enough rows for the rebuilt tables to take pages of their own.
    try connection.execute(
      """
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40)
      INSERT INTO buckia_refused SELECT zeroblob(i), NULL, '', 'rejected', hex(zeroblob(90)), 'f', i, i, 1 FROM n
      """)
    let pages = try #require(try connection.integer("PRAGMA page_count"))
    try connection.execute("PRAGMA max_page_count = \(pages + room)")
    let wholeBefore = try content(of: connection)
    do {
      try Ledger.prepare(on: connection)
    } catch let error as SQLiteError {
      #expect(error.primaryCode == 13, "\(error)")
      let isOpen = connection.isInTransaction
      #expect(!isOpen)
      #expect(try Ledger.format(on: connection) == 1)
      #expect(try schema(of: connection) == schemaBefore)
      #expect(try content(of: connection) == wholeBefore)
      try connection.execute("PRAGMA max_page_count = 1000000")
      #expect(try Ledger.prepare(on: connection) == .migrated(from: 1))
    }
    #expect(try content(of: connection) == wholeBefore)
    #expect(wholeBefore.count == before.count + 40)
    #expect(try connection.integer("SELECT count(*) FROM temp.sqlite_schema") == 0)
  }

  @Test("A migration inside the application's transaction goes when that is rolled back")
  func rolledBackByTheApplication() throws {
    let connection = try open()
    try connection.execute("BEGIN")
    #expect(try Ledger.prepare(on: connection) == .migrated(from: 1))
    try connection.execute("ROLLBACK")
    #expect(try Ledger.format(on: connection) == 1)
  }

  @Test("Sums of rows that have other keys here are dropped where they were not of the rows as they were sent")
  func sumsOfTranslatedRows() throws {
    let connection = try SQLiteConnection(opening: ":memory:", as: .create)
    try Ledger.prepare(on: connection)
    try connection.execute(
      """
      DROP TABLE buckia_translated;
      DROP TABLE buckia_told; DROP TABLE buckia_heard; DROP TABLE buckia_stream_acknowledgement; DROP TABLE buckia_forgotten;
      DROP TABLE buckia_parked; DROP TABLE buckia_kept; DROP TABLE buckia_recipient; DROP TABLE buckia_untold; DROP TABLE buckia_untaken;
      DROP TABLE buckia_widening; DROP TABLE buckia_tombstone; DROP TABLE buckia_decided; DROP TABLE buckia_counted_table; DROP TABLE buckia_counted_row; DROP TABLE buckia_counted_copies; DROP TABLE buckia_counted_holder;
      UPDATE buckia_settings SET value = 12 WHERE name = 'format';
      INSERT INTO buckia_stream_author VALUES ('anna', x'01', x'0a'), ('ben', x'02', x'0b');
      INSERT INTO buckia_row_name VALUES ('photo', x'0a', 1, 2, NULL);
      INSERT INTO buckia_state(share, sender, stream, table_name, columns, row_count, sums) VALUES
        (NULL, 'anna', x'01', 'photo', '[]', 1, x''), (NULL, 'ben', x'02', 'photo', '[]', 1, x''),
        (1, NULL, x'03', 'photo', '[]', 1, x'');
      """)
    #expect(try Ledger.prepare(on: connection) == .migrated(from: 12))
    let left = "SELECT coalesce(sender, share) FROM buckia_state ORDER BY 1"
    #expect(try TestDatabases.texts(left, on: connection) == ["1", "ben"])
  }

  @Test("A broken view of the application's does not keep the ledger from being migrated")
  func brokenView() throws {
    let connection = try open()
    try connection.execute("CREATE TABLE gone(x); CREATE VIEW broken AS SELECT x FROM gone; DROP TABLE gone")
    #expect(try Ledger.prepare(on: connection) == .migrated(from: 1))
  }

  @Test("A ledger of a newer format is refused with its number", arguments: [Ledger.format + 1, 99, 0, -1])
  func newerFormat(number: Int64) throws {
    let connection = try open()
    try connection.execute("UPDATE buckia_settings SET value = \(number) WHERE name = 'format'")
    let error = #expect(throws: LedgerError.self) { try Ledger.prepare(on: connection) }
    #expect(error?.code == .newerLedger)
    #expect(error?.description.contains("\(path): the ledger tables have format \(number),") == true)
  }
}
