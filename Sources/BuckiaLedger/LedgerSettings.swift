import BuckiaBytes
import SQLiteConnections

/// The trust mode. It is stored in the database and never falls back by itself.
public enum TrustMode: String, Sendable, CaseIterable, Codable {
  /// Diff files of any origin are applied.
  case any
  /// Only diff files that a trusted contact has signed are applied, or the person themselves.
  case known
}

/// The table `buckia_settings`: the format of the ledger tables, and the settings of this database.
package enum LedgerSettings {
  static let definition = """
    CREATE TABLE main.buckia_settings(
      name TEXT PRIMARY KEY NOT NULL,
      value
    ) WITHOUT ROWID;
    INSERT INTO main.buckia_settings(name, value) VALUES ('format', 1), ('trust', 'any');
    """

  /// The trust mode of this database; `known` if the stored value is unknown to this version.
  package static func trust(on connection: borrowing SQLiteConnection) throws -> TrustMode {
    TrustMode(rawValue: try text("trust", on: connection) ?? "") ?? .known
  }

  /// The retention of effects for undo.
  package static func retention(on connection: borrowing SQLiteConnection) throws -> AppliedEffects.Retention {
    AppliedEffects.Retention(
      bytes: try count("undo_bytes", on: connection) ?? AppliedEffects.Retention.standard.bytes,
      days: try count("undo_days", on: connection) ?? AppliedEffects.Retention.standard.days)
  }

  /// Sets the retention of effects.
  package static func setRetention(
    _ retention: AppliedEffects.Retention, on connection: borrowing SQLiteConnection
  ) throws {
    for (name, value) in [("undo_bytes", retention.bytes), ("undo_days", retention.days)] {
      try set(name, to: Int64(value), on: connection)
    }
  }

  /// The shared database that this one belongs to: 16 bytes; nil for none.
  ///
  /// - Throws: `SQLiteError`; `LedgerError` for a newer ledger.
  package static func dataset(on connection: borrowing SQLiteConnection) throws -> [UInt8]? {
    guard try Ledger.exists(on: connection) else { return nil }
    return try blob("dataset", on: connection)
  }

  /// The id of a dataset as people see it: 32 hexadecimal digits.
  package static func text(ofDataset dataset: [UInt8]) -> String {
    HexText.lowercase(dataset)
  }

  /// Sets the dataset of this database.
  ///
  /// - Throws: `SQLiteError`.
  package static func setDataset(_ dataset: [UInt8], on connection: borrowing SQLiteConnection) throws {
    try set("dataset", to: dataset, on: connection)
  }

  /// The number of days without a diff after which a replica no longer delays the forgetting of deletions; 0 for never.
  package static func silence(on connection: borrowing SQLiteConnection) throws -> Int {
    try count("silent_days", on: connection) ?? standardSilence
  }

  /// The default number of days.
  package static let standardSilence = 180

  /// Sets after how many days that is.
  package static func setSilence(_ days: Int, on connection: borrowing SQLiteConnection) throws {
    try set("silent_days", to: Int64(days), on: connection)
    try setPruningTime(0, on: connection)
  }

  /// The time of the last pass over all deletions, in milliseconds since 1970; 0 for never.
  package static func pruningTime(on connection: borrowing SQLiteConnection) throws -> Int64 {
    try integer("pruned_at", on: connection) ?? 0
  }

  /// Sets when that was.
  package static func setPruningTime(_ time: Int64, on connection: borrowing SQLiteConnection) throws {
    try set("pruned_at", to: time, on: connection)
  }

  private static func received(from sender: String) -> String { "received-\(sender)" }
  private static let millisecondsPerDay: Int64 = 86_400_000

  /// The bytes of changes from a sender on a day (UTC), without files that a person has approved.
  ///
  /// - Parameters:
  ///   - sender: The verified key in hex; empty for unsigned files.
  ///   - time: A moment of the day, in milliseconds since 1970.
  package static func receivedBytes(
    from sender: String, at time: Int64, on connection: borrowing SQLiteConnection
  ) throws -> Int64 {
    let parts = (try text(received(from: sender), on: connection) ?? "").split(separator: " ").compactMap { Int64($0) }
    return parts.count == 2 && parts[0] == time / millisecondsPerDay ? max(0, parts[1]) : 0
  }

  /// Adds to that.
  package static func addReceived(
    _ bytes: Int64, from sender: String, at time: Int64, on connection: borrowing SQLiteConnection
  ) throws {
    let sum = try receivedBytes(from: sender, at: time, on: connection).addingReportingOverflow(bytes)
    try set(
      received(from: sender), to: "\(time / millisecondsPerDay) \(sum.overflow ? Int64.max : sum.partialValue)",
      on: connection)
  }

  private static let reading = "SELECT value FROM main.buckia_settings WHERE name = ?1"

  private static func count(_ name: String, on connection: borrowing SQLiteConnection) throws -> Int? {
    try integer(name, on: connection).map { Int(clamping: max(0, $0)) }
  }

  /// A setting as an integer; nil if it is absent.
  package static func integer(_ name: String, on connection: borrowing SQLiteConnection) throws -> Int64? {
    try connection.cachedInteger(reading, name)
  }

  /// A setting as text; nil if it is absent.
  static func text(_ name: String, on connection: borrowing SQLiteConnection) throws -> String? {
    try connection.first(ofCached: reading, name) { $0.text(at: 0) } ?? nil
  }

  /// A setting as a blob; nil if it is absent or of another type.
  static func blob(_ name: String, on connection: borrowing SQLiteConnection) throws -> [UInt8]? {
    try connection.first(ofCached: reading, name) { $0.storageClass(at: 0) == .blob ? $0.blob(at: 0) : nil } ?? nil
  }

  /// Sets one setting.
  package static func set(
    _ name: String, to value: any SQLiteBindable, on connection: borrowing SQLiteConnection
  ) throws(SQLiteError) {
    try connection.run(
      cached:
        "INSERT INTO main.buckia_settings VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
      name, value)
  }

  /// Sets the trust mode of this database.
  package static func setTrust(_ trust: TrustMode, on connection: borrowing SQLiteConnection) throws {
    try connection.run(cached: "UPDATE main.buckia_settings SET value = ?1 WHERE name = 'trust'", trust.rawValue)
  }
}

