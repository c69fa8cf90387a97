import SQLiteConnections

/// The unsent edits of a database, found before the files of others are applied.
///
/// The next difference must have them, and the next snapshot must not. That snapshot is the database after the files
/// have been applied, without the unsent edits: received changes stay in it, also where they met one of these edits and
/// won.
package struct UnsentChanges {
  /// The number of edited rows.
  let count: Int
  /// The changes that lead from the database back to the rows that the recipients have.
  private let reversal: TemporaryBuffer
  private let summary: ChangesetSummary
  /// The tables that they are about.
  private let definitions: [TableDefinition]

  /// Compares the database with the snapshot that was made last.
  ///
  /// - Parameters:
  ///   - connection: The database.
  ///   - path: The snapshot.
  /// - Returns: nil without a snapshot that Buckia has made: everything counts as sent then.
  init?(in connection: borrowing SQLiteConnection, since path: String) throws {
    guard FileSystem.exists(path), FileKind(of: path) == .sqlite else { return nil }
    try self.init(in: connection, since: RowSource(opening: path))
  }

  /// The same with an open snapshot.
  ///
  /// - Parameters:
  ///   - connection: The database.
  ///   - known: The snapshot.
  /// - Returns: nil if Buckia has not made the snapshot.
  package init?(in connection: borrowing SQLiteConnection, since known: RowSource) throws {
    guard try SentChanges.areKept(in: known.connection) else { return nil }
    let sent = try SentChanges.read(from: known.connection)
    let back = try Self.reversal(from: known, to: RowSource(on: connection))
    let whole = TemporaryBuffer()
    var joined: TemporaryBuffer?
    do {
      try Changesets.concatenate([back, sent], into: whole)
      joined = whole
    } catch is ChangesetError {}
    let schema = try SchemaReader(connection)
    if let joined, let found = try Self.definitions(of: joined, schema, known) {
      reversal = joined
      definitions = found
    } else {
      // Tables have got other columns since.
      reversal = try Self.reversal(from: known, after: sent, to: RowSource(on: connection)) ?? back
      definitions = try Self.definitions(of: reversal, schema, known) ?? []
    }
    summary = try ChangesetSummary.of(reversal)
    count = summary.tables.reduce(0) { $0 + $1.changeCount }
  }

  /// The changes that lead back from a database.
  private static func reversal(from known: RowSource, to newer: RowSource) throws -> TemporaryBuffer {
    let back = TemporaryBuffer()
    try Changesets.invert(DatabaseComparison.run(from: known, to: newer).changeset, into: back)
    return back
  }

  /// The changes that lead from a database back to the rows that the recipients have after applying sent changes, in
  /// the present columns of the tables.
  ///
  /// - Returns: nil if the sent changes have other columns than the snapshot. They are sent again then, which has no
  ///   effect for recipients that have them.
  private static func reversal(
    from known: RowSource, after sent: TemporaryBuffer, to newer: RowSource
  ) throws -> TemporaryBuffer? {
    // A temporary file of SQLite, unless the changes came encrypted.
    let copy = try SQLiteConnection(opening: TemporaryBuffer.sealing == nil ? "" : ":memory:", as: .create)
    try known.connection.copy(to: copy)
    let schema = try SchemaReader(copy)
    let tables = try ChangesetSummary.of(sent).tables.map { TableName($0.table.name) }
    guard tables.allSatisfy({ schema.entry(named: $0) != nil }),
      let definitions = try definitions(of: sent, schema, known)
    else { return nil }
    do {
      try sent.applyPlainly(definitions, to: copy, conflicts: .takeIncoming)
    } catch let error as any FileFault where error.refusal != nil {
      return nil
    }
    return try reversal(from: RowSource(on: copy), to: newer)
  }

  /// The tables of a changeset; nil if any of them has other columns there.
  private static func definitions(
    of changeset: TemporaryBuffer, _ schema: SchemaReader, _ known: RowSource
  ) throws -> [TableDefinition]? {
    let tables = try ChangesetSummary.of(changeset).tables
    let definitions = try tables.map { table in
      guard let entry = schema.entry(named: TableName(table.table.name)) else {
        throw BuckiaError(
          .missingTable,
          "table \"\(table.table.name)\" was sent since this snapshot, and is gone now; make another one",
          path: known.connection.path)
      }
      return try schema.definition(of: entry)
    }
    let isSame = zip(tables, definitions).allSatisfy { $0.table.columnCount == $1.keyFlags.count }
    return isSame ? definitions : nil
  }

  /// The changes, for the policy `latest`, under which they count as later than all that arrives.
  package func edits(on connection: borrowing SQLiteConnection) throws -> UnsentEdits {
    try UnsentEdits(takenBackBy: reversal, definitions, on: connection)
  }

  /// Removes the edits from a copy of the database. A row that has changed since stays unchanged.
  ///
  /// - Parameter copy: The copy, without the ledger.
  /// - Throws: `BuckiaError` when they do not fit it; `SQLiteError` when it cannot be written. It is unchanged then.
  func remove(from copy: borrowing SQLiteConnection) throws {
    guard !reversal.isEmpty else { return }
    do {
      // The recipients' row may have a UNIQUE value that another row has got since.
      try reversal.applyPlainly(definitions, summary, to: copy, conflicts: .keepLocal)
    } catch let error as any FileFault where error.refusal != nil {
      let reason = error.refusal?.reason ?? ""
      throw BuckiaError(
        .unsupported, "unsent changes cannot be distinguished from sent ones: \(reason)", path: copy.path)
    }
  }
}

