import SQLiteConnections

/// An error of comparing, planning or applying that is not SQLite's: what happened, to which table, and what to do.
package struct ReplicationError: Error, Sendable, CustomStringConvertible {
  /// What kind of error.
  package let code: BuckiaErrorCode
  /// A sentence for people.
  package let message: String
  /// The table, when there is one.
  package let table: String?
  /// The column, when there is one.
  package let column: String?
  /// The error behind this one, when there is one.
  package let cause: (any Error)?

  /// Makes an error.
  package init(
    _ code: BuckiaErrorCode, _ message: String, table: String? = nil, column: String? = nil, cause: (any Error)? = nil
  ) {
    self.code = code
    self.message = message
    self.table = table
    self.column = column
    self.cause = cause
  }

  /// Says that the application's transaction is gone, and why.
  package static func transactionLost(_ cause: any Error) -> ReplicationError {
    ReplicationError(
      .transactionLost,
      "SQLite has rolled back the whole transaction, also what the application did in it before: \(cause)", cause: cause
    )
  }

  /// Says that nothing can be applied inside the application's transaction as it stands.
  package static let deferredViolations = ReplicationError(
    .deferredViolations,
    "the open transaction has rows that refer to others which are not there yet (deferred foreign keys); write those rows "
      + "first, or apply in a transaction of its own")

  /// Says why a diff may not create a table.
  static func mayNotCreate(_ table: TableDefinition, _ reason: String) -> ReplicationError {
    ReplicationError(.refusedDefinition, "table \"\(table.name)\" may not be created: \(reason)", table: table.name)
  }

  /// The sentence for people.
  package var description: String { message }
}

/// What kind of error. Each code is a word that stays, as `--json` prints it. More may come.
public struct BuckiaErrorCode: Hashable, Codable, RawRepresentable, Sendable {
  /// The word.
  public let rawValue: String
  /// Makes a code.
  public init(rawValue: String) { self.rawValue = rawValue }

  /// The code of an error of SQLite's: `busy`, or `sqlite-` and the extended result code.
  package init(_ error: SQLiteError) { rawValue = error.isBusy ? Self.busy.rawValue : "sqlite-\(error.code)" }

  // MARK: Files

  /// A path that was named does not exist.
  public static let noSuchFile = Self(rawValue: "no-such-file")
  /// The system does not let a file be read.
  public static let unreadable = Self(rawValue: "unreadable")
  /// A folder cannot be listed.
  public static let unreadableFolder = Self(rawValue: "unreadable-folder")
  /// A file of that name exists, and was not to be replaced.
  public static let alreadyExists = Self(rawValue: "alreadyExists")
  /// A file of that name exists, and is none that may be replaced.
  public static let notReplaceable = Self(rawValue: "not-replaceable")
  /// A file or a folder cannot be written or made.
  public static let unwritable = Self(rawValue: "unwritable")
  /// The file is encrypted, and this version cannot open it.
  public static let encrypted = Self(rawValue: "encrypted")
  /// The sender is not trusted in this database.
  public static let untrusted = Self(rawValue: "untrusted")
  /// It brings more than may come without a person who has let it through.
  public static let overLimit = Self(rawValue: "overLimit")
  /// A file before it cannot be read for now, and it must not pass that by.
  public static let behindUnread = Self(rawValue: "behind-unread")
  /// The id lies in the future.
  public static let fromTheFuture = Self(rawValue: "from-the-future")
  /// The diff before it in its stream has not been applied.
  public static let missingPredecessor = Self(rawValue: "missing-predecessor")
  /// Another diff has its place in its stream.
  public static let forkedStream = Self(rawValue: "forked-stream")
  /// The diff that it names as the one before it is another than the one that was applied.
  public static let otherPredecessor = Self(rawValue: "other-predecessor")
  /// A snapshot has taken the place of its stream.
  public static let endedStream = Self(rawValue: "ended-stream")
  /// A diff was made before its sender knew of deletions that are forgotten here.
  public static let forgottenDeletions = Self(rawValue: "forgotten-deletions")
  /// The same changes were applied before.
  public static let alreadyApplied = Self(rawValue: "already-applied")
  /// Another file with the same sender and id was applied.
  public static let equivocation = Self(rawValue: "equivocation")
  /// The file belongs to another shared database than the one that it was applied to, or files of several were to be made one.
  public static let otherDataset = Self(rawValue: "other-dataset")
  /// The file seems to come from a copy of the database, which was not declared as one.
  public static let fromCopy = Self(rawValue: "from-copy")
  /// The database belongs to a dataset already.
  public static let datasetExists = Self(rawValue: "dataset-exists")
  /// The file names table definitions that did not travel along.
  public static let unknownSchema = Self(rawValue: "unknown-schema")
  /// Two files describe one table differently.
  public static let definitionsDiffer = Self(rawValue: "definitions-differ")
  /// A diff file needs the definitions of its tables, and what it is to be made of has none.
  public static let noDefinitions = Self(rawValue: "no-definitions")
  /// A file holds more than a new one made of it can keep.
  public static let carriesMore = Self(rawValue: "carries-more")
  /// The changes have no id, and need one.
  public static let noID = Self(rawValue: "no-id")
  /// The file asks for something this version cannot do.
  public static let unsupported = Self(rawValue: "unsupported")

