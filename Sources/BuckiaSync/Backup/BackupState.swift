import BuckiaBytes
import BuckiaStorage

/// What a storage has of the backup of a database: a whole copy, and the pages that have changed since, delta after delta.
struct BackupState: Sendable, Equatable {
  /// The object with the whole copy.
  var path: RemotePath
  /// Its version, where the storage tells one.
  var version: String?
  /// Its size in bytes.
  var byteCount: Int64
  /// The SHA-256 of the newest state, in hexadecimal.
  var newest: String
  /// How many deltas follow the whole copy.
  var deltas: Int64 = 0
  /// Their size in bytes.
  var deltaBytes: Int64 = 0
  /// In which state the database was that the newest state was copied from.
  var databaseState: String

  /// How many deltas there are at most: each is one more to be read when the database is restored.
  private static let deltaLimit: Int64 = 50

  /// Whether one more delta of this size is worth it.
  func takes(deltaOf bytes: Int64) -> Bool { deltas < Self.deltaLimit && deltaBytes + bytes <= byteCount / 2 }

  /// The text that is kept of it.
  var text: String {
    JSONValue.object(
      JSONObject([
        .init("path", .string(path.text)), .init("version", .text(version)), .init("bytes", .integer(byteCount)),
        .init("newest", .string(newest)), .init("deltas", .integer(deltas)), .init("deltaBytes", .integer(deltaBytes)),
        .init("databaseState", .string(databaseState)),
      ])
    ).text()
  }

  /// Reads what was kept; nil when it is something else.
  init?(_ text: String) {
    do {
      guard case .object(let members) = try JSONParser.parse(Array(text.utf8)),
        case .string(let path)? = members["path"],
        case .integer(let bytes)? = members["bytes"], case .string(let newest)? = members["newest"],
        case .integer(let deltas)? = members["deltas"], case .integer(let deltaBytes)? = members["deltaBytes"],
        case .string(let databaseState)? = members["databaseState"]
      else { return nil }
      self.path = try RemotePath(path)
      if case .string(let version)? = members["version"] { self.version = version }
      byteCount = bytes
      self.newest = newest
      self.deltas = deltas
      self.deltaBytes = deltaBytes
      self.databaseState = databaseState
    } catch {
      // A backup is made anew where it is not known what there is.
      return nil
    }
  }

  init(path: RemotePath, version: String?, byteCount: Int64, newest: String, databaseState: String) {
    self.path = path
    self.version = version
    self.byteCount = byteCount
    self.newest = newest
    self.databaseState = databaseState
  }
}
