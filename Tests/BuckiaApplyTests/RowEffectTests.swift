import BuckiaBytes
@testable import BuckiaApply
import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import ReplicationTestSupport
import TestSupport
import Testing

/// Records all effects.
private final class EffectLog: RowEffectObserver {
  let wantsRows: Bool
  private(set) var effects: [RowEffect] = []
  init(wantsRows: Bool) { self.wantsRows = wantsRows }
  func didWrite(_ effect: RowEffect) { effects.append(effect) }
  var mark: Int { effects.count }
  func rewind(to mark: Int) { effects.removeLast(effects.count - mark) }
}

@Suite("Row effects")
struct RowEffectTests {
  /// Applies the changes from one set of rows to another to a database, and returns the observed effects.
  private func effects(
    onto local: String, from base: String, to changes: String, policy: ConflictPolicy = .keepLocal,
    wantsRows: Bool = false, firesTriggers: Bool = false, before: String = ""
  ) throws -> (lines: [String], rows: [String]) {
    let author = try SQLiteConnection(opening: ":memory:", as: .create)
    try author.execute(base)
    let session = try SQLiteSession(on: author)
    try session.attach()
    try author.execute(changes)
    let receiver = try SQLiteConnection(opening: ":memory:", as: .create)
    try receiver.execute(local)
    try receiver.execute(before)
    let incoming = try IncomingChanges(
      key: LedgerKey(sender: "", id: nil, digest: [1], isRaw: true), file: "test", definitions: nil,
      changeset: TemporaryBuffer(session.changeset()))
    let log = EffectLog(wantsRows: wantsRows)
    var settings = ApplySettings(
      policies: ConflictPolicies(policy), firesTriggers: firesTriggers, time: 2_000_000_000_000)
    settings.observer = log
    let transaction = try SQLiteTransaction(on: receiver)
    _ = try Receiver.plan(incoming, on: receiver, settings: settings).apply(in: transaction)
    try transaction.commit()
    let lines = try log.effects.map { effect in
      "\(effect.table) \(effect.operation) \(try shown(effect.key)) \(effect.cause)"
    }
    let rows = try log.effects.map { "\(try shown($0.before)) > \(try shown($0.after))" }
    return (lines.sorted(), rows.sorted())
  }

  private func shown(_ record: [UInt8]?) throws -> String {
    guard let record else { return "-" }
    return try ChangesetValue.record(record).map { value in
      switch value {
      case .integer(let number)?: "\(number)"
      case .text(let text)?: text
      case .null?: "NULL"
      default: "?"
      }
    }.joined(separator: ",")
  }

  private static let notes = "CREATE TABLE note(id INTEGER PRIMARY KEY, text TEXT, here TEXT DEFAULT 'h');"
  private static let theirs = "CREATE TABLE note(id INTEGER PRIMARY KEY, text TEXT);"

  @Test("Each written change is observed once, with whole local rows on request")
  func changes() throws {
    let heard = try effects(
      onto: Self.notes + "INSERT INTO note VALUES(1, 'a', 'x'), (2, 'b', 'y'), (3, 'c', 'z')",
      from: Self.theirs + "INSERT INTO note VALUES(1, 'a'), (2, 'b'), (3, 'c')",
      to: "UPDATE note SET text = 'A' WHERE id = 1; DELETE FROM note WHERE id = 2; INSERT INTO note VALUES(4, 'd')",
      wantsRows: true)
    #expect(heard.lines == ["note delete 2 change", "note insert 4 change", "note update 1 change"])
    #expect(heard.rows == ["- > 4,d,h", "1,a,x > 1,A,x", "2,b,y > -"])
  }

  @Test("A change that is left out after a conflict is not observed; one that wins is")
  func conflicts() throws {
    let onto = Self.notes + "INSERT INTO note VALUES(1, 'mine', 'x'), (4, 'mine', 'y')"
    let from = Self.theirs + "INSERT INTO note VALUES(1, 'a')"
    let to = "UPDATE note SET text = 'A' WHERE id = 1; INSERT INTO note VALUES(4, 'd')"
    #expect(try effects(onto: onto, from: from, to: to, wantsRows: true).lines == [])
    let won = try effects(onto: onto, from: from, to: to, policy: .takeIncoming, wantsRows: true)
    #expect(won.lines == ["note update 1 change", "note update 4 replacement"])
    #expect(won.rows == ["1,mine,x > 1,A,x", "4,mine,y > 4,d,y"])
  }

