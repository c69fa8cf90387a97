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

  /// Calls `body` with all ledger entries, oldest first, without loading all of them into memory.
  ///
  /// - Parameter body: Receives an entry. May throw to stop.
  /// - Throws: `BuckiaError` when the database cannot be read, or has a newer ledger; whatever `body` throws.
  public func forEachLogEntry(_ body: (LedgerEntry) throws -> Void) throws {
    let senders = try home.knownSenders()
    try withLedger(or: ()) { connection in
      try LedgerEntries.forEach(naming: senders, on: connection, body)
    }
  }

  /// The newest entries of the ledger, oldest first, and how many there are in all.
  ///
  /// - Parameter count: The most entries.
  /// - Throws: `BuckiaError` when the database cannot be read, or has a newer ledger.
  public func log(newest count: Int) throws -> (entries: [LedgerEntry], total: Int) {
    let senders = try home.knownSenders()
    return try withLedger(or: ([], 0)) { connection in
      return try (LedgerEntries.newest(count, naming: senders, on: connection), LedgerEntries.count(on: connection))
    }
  }

  /// The last ledger entry of each of some files, by their names.
  ///
  /// - Parameter files: Their names, without folders, and the ids that they go by.
  /// - Throws: `BuckiaError` when the database cannot be read, or has a newer ledger.
  package func lastLogEntries(ofFiles files: [(name: String, id: KSUID)]) throws -> [String: LedgerEntry] {
    let senders = try home.knownSenders()
    return try withLedger(or: [:]) { connection in
      var entries: [String: LedgerEntry] = [:]
      for (name, id) in files {
        entries[name] = try LedgerEntries.last(of: id, file: name, naming: senders, on: connection)
      }
      return entries
    }
  }

  /// The digests in the ledger of files that are in the database: applied, or held for an upgrade.
  ///
  /// - Parameter ids: The ids that they go by.
  /// - Returns: The digests of each file in hexadecimal; several if senders have used the same id.
  /// - Throws: `BuckiaError` when the database cannot be read, or has a newer ledger.
  package func settledDigests(of ids: [KSUID]) throws -> [KSUID: Set<String>] {
    guard !ids.isEmpty else { return [:] }
    return try withLedger(or: [:]) { connection in
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

extension DatabaseManager {
  /// Tells which diffs have set the columns of a row last.
  ///
  /// ```swift
  /// let origin = try database.origin(ofRowIn: "notes", key: ["id": .integer(7)])
  /// for column in origin.columns { print(column.name, column.source?.sender ?? "from the beginning") }
  /// ```
  ///
  /// - Parameters:
  ///   - table: The table. It must have a clock: see ``keepClocks(of:)``.
  ///   - key: A value for each column of its primary key, or for `_rowid_` without one.
  /// - Throws: `BuckiaError`: `noSuchTable`; `noClock`; `columnsDiffer` where the values are not those of the key; as
  ///   ``BuckiaHome/contacts()``.
  public func origin(ofRowIn table: String, key: [String: ChangesetValue]) throws -> RowOrigin {
    let senders = try home.knownSenders()
    return try withReader { connection in
      let schema = try SchemaReader(connection)
      guard let definition = try schema.table(named: TableName(table)) else {
        throw BuckiaError(.noSuchTable, "there is no table \"\(EscapedText(table, limit: 100))\"", path: path)
      }
      let names = definition.changesetColumns
      let keyNames = definition.keyIndexes.map { names[$0] }
      let values = keyNames.compactMap { name in key.first { ASCIIName.matches($0.key, name) }?.value }
      guard values.count == keyNames.count, key.count == keyNames.count else {
        throw BuckiaError(
          .columnsDiffer, "the key of table \"\(definition.name)\" is \(keyNames.joined(separator: ", "))", path: path)
      }
      guard let history = try RowHistory(of: values, in: definition, on: connection) else {
        throw BuckiaError(
          .noClock, "table \"\(definition.name)\" has no clock, which would record the diffs that changed its rows",
          path: path)
      }
      var sources: [Int64: RowOrigin.Source] = [:]
      for rowVersion in [history.rowVersion] + history.setters {
        guard let rowVersion, sources[rowVersion.number] == nil else { continue }
        sources[rowVersion.number] = try Self.source(of: rowVersion, senders, on: connection)
      }
      return RowOrigin(
        table: definition.name, exists: history.values != nil,
        source: history.rowVersion.flatMap { sources[$0.number] },
        columns: history.columns.indices.map { place in
          RowOrigin.Column(
            name: history.columns[place], value: history.values?[place],
            source: history.setters[place].flatMap { sources[$0.number] })
        })
    }
  }

  private static func source(
    of rowVersion: RowVersion, _ senders: KnownSenders, on connection: borrowing SQLiteConnection
  ) throws -> RowOrigin.Source {
    switch try RowClocks.source(of: rowVersion.number, on: connection) {
    case .own:
      return RowOrigin.Source(
        diff: rowVersion.diff, sender: LedgerEntries.shown(sender: LedgerEntries.ownSender), isClaimed: false,
        appliedAt: nil)
    case .claimed(let carrier):
      // Any diff can claim that a change comes from another sender's diff, which is why the sender of the claiming diff
      // is named.
      let entry = try carrier.flatMap { try LedgerEntries.applied($0, on: connection) }
      return RowOrigin.Source(
        diff: rowVersion.diff, sender: senders.shown(entry?.sender ?? LedgerEntries.ownSender), isClaimed: true,
        appliedAt: entry?.time)
    case .applied, nil:
      let entry = try LedgerEntries.applied(rowVersion.diff, on: connection)
      return RowOrigin.Source(
        diff: rowVersion.diff, sender: senders.shown(entry?.sender ?? ""), isClaimed: false, appliedAt: entry?.time)
    }
  }
}

/// Where a row comes from: which diffs have set its columns last.
public struct RowOrigin: Hashable, Codable, Sendable {
  /// A diff that has changed a row.
  public struct Source: Hashable, Codable, Sendable {
    /// The diff's id. It stays the same however often the change is passed on.
    public let diff: KSUID
    /// The sender, for people: a contact's name, "unsigned", "key …" with the verified key, or "this database" if the
    /// diff was made from it. If ``isClaimed`` is true, the sender of the diff that names ``diff`` as the origin of the
    /// change.
    public let sender: String
    /// True if only another applied diff claims that the change comes from ``diff``. Its sender may have relayed the
    /// change, or made the origin up.
    public let isClaimed: Bool
    /// When the diff of the sender was applied here, in milliseconds since 1970; nil for one that was made from this database.
    public let appliedAt: Int64?
  }

  /// A column, and where its value comes from.
  public struct Column: Hashable, Codable, Sendable {
    /// The name of the column.
    public let name: String
    /// The value; nil if the row does not exist.
    public let value: ChangesetValue?
    /// The diff that has set the column last; nil if none has: the value is original, or an unsent edit.
    public let source: Source?
  }

  /// The table.
  public let table: String
  /// True if the row is there.
  public let exists: Bool
  /// The diff that has inserted the existing row, or deleted the missing one; nil for none.
  public let source: Source?
  /// The columns in the order of the table.
  public let columns: [Column]
}