/// The progress of a database's ledger. It never decreases, unless an earlier state of the database is restored.
package struct LedgerProgress: Equatable, Sendable {
  /// The greatest number of an entry; 0 for none.
  package let entry: Int64
  /// The newest recorded diff that was made from the database; nil for none.
  package let made: KSUID?

  /// Creates a progress.
  package init(entry: Int64 = 0, made: KSUID? = nil) {
    self.entry = entry
    self.made = made
  }

  /// Reads the progress of a database's ledger.
  ///
  /// - Throws: `SQLiteError`; `LedgerError` for a newer ledger.
  package static func read(on connection: borrowing SQLiteConnection) throws -> LedgerProgress {
    guard try Ledger.exists(on: connection) else { return LedgerProgress() }
    let entry = try connection.cachedInteger("SELECT max(entry) FROM main.buckia_ledger") ?? 0
    let made = try LedgerSettings.text("made", on: connection)
    return LedgerProgress(entry: max(0, entry), made: made.flatMap { KSUID($0) })
  }

  /// True if this is an earlier state than another one.
  package func isBehind(_ other: LedgerProgress) -> Bool {
    entry < other.entry || other.made.map { theirs in made.map { $0 < theirs } ?? true } ?? false
  }

  /// Records in the ledger of a database that a diff has been made from it.
  ///
  /// - Throws: `SQLiteError`.
  package static func note(made id: KSUID, on connection: borrowing SQLiteConnection) throws {
    try LedgerSettings.set("made", to: id.description, on: connection)
  }
}