  @Test("Rows that change places under UNIQUE are observed once each, with their former rows")
  func cycles() throws {
    let table = "CREATE TABLE t(id INTEGER PRIMARY KEY, pos INTEGER UNIQUE);"
    let rows = "INSERT INTO t VALUES(1, 10), (2, 20), (3, 30)"
    let heard = try effects(
      onto: table + rows, from: table + rows,
      to: "UPDATE t SET pos = -id; UPDATE t SET pos = CASE id WHEN 1 THEN 20 WHEN 2 THEN 30 ELSE 10 END",
      wantsRows: true)
    #expect(heard.lines == ["t update 1 change", "t update 2 change", "t update 3 change"])
    #expect(heard.rows == ["1,10 > 1,20", "2,20 > 2,30", "3,30 > 3,10"])
  }

  @Test("No foreign-key action deletes or changes rows, whether or not keys are enforced", arguments: [true, false])
  func foreignKeyActions(wantsRows: Bool) throws {
    let schema = """
      CREATE TABLE folder(id INTEGER PRIMARY KEY, name TEXT);
      CREATE TABLE note(id INTEGER PRIMARY KEY, folder INTEGER REFERENCES folder ON DELETE CASCADE ON UPDATE CASCADE);
      CREATE TABLE photo(id TEXT PRIMARY KEY, folder INTEGER REFERENCES folder ON DELETE SET NULL);
      INSERT INTO folder VALUES(1, 'a'), (2, 'b');
      """
    let heard = try effects(
      onto: schema + "INSERT INTO note VALUES(7, 1), (8, 2); INSERT INTO photo VALUES('p', 1)", from: schema,
      to: "DELETE FROM folder WHERE id = 1", wantsRows: wantsRows, before: "PRAGMA foreign_keys = ON")
    // The folder stays, since its author did not know the note.
    #expect(heard.lines == [] && heard.rows == [])
  }

  @Test("Rows written by triggers are observed as such, if triggers fire")
  func triggers() throws {
    let schema = """
      CREATE TABLE note(id INTEGER PRIMARY KEY, text TEXT);
      CREATE TABLE audit(text TEXT);
      CREATE TRIGGER logged AFTER INSERT ON note BEGIN INSERT INTO audit VALUES('new ' || NEW.id); END;
      """
    let heard = try effects(
      onto: schema, from: schema, to: "INSERT INTO note VALUES(5, 'x')", wantsRows: true, firesTriggers: true)
    #expect(heard.lines.contains("note insert 5 change"))
    #expect(heard.lines.contains("audit insert 1 indirect"))
    let quiet = try effects(onto: schema, from: schema, to: "INSERT INTO note VALUES(5, 'x')")
    #expect(quiet.lines.filter { $0.contains("indirect") } == [])
  }

  @Test("A row without a key leaves its table without keys")
  func withoutKey() throws {
    let recorder = ChangedRowRecorder(limit: 2)
    recorder.didWrite(RowEffect(table: "t", operation: .insert, cause: .change, key: [], before: nil, after: nil))
    #expect(try recorder.changedRows() == [ChangedRows(table: "t", keys: nil)])
  }

  @Test("The recorder lists each key once, up to its limit, and forgets rolled-back rows")
  func recorder() throws {
    func effect(_ table: String, _ key: Int64) -> RowEffect {
      var writer = ChangesetWriter()
      writer.append(integer: key)
      return RowEffect(
        table: .init(table), operation: .update, cause: .change, key: writer.bytes, before: nil, after: nil)
    }
    let recorder = ChangedRowRecorder(limit: 4)
    recorder.didWrite(effect("a", 1))
    recorder.didWrite(effect("a", 1))
    let mark = recorder.mark
    recorder.didWrite(effect("a", 2))
    recorder.rewind(to: mark)
    recorder.didWrite(effect("b", 3))
    #expect(
      try recorder.changedRows() == [
        ChangedRows(table: "a", keys: [[.integer(1)]]), ChangedRows(table: "b", keys: [[.integer(3)]]),
      ])
    recorder.didWrite(effect("a", 4))
    recorder.didWrite(effect("b", 5))
    #expect(
      try recorder.changedRows() == [
        ChangedRows(table: "a", keys: [[.integer(1)], [.integer(4)]]), ChangedRows(table: "b", keys: nil),
      ])
  }
}