/// The changes that were sent since a snapshot was made, which the snapshot itself stores: together they give the rows
/// that the recipients have.
///
/// By them, sent and unsent changes are distinguished when the next files are applied.
struct SentChanges {
  /// The table is in snapshots only, and marks them as such.
  private static let table = "main.buckia_sent"
  private static let pieceBytes = 1 << 20

  /// Creates the table in a new snapshot: nothing was sent since.
  static func begin(in snapshot: borrowing SQLiteConnection) throws {
    try snapshot.execute("CREATE TABLE \(table)(piece INTEGER PRIMARY KEY, bytes BLOB NOT NULL)")
  }

  /// True if a database is a snapshot that Buckia has made.
  static func areKept(in database: borrowing SQLiteConnection) throws -> Bool {
    try database.integer("SELECT 1 FROM main.sqlite_schema WHERE type = 'table' AND name = 'buckia_sent'") != nil
  }

  /// Records the sent changes: the difference from the snapshot to the database at that time.
  ///
  /// - Parameter snapshot: The side of the comparison that the snapshot was.
  static func note(_ changeset: TemporaryBuffer, in snapshot: RowSource) throws {
    // A file is compared through a connection that only reads.
    guard snapshot.isFile else { return try note(changeset, in: snapshot.connection) }
    try note(changeset, in: SQLiteConnection(opening: snapshot.connection.path, as: .readWrite))
  }

  private static func note(_ changeset: TemporaryBuffer, in snapshot: borrowing SQLiteConnection) throws {
    let transaction = try SQLiteTransaction(on: snapshot)
    try snapshot.execute("DELETE FROM \(table)")
    let insert = try snapshot.prepare("INSERT INTO \(table)(bytes) VALUES (?1)", isPersistent: true)
    try changeset.forEachPiece { bytes in
      for start in stride(from: 0, to: bytes.count, by: pieceBytes) {
        let piece = UnsafeRawBufferPointer(rebasing: bytes[start..<min(bytes.count, start + pieceBytes)])
        try insert.bind(blobCopying: piece, at: 0)
        try insert.run()
      }
    }
    try transaction.commit()
  }

  /// Deletes the sent changes, which are part of the snapshot now.
  static func clear(in snapshot: borrowing SQLiteConnection) throws { try snapshot.execute("DELETE FROM \(table)") }

  /// The recorded changeset; empty if nothing was sent since the snapshot was made.
  static func read(from snapshot: borrowing SQLiteConnection) throws -> TemporaryBuffer {
    let changeset = TemporaryBuffer()
    try snapshot.forEachRow(of: "SELECT bytes FROM \(table) ORDER BY piece") {
      try changeset.write($0.blobBytes(at: 0))
    }
    return changeset
  }
}

extension TemporaryBuffer {
  /// Applies the changeset to a copy of the database without a ledger. It records no conflicts. A row gives way to
  /// another row of the changeset with the same UNIQUE value.
  ///
  /// - Parameters:
  ///   - definitions: Its tables, in its order.
  ///   - summary: The summary of the changeset; nil if it is not known yet.
  ///   - copy: The copy.
  ///   - conflicts: The policy for rows that differ.
  /// - Throws: A fault with a refusal when it does not fit the copy; `SQLiteError`. The copy is unchanged then.
  func applyPlainly(
    _ definitions: [TableDefinition], _ summary: ChangesetSummary? = nil, to copy: borrowing SQLiteConnection,
    conflicts: ConflictPolicies
  ) throws {
    var settings = ApplySettings(policies: conflicts, schema: .exact, recordsConflicts: false, time: 0)
    settings.keepsLedger = false
    settings.makesRoom = true
    settings.indexPolicy = .keep
    let incoming = IncomingChanges(
      key: LedgerKey(sender: "", id: nil, digest: [], isRaw: true), file: "", definitions: definitions,
      changeset: self, feed: ChangesetFeed(try summary ?? ChangesetSummary.of(self)))
    let connection = SQLiteConnection(sharing: copy)
    let session = settings.session(on: connection)
    let transaction = try SQLiteTransaction(on: connection)
    try session.whileReady {
      let plan = try Receiver.plan(incoming, on: connection, settings: settings, session: session)
      _ = try plan.apply(in: transaction)
    }
    try transaction.commit()
  }
}