  // MARK: Identities and contacts

  /// No identity has been made.
  public static let noIdentity = Self(rawValue: "no-identity")
  /// There is an identity already.
  public static let identityExists = Self(rawValue: "identity-exists")
  /// Others can read or change a file that must be private.
  public static let notPrivate = Self(rawValue: "not-private")
  /// The identity is protected by a passphrase, which was not given.
  public static let passphraseNeeded = Self(rawValue: "passphrase-needed")
  /// A file of Buckia's own is not as it writes it.
  public static let invalidFile = Self(rawValue: "invalid-file")
  /// A card or a rotation of keys is not in order.
  public static let invalidCard = Self(rawValue: "invalid-card")
  /// A signature is not that of the key.
  public static let badSignature = Self(rawValue: "badSignature")
  /// A newer version has made it.
  public static let unsupportedFormat = Self(rawValue: "unsupportedFormat")
  /// A name that no identity and no contact may have.
  public static let invalidName = Self(rawValue: "invalid-name")
  /// There is no contact of that name.
  public static let noSuchContact = Self(rawValue: "no-such-contact")
  /// Another contact has that name or key.
  public static let contactExists = Self(rawValue: "contact-exists")
  /// The key of the sender was removed or replaced, which is final.
  public static let endedKey = Self(rawValue: "ended-key")
  /// The card is the person's own.
  public static let ownKey = Self(rawValue: "own-key")
  /// The contact has another fingerprint than the one that was compared.
  public static let otherFingerprint = Self(rawValue: "other-fingerprint")
  /// A raw changeset was to be signed, which it cannot be.
  public static let cannotSign = Self(rawValue: "cannot-sign")

  // MARK: Invitations

  /// An invitation, or the answer to one, is not in order.
  public static let invalidInvitation = Self(rawValue: "invalid-invitation")
  /// An invitation is not taken any more.
  public static let expiredInvitation = Self(rawValue: "expired-invitation")
  /// Somebody else has used an invitation.
  public static let usedInvitation = Self(rawValue: "used-invitation")
  /// An answer does not prove that its author had the invitation.
  public static let wrongProof = Self(rawValue: "wrong-proof")
  /// An invitation was made before its database was copied or restored from a backup.
  public static let voidInvitation = Self(rawValue: "void-invitation")

  // MARK: Encryption

  /// None of the identities, nor the passphrase, opens the encrypted file.
  public static let noMatchingIdentity = Self(rawValue: "noMatchingIdentity")
  /// The encrypted file is damaged, cut off or forged.
  public static let alteredPayload = Self(rawValue: "alteredPayload")
  /// The file is not encrypted, or in a way that is not known here.
  public static let notEncrypted = Self(rawValue: "notEncrypted")
  /// A text is no recipient.
  public static let invalidRecipient = Self(rawValue: "invalidRecipient")
  /// A text is no identity.
  public static let invalidIdentity = Self(rawValue: "invalidIdentity")
  /// The diff was made for others.
  public static let notAddressed = Self(rawValue: "not-addressed")
  /// Somebody has no key that could be encrypted for, or SQLite would write what is encrypted into temporary files in clear.
  public static let cannotEncrypt = Self(rawValue: "cannot-encrypt")
  /// Recipients that may not share a file.
  public static let mixedRecipients = Self(rawValue: "mixedRecipients")

  // MARK: Undo

  /// No diff with this id is in the ledger.
  public static let noSuchDiff = Self(rawValue: "no-such-diff")
  /// A text names no sender of diffs in the ledger, and no contact.
  public static let noSuchSender = Self(rawValue: "no-such-sender")
  /// It has been taken back before.
  public static let alreadyUndone = Self(rawValue: "already-undone")
  /// What it did is not kept any more, or never was.
  public static let notKept = Self(rawValue: "not-kept")

  /// Rows that refer to the local row would refer to another one with its key.
  public static let repointsRows = Self(rawValue: "repoints-rows")

