import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// How a conflict was resolved after it was recorded. A conflict can be resolved any number of times; each is kept.
public struct ResolutionRecord: Hashable, Codable, Identifiable, Sendable {
  /// A column of a row and its value there; nil where the record holds none.
  public typealias Cell = ConflictRecord.Cell

  /// Its number in this database.
  public let id: Int64
  /// The answer that was given.
  public let answer: ConflictAnswer.Kind
  /// The name of the person who has decided.
  public let decidedBy: String
  /// When, in milliseconds since 1970.
  public let decidedAt: Int64
  /// The row before; nil if there was none.
  public let before: [Cell]?
  /// The row afterwards; nil if there is none.
  public let after: [Cell]?
}

/// One of the two versions of a row that a conflict is about.
public enum ConflictVersion: String, Codable, Sendable, CaseIterable {
  /// The local version.
  case local
  /// The row as the author of the change wants it.
  case incoming
}

/// How a recorded conflict is resolved.
///
/// ```swift
/// try database.resolve([7], taking: .incoming)
/// try database.resolve([8], taking: .values(["title": "Both"]))
/// ```
public enum ConflictAnswer: Equatable, Sendable {
  /// The row gets the local or the incoming version.
  case version(ConflictVersion)
  /// These columns get these values. Other columns keep their values; without a row they get the earlier local or
  /// otherwise the incoming values. The key stays.
  case values([String: ChangesetValue])
  /// The row is not to be there.
  case deletion
  /// Both of two different rows with the same key stay: the missing one is inserted with a new key from the database,
  /// and incoming rows that were left out because they refer to it follow it. An incoming one whose key a
  /// local row has gets a new key, too. For integer keys only.
  case both
  /// The incoming row is the same as the local one that has its UNIQUE value: that one stays, and incoming rows that
  /// were left out because they refer to the other one refer to it. An incoming one whose key a local row has gets a
  /// new key.
  case same

  /// The row gets the exact version before the conflict; without one it is deleted.
  public static let local = version(.local)
  /// The row is to be as the author of the change wants it.
  public static let incoming = version(.incoming)

  /// The recorded kind of the answer.
  package var kind: Kind {
    switch self {
    case .version(.local): .local
    case .version(.incoming): .incoming
    case .values: .values
    case .deletion: .deletion
    case .both: .both
    case .same: .same
    }
  }

  /// The kinds of answers.
  public enum Kind: String, Codable, Sendable {
    /// The local version.
    case local
    /// The incoming version.
    case incoming
    /// Values of their own.
    case values
    /// No row.
    case deletion
    /// Both rows stay, one of them with another key.
    case both
    /// The local row that has the UNIQUE value.
    case same
    /// No answer: both sides had become equal.
    case equal
  }
}

/// The table `buckia_decided`: rows that a person has changed by resolving a conflict, and when.
///
/// If both sides of a conflict take the incoming version, their decisions cross: the one that was shared later counts
/// at both.
package enum DecidedRows {
  static let definition = """
    CREATE TABLE main.buckia_decided(
      table_name TEXT NOT NULL COLLATE NOCASE,
      key BLOB NOT NULL,
      decided_at INTEGER NOT NULL,
      PRIMARY KEY (table_name, key)
    ) WITHOUT ROWID;
    """

  /// Records a row.
  ///
  /// - Parameters:
  ///   - key: The values of its key, in the format of changesets.
  ///   - time: Milliseconds since 1970.
  /// - Throws: `SQLiteError`.
  package static func note(
    _ key: [UInt8], of table: TableName, at time: Int64, on connection: borrowing SQLiteConnection
  ) throws {
    try connection.run(cached: "INSERT OR REPLACE INTO main.buckia_decided VALUES (?1, ?2, ?3)", table.text, key, time)
  }

  /// True if there are any.
  ///
  /// - Throws: `SQLiteError`.
  package static func exist(on connection: borrowing SQLiteConnection) throws -> Bool {
    try connection.cachedInteger("SELECT 1 FROM main.buckia_decided LIMIT 1") != nil
  }

  /// The time of the decision about a row, in milliseconds since 1970; nil for none.
  ///
  /// - Throws: `SQLiteError`.
  package static func time(
    of key: [UInt8], in table: TableName, on connection: borrowing SQLiteConnection
  ) throws -> Int64? {
    try connection.cachedInteger(
      "SELECT decided_at FROM main.buckia_decided WHERE table_name = ?1 AND key = ?2", table.text, key)
  }
}
