#if GRDB
  import Buckia
  import GRDB

  extension ReplicatedDatabase {
    /// Shares a part of the database with others: the first time all of it, then what has changed since.
    ///
    /// What was sent cannot be rolled back, so this throws inside a transaction of the app.
    ///
    /// ```swift
    /// let scope = ShareScope { SharedTable("notes") }
    /// try queue.withBuckia { buckia in
    ///   try buckia.share(scope, to: [ben], output: .folder("outbox"), signedBy: me)
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - scope: What is shared.
    ///   - recipients: With whom.
    ///   - output: Where the file goes.
    ///   - options: What becomes of rows that have left the scope, and more.
    ///   - identity: Who signs the file.
    ///   - progress: Called with the progress of the comparison. May throw to stop it.
    /// - Returns: What was found and written.
    /// - Throws: As `DatabaseManager.share`.
    @discardableResult
    public func share(
      _ scope: ShareScope, to recipients: [ShareRecipient], output: DiffOutput,
      options: ShareOptions = ShareOptions(), signedBy identity: Identity? = nil,
      progress: @escaping (DiffProgress) throws -> Void = { _ in }
    ) throws -> ShareReport {
      try writing { database, written in
        // What is to be sent is committed before the file is written, which may fail.
        if !options.isDryRun { written.addLedger() }
        return try database.share(
          scope, to: recipients, output: output, options: options, signedBy: identity,
          progress: polling(progress))
      }
    }

    /// Invites one person to get a part of the database.
    ///
    /// - Parameters:
    ///   - scope: What they are going to get.
    ///   - options: Whom it is for, where the files are going to be, and how long it can be answered.
    ///   - identity: Who invites.
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
    ///   - output: Where the answer goes.
    ///   - identity: Who accepts it.
    /// - Throws: As `DatabaseManager.accept`; inside a transaction of the app, too.
    public func accept(
      _ invitation: Invitation, named name: String? = nil, answer output: DiffOutput, as identity: Identity
    ) throws -> AcceptanceReport {
      try writing { database, written in
        written.addLedger()
        return try database.accept(invitation, named: name, answer: output, as: identity)
      }
    }

    /// Copies the database as it is now into a file from which the next difference is made.
    ///
    /// - Parameter path: The file.
    /// - Throws: As `DatabaseManager.snapshot`; inside a transaction of the app, too.
    @discardableResult
    public func snapshot(to path: String) throws -> SnapshotReport {
      try writing { database, _ in try database.snapshot(to: path) }
    }

    /// Writes what turns an older database into this one into a diff file.
    ///
    /// What an open transaction has changed is in it. Tables of GRDB's own are not: in `grdb_migrations` a migrator
    /// notes what it has done to this file, and another person's file has to go through the same migrations itself.
    ///
    /// - Parameters:
    ///   - older: The database as it was; nil for none, so that all rows of this one are INSERTs.
    ///   - output: Where the file goes.
    ///   - options: Which tables, which of their rows and columns, and how.
    ///   - identity: Who signs the file; nil for an unsigned one.
    ///   - progress: Called with the progress of the comparison. May throw to stop it.
    /// - Returns: What was found and written; `id` is nil when there is no difference.
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
          progress: polling(progress))
        if report.id != nil { written.addLedger() }
        return report
      }
    }

    /// The progress callback, which also stops the comparison when it is canceled.
    private func polling(_ progress: @escaping (DiffProgress) throws -> Void) -> (DiffProgress) throws -> Void {
      { [cancellation] in
        try cancellation?.check()
        try progress($0)
      }
    }

    private func tablesOfGRDB() throws -> [TableName] {
      try String.fetchAll(db, sql: "SELECT name FROM main.sqlite_master WHERE type = 'table'")
        .filter(Database.isGRDBInternalTable).map { TableName($0) }
    }
  }
#endif
