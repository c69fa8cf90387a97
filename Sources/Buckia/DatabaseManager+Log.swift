import BuckiaBytes
import BuckiaLedger
import SQLiteConnections

extension DatabaseManager {
  /// Everything the ledger holds, oldest first. Empty for a database without one.
  ///
  /// A ledger can have millions of entries: see ``forEachLogEntry(_:)`` and ``log(newest:)``.
  ///
  /// - Throws: `BuckiaError` when the database cannot be read, or has a newer ledger; as ``BuckiaHome/contacts()``.
  public func log() throws -> [LedgerEntry] {
    var entries: [LedgerEntry] = []
    try forEachLogEntry { entries.append($0) }
    return entries
  }

  /// Gives everything the ledger holds to `body`, oldest first, without having all of it in memory.
  ///
  /// - Parameter body: Takes an entry. May throw to stop.
  /// - Throws: `BuckiaError` when the database cannot be read, or has a newer ledger; whatever `body` throws.
  public func forEachLogEntry(_ body: (LedgerEntry) throws -> Void) throws {
    let senders = try home.knownSenders()
    try withReader { connection in
      guard try Ledger.exists(on: connection) else { return }
      try LedgerEntries.forEach(naming: senders, on: connection, body)
    }
  }

  /// The newest entries of the ledger, oldest first, and how many there are in all.
  ///
  /// - Parameter count: How many are wanted at most.
  /// - Throws: `BuckiaError` when the database cannot be read, or has a newer ledger.
  public func log(newest count: Int) throws -> (entries: [LedgerEntry], total: Int) {
    let senders = try home.knownSenders()
    return try withReader { connection in
      guard try Ledger.exists(on: connection) else { return ([], 0) }
      return try (LedgerEntries.newest(count, naming: senders, on: connection), LedgerEntries.count(on: connection))
    }
  }

  /// What was recorded last of each of some files, by their names.
  ///
  /// - Parameter files: Their names, without folders, and the ids that they go by.
  /// - Throws: `BuckiaError` when the database cannot be read, or has a newer ledger.
  package func lastLogEntries(ofFiles files: [(name: String, id: KSUID)]) throws -> [String: LedgerEntry] {
    let senders = try home.knownSenders()
    return try withReader { connection in
      guard try Ledger.exists(on: connection) else { return [:] }
      var entries: [String: LedgerEntry] = [:]
      for (name, id) in files {
        entries[name] = try LedgerEntries.last(of: id, file: name, naming: senders, on: connection)
      }
      return entries
    }
  }

  /// By which digests the ledger knows files that are in the database: applied, or held for an upgrade.
  ///
  /// - Parameter ids: The ids that they go by.
  /// - Returns: The digests of each in hexadecimal; several where senders have used one id.
  /// - Throws: `BuckiaError` when the database cannot be read, or has a newer ledger.
  package func settledDigests(of ids: [KSUID]) throws -> [KSUID: Set<String>] {
    guard !ids.isEmpty else { return [:] }
    return try withReader { connection in
      guard try Ledger.exists(on: connection) else { return [:] }
      var digests: [KSUID: Set<String>] = [:]
      for id in ids {
        let query = """
          SELECT lower(hex(digest)) FROM main.buckia_ledger WHERE state IN ('applied', 'held') AND diff = ?1
          """
        try connection.forEachRow(of: query, binding: [id.description]) { row in
          digests[id, default: []].insert(row.text(at: 0) ?? "")
        }
      }
      return digests
    }
  }
}
