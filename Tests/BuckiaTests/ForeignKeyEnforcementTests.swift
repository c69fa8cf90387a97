import Buckia
import BuckiaApply
import TestSupport
import Testing
@testable import SQLiteConnections

/// Foreign keys that the app enforces on its own connection do not change the result of applying, and no foreign-key
/// action deletes a row that exists only locally.
@Suite("Foreign keys that the app enforces")
struct ForeignKeyEnforcementTests {
  /// The results of applying that an app can observe.
  private struct Sight: Equatable {
    var content: [String: [String]] = [:]
    /// The notes with their folders. `photos` says if the local photo is still in its album.
    var notes: [String] = []
    var photos: [String] = []
    var conflicts: [String] = []
    var changedTables: Set<String> = []
    var changedRows: [ChangedRows] = []
    var counts: [[Int]] = []
  }

  private static let actions = ["CASCADE", "SET NULL", "SET DEFAULT", "RESTRICT", "NO ACTION"]

  private static func schema(_ action: String) -> String {
    """
    CREATE TABLE folder(id INTEGER PRIMARY KEY, code TEXT UNIQUE, name TEXT);
    CREATE TABLE note(
      id INTEGER PRIMARY KEY, folder INTEGER DEFAULT 1 REFERENCES folder ON DELETE \(action) ON UPDATE \(action), text TEXT);
    CREATE TABLE photo(
      id TEXT PRIMARY KEY, album TEXT DEFAULT 'a' REFERENCES folder(code) ON DELETE \(action) ON UPDATE \(action)
      DEFERRABLE INITIALLY DEFERRED);
    INSERT INTO folder VALUES (1, 'a', 'first'), (2, 'b', 'second'), (3, 'c', 'third');
    INSERT INTO note VALUES (1, 1, 'theirs'), (2, 2, 'theirs');
    """
  }

  /// Applies a diff on a connection of the app.
  private func apply(
    _ sent: String, here: String, _ action: String, enforced: Bool, inTransaction: Bool, policy: ConflictPolicies
  ) throws -> Sight {
    let exchange = try Exchange(Self.schema(action))
    try TestDatabases.run(here, on: exchange.mine)
    try exchange.send(sent)
    let connection = try SQLiteConnection(opening: exchange.mine, as: .readWrite)
    try connection.execute("PRAGMA foreign_keys = \(enforced ? "ON" : "OFF")")
    if inTransaction { try connection.execute("BEGIN") }
    var options = ApplyOptions(conflicts: policy)
    options.changedRowLimit = 100
    let report = try DatabaseManager.borrowing(connection.handle.pointer) {
      try $0.processInboundChanges([exchange.inbound], options: options)
    }
    #expect(try connection.foreignKeysEnforced == enforced)
    #expect(try connection.triggersEnabled)
    if inTransaction { try connection.execute("COMMIT") }
    if enforced {
      #expect(throws: SQLiteError.self) { try connection.execute("INSERT INTO note VALUES (900, 900, '')") }
    }
    var sight = Sight(content: try TestDatabases.content(of: exchange.mine))
    sight.notes = try exchange.rows("SELECT id, folder FROM note ORDER BY id")
    sight.photos = try exchange.rows("SELECT album = 'b' FROM photo WHERE id = 'mine'")
    sight.conflicts = try exchange.database.conflicts().map {
      "\($0.table) \($0.key) \($0.kind) \($0.outcome) \($0.reason ?? "")"
    }
    sight.changedTables = report.changedTables
    sight.changedRows = report.changedRows
    sight.counts = report.diffs.map { [$0.inserted, $0.updated, $0.deleted, $0.conflicts, $0.omitted] }
    return sight
  }

  /// Applies on four connections with different settings, which must all have the same result.
  private func applyEverywhere(
    _ sent: String, here: String, _ action: String, policy: ConflictPolicies = .keepLocal
  ) throws -> Sight {
    let plain = try apply(sent, here: here, action, enforced: false, inTransaction: false, policy: policy)
    for (enforced, inTransaction) in [(false, true), (true, false), (true, true)] {
      let other = try apply(sent, here: here, action, enforced: enforced, inTransaction: inTransaction, policy: policy)
      #expect(other == plain, "\(action), enforced \(enforced), own transaction \(inTransaction)")
    }
    return plain
  }

