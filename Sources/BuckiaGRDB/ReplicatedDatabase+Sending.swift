#if GRDB
  import Buckia
  import GRDB

  extension ReplicatedDatabase {
    /// Shares a part of the database with others: at first all of its rows, then the changes since the last time.
    ///
    /// It throws inside a transaction of the app, since a sent file cannot be rolled back.
    ///
    /// ```swift
    /// let scope = ShareScope { SharedTable("notes") }
    /// try queue.withBuckia { buckia in
    ///   try buckia.share(scope, to: [ben], output: .folder("outbox"), signedBy: me)
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - scope: The shared part.
    ///   - recipients: With whom.
    ///   - output: The path for the file.
    ///   - options: What becomes of rows that have left the scope, and more.
    ///   - identity: The signer of the file.
    ///   - progress: Called with the progress of the comparison. May throw to stop it.
    /// - Returns: The changes and the written file.
    /// - Throws: As `DatabaseManager.share`.
    @discardableResult
    public func share(
      _ scope: ShareScope, to recipients: [ShareRecipient], output: DiffOutput,
      options: ShareOptions = ShareOptions(), signedBy identity: Identity? = nil,
      progress: @escaping (DiffProgress) throws -> Void = { _ in }
    ) throws -> ShareReport {
      try writing { database, written in
        // The changes are recorded as sent and committed before the file is written, which may fail.
        if !options.isDryRun { written.addLedger() }
        return try database.share(
          scope, to: recipients, output: output, options: options, signedBy: identity,
          progress: {
            try database.poll()
            try progress($0)
          })
      }
    }

    /// Invites one person to get a part of the database.
    ///
    /// - Parameters:
    ///   - scope: The offered part.
    ///   - options: The recipient, the place for the files, and the expiry.
    ///   - identity: The inviter.
    /// - Throws: As `DatabaseManager.invite`; inside a transaction of the app, too.
    public func invite(
      _ scope: ShareScope, options: InvitationOptions = InvitationOptions(), as identity: Identity
    ) throws -> InvitationReport {
      try writing { database, written in
        written.addLedger()
        return try database.invite(scope, options: options, as: identity)
      }
    }

    /// Accepts an invitation: trusts its author, and writes the answer.
    ///
    /// - Parameters:
    ///   - invitation: The invitation.
    ///   - name: The contact name of its author; nil for the name on their card.
    ///   - output: The path for the answer.
    ///   - identity: The person who accepts it.
    /// - Throws: As `DatabaseManager.accept`; inside a transaction of the app, too.
    public func accept(
      _ invitation: Invitation, named name: String? = nil, answer output: DiffOutput, as identity: Identity
    ) throws -> AcceptanceReport {
      try writing { database, written in
        written.addLedger()
        return try database.accept(invitation, named: name, answer: output, as: identity)
      }
    }

    /// Copies the present database into a file, with which the next diff is computed.
    ///
    /// - Parameter path: The file.
    /// - Throws: As `DatabaseManager.snapshot`; inside a transaction of the app, too.
    @discardableResult
    public func snapshot(to path: String) throws -> SnapshotReport {
      try writing { database, _ in try database.snapshot(to: path) }
    }

    /// Writes a diff file that changes an older database into this one.
    ///
    /// It has the changes of an open transaction. It lacks GRDB's own tables: in `grdb_migrations` a migrator records
    /// the migrations of this file, and another person's file must go through the same migrations itself.
    ///
    /// - Parameters:
    ///   - older: The older database; nil for none: all rows of this one are then INSERTs.
    ///   - output: The path for the file.
    ///   - options: The tables, rows and columns, and the properties of the file.
    ///   - identity: The signer of the file; nil for an unsigned one.
    ///   - progress: Called with the progress of the comparison. May throw to stop it.
    /// - Returns: The changes and the written file; `id` is nil if there is no difference.
    /// - Throws: As `DatabaseManager.createDatabaseDiff`.
    @discardableResult
    public func createDatabaseDiff(
      since older: String?, output: DiffOutput, options: DiffOptions = DiffOptions(),
      signedBy identity: Identity? = nil,
      progress: @escaping (DiffProgress) throws -> Void = { _ in }
    ) throws -> DiffReport {
      var options = options
      options.excludedTables.formUnion(try tablesOfGRDB())
      return try writing { database, written in
        let report = try database.createDatabaseDiff(
          since: older, output: output, options: options, signedBy: identity,
          progress: {
            try database.poll()
            try progress($0)
          })
        if report.id != nil { written.addLedger() }
        return report
      }
    }

    private func tablesOfGRDB() throws -> [TableName] {
      try String.fetchAll(db, sql: "SELECT name FROM main.sqlite_master WHERE type = 'table'")
        .filter(Database.isGRDBInternalTable).map { TableName($0) }
    }
  }
#endif
