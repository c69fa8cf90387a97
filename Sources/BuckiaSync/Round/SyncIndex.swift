import Buckia
import BuckiaStorage
import Foundation
import SQLiteConnections

/// The points before and after each local step of a round. Tests end a round at each.
enum LocalStep {
  /// May throw to end the round.
  @TaskLocal static var end: (@Sendable () throws -> Void)?

  static func pass() throws { try end?() }

  /// Runs one step.
  static func take<Result>(_ step: () async throws -> Result) async throws -> Result {
    try pass()
    let result = try await step()
    try pass()
    return result
  }
}

/// A local index of a storage: the uploaded objects with their files, and the downloaded ones.
///
/// It is a database of its own in the person's home, one for each local database and person. If it is lost, it is
/// created again: files are then digested and uploaded again if the storage does not report their digest. Records of
/// transfers therefore do not wait for the disk: after a power cut the last of them may be repeated.
actor SyncIndex {
  private let executor = BlockingExecutor()
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  private let connection: SQLiteConnection
  private let path: String
  /// How far changes wait for the disk.
  private let usualSynchronization: String

  /// An uploaded object.
  struct Upload: Sendable, Equatable {
    var byteCount: Int64
    var version: String?
    /// The SHA-256 of the contents in hexadecimal.
    var sha256: String
    /// The state of the file, by the file system.
    var fileState: String
    /// True for a file that came from the storage: another device has uploaded it.
    var isFetched = false
  }

  /// Opens the index, and creates it if it is missing.
  ///
  /// - Throws: `BuckiaError` when it cannot be opened, or a newer version has made it.
  init(at path: String) throws {
    self.path = path
    do {
      if try FileIdentity.current(at: path) == nil { _ = try PosixFile(creating: path, isPrivate: true) }
      connection = try SQLiteConnection(opening: path, as: .create, busyTimeout: 10_000)
      try Self.prepare(connection)
      // Only a write-ahead log survives a loss of power that way (<https://sqlite.org/pragma.html#pragma_synchronous>).
      let isLogged = try connection.text("PRAGMA journal_mode = WAL") == "wal"
      usualSynchronization = isLogged ? "NORMAL" : "FULL"
      try connection.execute("PRAGMA synchronous = \(usualSynchronization)")
    } catch { throw BuckiaError.wrapped(error) }
  }

  /// Creates a change, and waits until it and all earlier ones are on the disk.
  private func durably(_ body: () throws -> Void) throws {
    try changing {
      try connection.execute("PRAGMA synchronous = FULL")
      // After an error as well, because later changes must not wait for the disk.
      try cleaningUp(after: body) { try connection.execute("PRAGMA synchronous = \(usualSynchronization)") }
    }
  }

  private func changing(_ body: () throws -> Void) throws {
    try LocalStep.pass()
    try reporting(body)
    try LocalStep.pass()
  }

  private static let format: Int64 = 3

  private static func prepare(_ connection: borrowing SQLiteConnection) throws {
    let found = try connection.integer("PRAGMA user_version") ?? 0
    guard found <= format else {
      throw BuckiaError(
        .unsupportedFormat, "a newer version of Buckia has written it; use that, or remove it", path: connection.path)
    }
    guard found < format else { return }
    try connection.execute(
      """
      BEGIN IMMEDIATE;
      DROP TABLE IF EXISTS inbound;
      DROP TABLE IF EXISTS upload;
      CREATE TABLE upload(
        storage TEXT NOT NULL, path TEXT NOT NULL, bytes INTEGER NOT NULL, version TEXT, sha256 TEXT NOT NULL,
        state TEXT NOT NULL, fetched INTEGER NOT NULL, PRIMARY KEY(storage, path)) WITHOUT ROWID;
      CREATE TABLE inbound(
        storage TEXT NOT NULL, path TEXT NOT NULL, version TEXT, bytes INTEGER NOT NULL, digests TEXT, PRIMARY KEY(storage, path)) WITHOUT ROWID;
      CREATE TABLE IF NOT EXISTS setting(name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
      PRAGMA user_version = 3;
      COMMIT
      """)
  }

  private func reporting<Result>(_ body: () throws -> Result) throws -> Result {
    do { return try body() } catch { throw BuckiaError.wrapped(error) }
  }

  // MARK: Uploads

  func upload(_ path: RemotePath, in storage: String) throws -> Upload? {
    try reporting {
      try connection.first(
        ofCached: "SELECT bytes, version, sha256, state, fetched FROM upload WHERE storage = ?1 AND path = ?2", storage,
        path.text
      ) { row in
        Upload(
          byteCount: row.integer(at: 0), version: row.text(at: 1), sha256: row.text(at: 2) ?? "",
          fileState: row.text(at: 3) ?? "", isFetched: row.integer(at: 4) != 0)
      }
    }
  }

  func note(_ upload: Upload, of path: RemotePath, in storage: String) throws {
    try changing {
      try connection.run(
        cached: "INSERT OR REPLACE INTO upload VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)", storage, path.text,
        upload.byteCount, upload.version, upload.sha256, upload.fileState, Int64(upload.isFetched ? 1 : 0))
    }
  }

  func forgetUpload(_ path: RemotePath, in storage: String) throws {
    try durably {
      try connection.run(cached: "DELETE FROM upload WHERE storage = ?1 AND path = ?2", storage, path.text)
    }
  }

  /// True if a file came from a storage.
  func isFetched(_ path: RemotePath) throws -> Bool {
    try reporting {
      try connection.text("SELECT 1 FROM upload WHERE path = ?1 AND fetched", binding: [path.text]) != nil
    }
  }

  /// The paths that this device has uploaded to a folder.
  func uploads(in folder: RemotePath, of storage: String) throws -> [RemotePath] {
    try reporting {
      try connection.rows(of: "SELECT path FROM upload WHERE storage = ?1 AND NOT fetched ORDER BY path", storage) {
        try RemotePath($0.text(at: 0) ?? "")
      }.filter { $0.isIn(folder) }
    }
  }

  // MARK: Inbound files

  /// The record of a downloaded object in the version of a listing; nil for none.
  ///
  /// - Returns: The digests by which the ledger knew it when it had been applied; none before that.
  func download(of object: StoredObject, from storage: String) throws -> Set<String>? {
    try reporting {
      try connection.first(
        ofCached: "SELECT digests FROM inbound WHERE storage = ?1 AND path = ?2 AND version IS ?3 AND bytes = ?4",
        storage, object.path.text, object.version?.text, object.byteCount
      ) { Set(($0.text(at: 0) ?? "").split(separator: " ").map(String.init)) }
    }
  }

  func noteDownload(_ object: StoredObject, from storage: String) throws {
    try changing {
      try connection.run(
        cached: "INSERT OR REPLACE INTO inbound VALUES (?1, ?2, ?3, ?4, NULL)", storage, object.path.text,
        object.version?.text, object.byteCount)
    }
  }

  /// Records the ledger's digests of a downloaded object.
  func note(_ digests: Set<String>, of path: RemotePath, from storage: String) throws {
    try changing {
      try connection.run(
        cached: "UPDATE inbound SET digests = ?3 WHERE storage = ?1 AND path = ?2", storage, path.text,
        digests.sorted().joined(separator: " "))
    }
  }

  func forgetDownload(_ path: RemotePath, from storage: String) throws {
    try changing {
      try connection.run(cached: "DELETE FROM inbound WHERE storage = ?1 AND path = ?2", storage, path.text)
    }
  }

  /// Deletes the records of inbound objects that no longer exist.
  func forgetDownloads(except present: [RemotePath], from storage: String) throws {
    let present = Set(present.map(\.text))
    try changing {
      let known = try connection.rows(of: "SELECT path FROM inbound WHERE storage = ?1", storage) {
        $0.text(at: 0) ?? ""
      }
      for path in known where !present.contains(path) {
        try connection.run(cached: "DELETE FROM inbound WHERE storage = ?1 AND path = ?2", storage, path)
      }
    }
  }

  // MARK: The device

  /// The id of this device for the person's other devices and in names of backups: it belongs to this index in this
  /// home, and to one incarnation of the database. A copy of the home, which is another file at another path or on
  /// another machine, and a restored database are other devices.
  ///
  /// - Parameter incarnation: The incarnation of the database, `-` for none yet; nil for any.
  /// - Returns: 32 hexadecimal digits.
  func device(in incarnation: String?) throws -> String {
    let file = try reporting {
      try FileIdentity.current(at: path)?.file.split(separator: ".").last.map { "\($0)" } ?? "-"
    }
    var host = [CChar](repeating: 0, count: 256)
    gethostname(&host, host.count - 1)
    let place = "\(ContentDigest(of: host.map { UInt8(bitPattern: $0) } + Array(path.utf8)))".prefix(32)
    let known = try setting("device")?.split(separator: " ").map(String.init) ?? []
    let isHere = known.count == 4 && (known[1] == file || known[2] == place)
    let next = incarnation ?? (isHere ? known[3] : "-")
    if isHere, known[3] == "-" || known[3] == next {
      let kept = "\(known[0]) \(file) \(place) \(next)"
      if kept != known.joined(separator: " ") { try set("device", to: kept) }
      return known[0]
    }
    let device = (0..<2).map { _ in
      let digits = String(UInt64.random(in: 0...UInt64.max), radix: 16)
      return String(repeating: "0", count: 16 - digits.utf8.count) + digits
    }.joined()
    try durably {
      // The records of the storage belong to another incarnation.
      try connection.execute("BEGIN; DELETE FROM inbound")
      try connection.run(
        cached: "INSERT OR REPLACE INTO setting VALUES ('device', ?1)", "\(device) \(file) \(place) \(next)")
      if isHere { try connection.run(cached: "INSERT OR REPLACE INTO setting VALUES ('former device', ?1)", known[0]) }
      try connection.execute("COMMIT")
    }
    return device
  }

  // MARK: Settings

  func setting(_ name: String) throws -> String? {
    try reporting { try connection.text("SELECT value FROM setting WHERE name = ?1", binding: [name]) }
  }

  func set(_ name: String, to value: String?) throws {
    try durably {
      if let value {
        try connection.run(cached: "INSERT OR REPLACE INTO setting VALUES (?1, ?2)", name, value)
      } else {
        try connection.run(cached: "DELETE FROM setting WHERE name = ?1", name)
      }
    }
  }

  /// The value of a setting; nil if there is none, or if another version has written it.
  func value<Value: Decodable & Sendable>(_ name: String) throws -> Value? {
    guard let text = try setting(name) else { return nil }
    do { return try JSONDecoder().decode(Value.self, from: Data(text.utf8)) } catch { return nil }
  }

  func keep(_ value: some Encodable & Sendable, as name: String) throws {
    try set(name, to: String(decoding: JSONEncoder().encode(value), as: UTF8.self))
  }
}