  // MARK: Databases

  /// The database does not exist.
  public static let noDatabase = Self(rawValue: "no-database")
  /// The file is no SQLite database, or an encrypted one.
  public static let notADatabase = Self(rawValue: "sqlite-26")
  /// A borrowed database was used outside its closure, or on another thread.
  public static let misuse = Self(rawValue: "misuse")
  /// The database is locked by another program.
  public static let busy = Self(rawValue: "busy")
  /// A newer version of Buckia made the ledger tables.
  public static let newerLedger = Self(rawValue: "newer-ledger")
  /// The ledger tables are not as Buckia makes them.
  public static let alteredLedger = Self(rawValue: "altered-ledger")
  /// A part of the database is damaged.
  public static let damagedDatabase = Self(rawValue: "damaged-database")
  /// SQLite has rolled back the app's transaction, with all the app did in it.
  public static let transactionLost = Self(rawValue: "transaction-lost")
  /// The app's transaction has violations of deferred foreign keys open, and the connection enforces foreign keys.
  public static let deferredViolations = Self(rawValue: "deferred-violations")
  /// The caller stopped the work.
  public static let cancelled = Self(rawValue: "cancelled")

  /// Two databases were to be compared that share no table.
  public static let nothingInCommon = Self(rawValue: "nothing-in-common")

  // MARK: Tables

  /// A table that was named is in neither database.
  public static let noSuchTable = Self(rawValue: "no-such-table")
  /// A table has no clock, which would say which diffs have changed its rows.
  public static let noClock = Self(rawValue: "no-clock")
  /// A condition that is no SQL expression over its table, or a column that cannot be left out.
  public static let invalidSelection = Self(rawValue: "invalid-selection")
  /// What is to be shared is not said in a way that can be followed.
  public static let invalidScope = Self(rawValue: "invalid-scope")
  /// A diff names a table that no diff may change.
  public static let refusedTable = Self(rawValue: "refused-table")
  /// A table is missing here and its definition did not travel.
  public static let missingTable = Self(rawValue: "missing-table")
  /// The primary keys differ.
  public static let keyDiffers = Self(rawValue: "key-differs")
  /// The columns do not fit.
  public static let columnsDiffer = Self(rawValue: "columns-differ")
  /// A table with AUTOINCREMENT has no ids left to give out.
  public static let noIDsLeft = Self(rawValue: "no-ids-left")
  /// The schema would have to change, and the mode does not allow it.
  public static let schemaDiffers = Self(rawValue: "schema-differs")
  /// A definition may not be created.
  public static let refusedDefinition = Self(rawValue: "refused-definition")
  /// A conflict was met under the policy `abort`, or a resolver said so.
  public static let conflict = Self(rawValue: "conflict")

  // MARK: Resolving conflicts

  /// There is no conflict with that number.
  public static let noSuchConflict = Self(rawValue: "no-such-conflict")
  /// There is no rule with that number.
  public static let noSuchRule = Self(rawValue: "no-such-rule")
  /// The row has been changed since the conflict was met.
  public static let rowChanged = Self(rawValue: "row-changed")
  /// A constraint or a trigger refuses the row.
  public static let rowRefused = Self(rawValue: "row-refused")
  /// The row would refer to one that is not there, or that is another one here than its author means.
  public static let brokenReference = Self(rawValue: "broken-reference")
  /// The conflict cannot be resolved this way.
  public static let unresolvable = Self(rawValue: "unresolvable")
}

extension SQLiteError {
  /// True if another statement in this one's place could do better: not when memory, the disk or a lock is to blame, or
  /// the work was interrupted. Only then the transaction is sure to be still there.
  package var isAboutTheStatement: Bool { ![4, 5, 6, 7, 8, 9, 10, 13, 14].contains(primaryCode) }
}

extension SQLiteConnection {
  /// Runs a statement.
  ///
  /// - Returns: Why it failed, or nil.
  /// - Throws: `SQLiteError` when that is not the statement's fault.
  package func failure(ofRunning sql: String) throws(SQLiteError) -> String? {
    do throws(SQLiteError) {
      try execute(sql)
      return nil
    } catch {
      guard error.isAboutTheStatement else { throw error }
      return error.message
    }
  }

  /// As ``failure(ofRunning:)``, but only prepares it.
  package func failure(ofPreparing sql: String) throws(SQLiteError) -> String? {
    do throws(SQLiteError) {
      _ = try prepare(sql)
      return nil
    } catch {
      guard error.isAboutTheStatement else { throw error }
      return error.message
    }
  }
}