/// The replica and incarnation that a database names: two settings of 16 random bytes each.
///
/// A copy of the database file names the same ones, and so does a restored backup. Records outside of the database
/// distinguish them.
package struct ReplicaIdentity: Hashable, Sendable {
  /// The size of each id in bytes.
  package static let byteCount = 16

  /// The copy of the database.
  package let replica: [UInt8]
  /// The unbroken life of that copy.
  package let incarnation: [UInt8]

  /// Creates an identity from both ids.
  package init(replica: [UInt8], incarnation: [UInt8]) {
    self.replica = replica
    self.incarnation = incarnation
  }

  /// The identity in the ledger of a database; nil for none.
  ///
  /// - Throws: `SQLiteError`; `LedgerError` for a newer ledger.
  package static func read(on connection: borrowing SQLiteConnection) throws -> ReplicaIdentity? {
    guard try Ledger.exists(on: connection) else { return nil }
    guard let replica = try id("replica", on: connection), let incarnation = try id("incarnation", on: connection)
    else { return nil }
    return ReplicaIdentity(replica: replica, incarnation: incarnation)
  }

  private static func id(_ name: String, on connection: borrowing SQLiteConnection) throws -> [UInt8]? {
    try LedgerSettings.blob(name, on: connection).flatMap { $0.count == byteCount ? $0 : nil }
  }

  /// The last recorded file of the replica; nil for none.
  ///
  /// - Throws: `SQLiteError`.
  package static func file(on connection: borrowing SQLiteConnection) throws -> String? {
    try LedgerSettings.text("replica_file", on: connection)
  }

  /// Keeps which file the replica is.
  ///
  /// - Throws: `SQLiteError`.
  package static func setFile(_ file: String, on connection: borrowing SQLiteConnection) throws {
    try LedgerSettings.set("replica_file", to: file, on: connection)
  }

  /// The incarnation that a restored database continues; nil for none.
  ///
  /// - Throws: `SQLiteError`.
  package static func former(on connection: borrowing SQLiteConnection) throws -> [UInt8]? {
    try id("former_incarnation", on: connection)
  }

  /// Stores the incarnation that a restored database continues, or deletes it.
  ///
  /// - Throws: `SQLiteError`.
  package static func setFormer(_ incarnation: [UInt8]?, on connection: borrowing SQLiteConnection) throws {
    guard let incarnation else {
      return try connection.run(cached: "DELETE FROM main.buckia_settings WHERE name = 'former_incarnation'")
    }
    try LedgerSettings.set("former_incarnation", to: incarnation, on: connection)
  }

  /// Stores the identity in the ledger of a database.
  ///
  /// - Throws: `SQLiteError`.
  package func write(on connection: borrowing SQLiteConnection) throws {
    try LedgerSettings.set("replica", to: replica, on: connection)
    try LedgerSettings.set("incarnation", to: incarnation, on: connection)
  }
}

/// The diffs that were applied in the last call with a snapshot.
///
/// They are recorded with the rows, in one transaction. If the process dies before the snapshot is updated, they show
/// which diffs it lacks. They are in `buckia_settings`, under the snapshot's id.
package enum SnapshotRuns {
  private static func name(_ snapshot: String) -> String { "snapshot-\(snapshot)" }

  /// Records that diffs were applied.
  ///
  /// - Parameters:
  ///   - snapshot: The snapshot's id.
  ///   - entries: Their ledger entries.
  package static func note(
    _ entries: ClosedRange<Int64>, for snapshot: String, on connection: borrowing SQLiteConnection
  ) throws {
    try LedgerSettings.set(name(snapshot), to: "\(entries.lowerBound)-\(entries.upperBound)", on: connection)
  }

  /// The ledger entries of the diffs that were applied in the last call; nil for none.
  package static func entries(
    for snapshot: String, on connection: borrowing SQLiteConnection
  ) throws -> ClosedRange<Int64>? {
    guard try Ledger.exists(on: connection) else { return nil }
    let numbers = (try LedgerSettings.text(name(snapshot), on: connection) ?? "").split(separator: "-").compactMap {
      Int64($0)
    }
    guard numbers.count == 2, numbers[0] <= numbers[1] else { return nil }
    return numbers[0]...numbers[1]
  }

  /// The received diffs among some ledger entries that have written rows, in order, without undos and merges.
  package static func diffs(
    among entries: ClosedRange<Int64>, on connection: borrowing SQLiteConnection
  ) throws -> [(entry: Int64, file: String)] {
    try connection.rows(
      of: """
        SELECT entry, file FROM main.buckia_ledger
        WHERE entry BETWEEN ?1 AND ?2 AND state IN ('applied', 'held') AND sender NOT IN ('own', 'merge')
          AND inserted + updated + deleted > 0
        ORDER BY entry
        """, entries.lowerBound, entries.upperBound
    ) { row in
      (row.integer(at: 0), row.text(at: 1) ?? "")
    }
  }
}