  private static let local = """
    INSERT INTO note VALUES (7, 2, 'mine'); INSERT INTO photo VALUES ('mine', 'b')
    """

  @Test(
    "When a diff deletes a folder of local notes, the folder stays, or SET NULL or SET DEFAULT is executed",
    arguments: actions)
  func deleted(_ action: String) throws {
    let sight = try applyEverywhere(
      "DELETE FROM note WHERE folder = 2; DELETE FROM folder WHERE id = 2", here: Self.local, action)
    let isSet = action.hasPrefix("SET")
    #expect(sight.notes == ["1|1", action == "SET NULL" ? "7|NULL" : isSet ? "7|1" : "7|2"])
    #expect(sight.photos == [action == "SET NULL" ? "NULL" : isSet ? "0" : "1"])
    #expect(sight.conflicts.count == (isSet ? 2 : 1))
    #expect(sight.conflicts.allSatisfy { $0.contains(isSet ? "foreignKey reported" : "foreignKey keptLocal") })
    #expect(sight.changedTables.contains("folder") == isSet)
  }

  @Test("A changed key that local rows refer to stays, or the declared action is executed", arguments: actions)
  func updated(_ action: String) throws {
    let sight = try applyEverywhere("UPDATE folder SET code = 'B' WHERE id = 2", here: Self.local, action)
    let isDone = action.hasPrefix("SET") || action == "CASCADE"
    #expect(sight.photos == [action == "SET NULL" ? "NULL" : isDone ? "0" : "1"])
    #expect(sight.conflicts.count == 1 && sight.conflicts.first?.hasPrefix(isDone ? "photo" : "folder") == true)
    #expect(sight.changedTables.contains("folder") == isDone)
  }

  @Test("A row that replaces a local row deletes no rows that refer to it", arguments: actions)
  func replaced(_ action: String) throws {
    let sight = try applyEverywhere(
      "INSERT INTO folder VALUES (4, 'd', 'theirs')",
      here: "INSERT INTO folder VALUES (4, 'e', 'mine'); INSERT INTO note VALUES (7, 4, 'mine')", action,
      policy: .takeIncoming)
    #expect(sight.notes == ["1|1", "2|2", "7|4"])
    #expect(sight.conflicts.contains { $0.hasPrefix("folder") && $0.contains("tookIncoming") })
    #expect(sight.changedTables == ["folder"])
  }

  @Test("Swapping UNIQUE values executes no foreign-key action", arguments: actions)
  func exchanged(_ action: String) throws {
    let sight = try applyEverywhere(
      "UPDATE folder SET code = NULL; UPDATE folder SET code = CASE id WHEN 1 THEN 'b' WHEN 2 THEN 'a' ELSE 'c' END",
      here: Self.local, action)
    #expect(sight.photos == ["1"])
    #expect(sight.conflicts.isEmpty)
  }

  @Test("A deferred violation in the app's transaction stops applying before anything is written")
  func openViolation() throws {
    let exchange = try Exchange(Self.schema("CASCADE"))
    try exchange.send("INSERT INTO folder VALUES (4, 'd', 'theirs')")
    let connection = try SQLiteConnection(opening: exchange.mine, as: .readWrite)
    try connection.execute("PRAGMA foreign_keys = ON; BEGIN; INSERT INTO photo VALUES ('mine', 'd')")
    let error = #expect(throws: BuckiaError.self) {
      try DatabaseManager.borrowing(connection.handle.pointer) { try $0.processInboundChanges([exchange.inbound]) }
    }
    #expect(error?.code == .deferredViolations)
    #expect(try connection.integer("SELECT count(*) FROM sqlite_schema WHERE name LIKE 'buckia%'") == 0)
    #expect(try connection.foreignKeysEnforced)
    try connection.execute("INSERT INTO folder VALUES (5, 'd', 'mine')")
    let report = try DatabaseManager.borrowing(connection.handle.pointer) {
      try $0.processInboundChanges([exchange.inbound])
    }
    #expect(report.diffs.map(\.state) == [.applied])
    try connection.execute("COMMIT")
  }
}
