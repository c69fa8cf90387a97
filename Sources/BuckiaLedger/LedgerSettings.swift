import SQLiteConnections

/// Who is trusted. The mode is kept in the database and never falls back by itself.
public enum TrustMode: String, Sendable, CaseIterable {
  /// Diff files of any origin are applied.
  case any
  /// Only diff files signed by a known contact are applied.
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

  /// The trust mode of this database; `known` where the table holds something that this version does not know.
  package static func trust(on connection: borrowing SQLiteConnection) throws -> TrustMode {
    let text = try connection.text("SELECT value FROM main.buckia_settings WHERE name = 'trust'") ?? ""
    return TrustMode(rawValue: text) ?? .known
  }

  /// Sets the trust mode of this database.
  package static func setTrust(_ trust: TrustMode, on connection: borrowing SQLiteConnection) throws {
    try connection.run(cached: "UPDATE main.buckia_settings SET value = ?1 WHERE name = 'trust'", trust.rawValue)
  }
}
