import BuckiaBytes
import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// The changes of a verified diff file or raw changeset. ``ReceiverGate`` decides whether they may be applied.
package struct IncomingChanges {
  /// Their identity in the ledger.
  package let key: LedgerKey
  /// The place in a stream; nil for changes outside of streams.
  package let place: StreamPlace?
  /// The name of the file, without its folder.
  package let file: String
  /// The definitions of their tables; nil for a raw changeset, whose columns are matched by position.
  package let definitions: [TableDefinition]?
  /// The author's whole schema as SQL; nil if the file has none. Used only to adopt the schema.
  package let author: AuthorSchema?
  /// Columns that the author has renamed.
  package let renames: [ColumnRename]
  /// The changes.
  package let changeset: TemporaryBuffer
  /// How far the changes are there and checked.
  package let feed: ChangesetFeed
  /// The dataset: 16 bytes; nil if the file names none.
  package var dataset: [UInt8]?
  /// The claims about the sender and about streams.
  package var claims = StreamClaims()
  /// Runs of neighbouring changes; true for withdrawals. Empty if there are none. Call it only after all changes have
  /// arrived.
  package var withdrawals: () throws -> [(count: Int64, isWithdrawal: Bool)] = { [] }
  /// The origins of the changes, in their order; empty if all are the diff's own. Call it only after all changes have
  /// arrived.
  package var origins: () throws -> [OriginRun] = { [] }
  /// The origins by the keys of the rows, if an earlier stage has read them and may have left out changes.
  package var knownOrigins: RowOrigins?
  /// What other replicas call the rows. Only to be asked when all changes are there.
  package var naming: () throws -> RowNaming = { RowNaming() }
  /// True if the sender may lack deletions that are forgotten here.
  package var isFromReturning = false
  /// The author's counts for each table; nil if there are none.
  private let claimed: [TableName: ApplyCounts]?
  /// The place of each table among the definitions.
  private let places: [TableName: Int]

  /// Creates changes that have been verified (digests, structure and sender), or that another thread is still
  /// verifying.
  ///
  /// Use the latter only in an own transaction that is rolled back when applying throws the error of the feed.
  ///
  /// - Parameters:
  ///   - place: Their place in a stream; nil for none.
  ///   - claimed: The author's counts for each table, used only for planning.
  ///   - feed: The findings of the walk that has checked these bytes.
  package init(
    key: LedgerKey, placed place: StreamPlace? = nil, file: String, definitions: [TableDefinition]?,
    author: AuthorSchema? = nil, renames: [ColumnRename] = [], claimed: [TableName: ApplyCounts]? = nil,
    changeset: TemporaryBuffer,
    feed: ChangesetFeed
  ) {
    self.key = key
    self.place = place
    self.file = file
    self.definitions = definitions
    self.author = author
    self.renames = renames
    self.claimed = claimed
    self.changeset = changeset
    self.feed = feed
    places = Dictionary((definitions ?? []).enumerated().map { (TableName($1.name), $0) }) { first, _ in first }
  }

  /// The same with other changes.
  ///
  /// - Parameters:
  ///   - changeset: The changes.
  ///   - added: The definitions of tables that these did not have.
  /// - Throws: `ChangesetError` when they are damaged, `ByteStreamError` when they cannot be read.
  package func replacing(changeset: TemporaryBuffer, adding added: [TableDefinition] = []) throws -> IncomingChanges {
    var changes = IncomingChanges(
      key: key, placed: place, file: file, definitions: definitions.map { $0 + added }, author: author,
      renames: renames,
      changeset: changeset, feed: ChangesetFeed(try ChangesetSummary.of(changeset)))
    changes.claims = claims
    changes.dataset = dataset
    changes.isFromReturning = isFromReturning
    return changes
  }

  /// The origins by the keys of the rows; nil if all are the diff's own. Waits until all changes have arrived.
  ///
  /// - Throws: As ``origins``; `ChangesetError` when the changes are damaged, `ByteStreamError` when they cannot be read.
  func rowOrigins() throws -> RowOrigins? {
    if let knownOrigins { return knownOrigins }
    let runs = try origins()
    guard let id = key.id, runs.contains(where: { $0.isNews(in: id) }) else { return nil }
    return try RowOrigins(runs, of: changeset, id, knowing: feed.summary())
  }

  /// The expected counts of each table; nil if unknown.
  func expectedCounts() throws -> [TableName: ApplyCounts]? {
    guard feed.isAllThere else { return claimed }
    let tables = try feed.summary().tables.map { (TableName($0.table.name), ApplyCounts(expecting: $0)) }
    return Dictionary(tables) { first, _ in first }
  }

  /// The definition of a table; nil if there is none.
  func definition(of name: TableName) -> TableDefinition? {
    guard let definitions, let place = places[name] else { return nil }
    return definitions[place]
  }

  /// Refuses changes of a table that has no definition, or one that contradicts them.
  func requireDefinition(of table: ChangesetTable) throws {
    guard definitions != nil else { return }
    guard let definition = definition(of: TableName(table.name)) else {
      throw ReplicationError(
        .missingTable, "the changes name table \"\(table.name)\", whose definition is not in the file",
        table: table.name)
    }
    guard zip(definition.keyFlags, table.keyFlags).allSatisfy({ ($0 != 0) == ($1 != 0) }),
      definition.keyFlags.count == table.columnCount
    else {
      throw ReplicationError(
        .columnsDiffer, "the changes and the definition of table \"\(table.name)\" contradict each other",
        table: table.name)
    }
  }

  /// The warning that conflicts cannot be detected; nil if they can. A diff file has all old values.
  func warnOfOldValues() throws -> Warning? {
    guard definitions == nil else { return nil }
    let count = try feed.summary().tables.reduce(0) {
      TableName($1.table.name).isReservedBySQLite ? $0 : $0 + $1.withoutOldValues
    }
    return count > 0 ? Warning(.noOldValues, "\(count)") : nil
  }

  /// Checks the structure of changes whose digest and sender have been verified.
  ///
  /// - Throws: `ChangesetError` when they are damaged, `ByteStreamError` when they cannot be read.
  package init(key: LedgerKey, file: String, definitions: [TableDefinition]?, changeset: TemporaryBuffer) throws {
    self.init(
      key: key, file: file, definitions: definitions, changeset: changeset,
      feed: ChangesetFeed(try ChangesetSummary.of(changeset)))
  }
}

/// A diff's claims about its sender and about streams, beside its own place in a stream.
package struct StreamClaims: Sendable {
  /// How far its sender has applied a stream.
  package struct Acknowledgement: Equatable, Sendable {
    /// The stream: 16 bytes.
    package let stream: [UInt8]
    /// The incarnation whose stream it is: 16 bytes.
    package let incarnation: [UInt8]
    /// The number up to which everything has been applied.
    package let through: Int64

    /// Says how far a stream has been applied.
    package init(stream: [UInt8], incarnation: [UInt8], through: Int64) {
      self.stream = stream
      self.incarnation = incarnation
      self.through = through
    }
  }

  /// The sender's replica; nil if the diff names none. 16 bytes, or more if another key has first signed as the claimed
  /// replica.
  package var replica: [UInt8]?
  /// The key that has first signed as the claimed replica, in the ledger's form; nil if it is the sender's.
  package var firstSigner: String?
  /// What its sender has applied.
  package var acknowledgements: [Acknowledgement] = []
  /// What its stream holds of a table after it.
  package struct State: Equatable, Sendable {
    /// The table.
    package let table: String
    /// The number of rows.
    package let rows: Int64
    /// The sum of the hashes of all rows: 16 bytes.
    package let digest: [UInt8]
    /// The first two bytes of the sums of changed buckets; nil if the diff does not state them.
    package let buckets: [UInt8: [UInt8]]?

    /// Creates a state.
    package init(table: String, rows: Int64, digest: [UInt8], buckets: [UInt8: [UInt8]]?) {
      self.table = table
      self.rows = rows
      self.digest = digest
      self.buckets = buckets
    }
  }

  /// What its stream holds of the tables that it changes.
  package var states: [State] = []
  /// Rows of a table: those in some buckets, or all.
  package struct Rows: Equatable, Sendable {
    /// The stream that they are asked of; nil for the diff's own.
    package let stream: [UInt8]?
    /// The table.
    package let table: String
    /// The buckets of their keys; nil for all.
    package let buckets: Set<UInt8>?

    /// Names rows.
    package init(of stream: [UInt8]?, table: String, buckets: Set<UInt8>?) {
      self.stream = stream
      self.table = table
      self.buckets = buckets
    }
  }

  /// Rows that it holds again, in the place of all that its stream has had of them.
  package var resent: [Rows] = []
  /// Rows of the reader's streams of which its sender asks for all again.
  package var requests: [Rows] = []
  /// True if it withdraws rows.
  package var withdraws = false
  /// Tables whose rows have integer keys that its sender's replica has given out itself.
  package var ownKeys: Set<TableName> = []
  /// True for the keys, in hexadecimal digits, of people with whom the sender also shares such rows.
  package var isSharedWith: @Sendable (String) -> Bool = { _ in false }

  /// Says nothing.
  package init() {}
}

/// The names of a diff's rows at other replicas, as far as the sender knows them.
package struct RowNaming: Sendable {
  /// Neighbouring changes whose rows the same replicas call something.
  package struct Run: Sendable {
    /// How many changes.
    package let count: Int64
    /// The names of the rows at replicas; empty if only the sender names them.
    package let names: [Names]

    /// Names some rows.
    package init(count: Int64, names: [Names]) {
      self.count = count
      self.names = names
    }
  }

  /// The names of a run's rows at one replica.
  package struct Names: Sendable {
    /// The replica.
    package let replica: [UInt8]
    /// The key of each row there; empty if the keys are those of the changes.
    package let keys: [Int64]
    /// The hash of the version of each row that the sender last accepted from that replica; empty if the rows have not
    /// changed since.
    package let versions: [UInt64]
    /// The counts of rows with this content that the replica, or one of its incarnations, has inserted; nil for rows with a key.
    package let copies: CopyCounts.Count?

    /// Names some rows.
    package init(replica: [UInt8], keys: [Int64], versions: [UInt64] = [], copies: CopyCounts.Count? = nil) {
      self.replica = replica
      self.keys = keys
      self.versions = versions
      self.copies = copies
    }
  }

  /// A row that rows of the diff refer to, and that a replica calls otherwise than the sender.
  package struct Reference: Sendable {
    /// Its table.
    package let table: TableName
    /// Its key at the sender.
    package let key: Int64
    /// The replica.
    package let replica: [UInt8]
    /// Its key there.
    package let name: Int64

    /// Names a row.
    package init(table: TableName, key: Int64, replica: [UInt8], name: Int64) {
      self.table = table
      self.key = key
      self.replica = replica
      self.name = name
    }
  }

  /// The runs, in the order of the changes; empty if only the sender names the rows.
  package var runs: [Run] = []
  /// Rows that are referred to.
  package var references: [Reference] = []
  /// References that no foreign key declares, with the table that refers.
  package var links: [(table: TableName, key: ForeignKey)] = []

  /// Names nothing.
  package init() {}
}

/// Takes part in applying diffs, in the same transaction, because the record of shared rows depends on them.
package protocol SharingParticipant: AnyObject {
  /// True if changes concern streams, and must be applied one by one.
  ///
  /// - Throws: `SQLiteError`.
  func concerns(_ changes: IncomingChanges) throws -> Bool
  /// Looks at changes before they are applied, and writes nothing: they may yet be refused.
  ///
  /// - Returns: The changes to be applied in their place.
  /// - Throws: `SQLiteError`, `ChangesetError`, `ByteStreamError`.
  func prepare(_ changes: IncomingChanges) throws -> IncomingChanges
  /// The author's version of a row that was edited here since: an edit that was not sent to the author is later than
  /// the author's changes.
  ///
  /// - Parameters:
  ///   - key: The values of the row's key, in the format of changesets.
  ///   - table: Its table.
  /// - Returns: The values of the edited columns that were sent to the author, in the format of changesets, by column
  ///   name in lower case; empty if nothing was edited, or it is unknown.
  /// - Throws: As ``prepare(_:)``.
  func valuesBeforeEdits(ofRow key: [UInt8], in table: TableName) throws -> [String: [UInt8]]
  /// The diffs that have sent a row of this database to the author of the present changes. The author's clock has them.
  ///
  /// - Parameters: As those of ``valuesBeforeEdits(ofRow:in:)``.
  /// - Returns: The diffs by column name in lower case, and for ``SentColumns/allColumns`` the one that has sent the
  ///   whole row; empty if the author did not get the row from here.
  /// - Throws: As ``prepare(_:)``.
  func sendingDiffs(ofRow key: [UInt8], in table: TableName) throws -> [String: KSUID]
  /// Records that the present changes were to delete a row that stays because local rows refer to it.
  ///
  /// - Parameters:
  ///   - key: The values of the row's key as the changes have them.
  ///   - table: Its table.
  func didKeep(_ key: [UInt8], of table: TableName)
  /// True if the participant observes rows that the present changes write indirectly.
  var isWatching: Bool { get }
  /// Called when the present changes have written a row indirectly: by a foreign-key action, a trigger or a conflict.
  ///
  /// - Parameters:
  ///   - key: The values of the row's key as the local table has them, in the format of changesets.
  ///   - table: Its table.
  /// - Throws: `SQLiteError`; `LedgerError` when the ledger is damaged.
  func didWriteIndirectly(_ key: [UInt8], of table: TableName) throws
  /// Records the consequences of the present changes, after they have been applied.
  ///
  /// - Parameter counts: The counts of the applied changes.
  /// - Returns: Warnings about the stream.
  /// - Throws: As ``prepare(_:)``. They must be rolled back then.
  func finish(_ changes: IncomingChanges, counting counts: ApplyCounts) throws -> [Warning]
  /// Called once before the commit of a transaction in which diffs were applied.
  ///
  /// - Parameter time: The present time, in milliseconds since 1970.
  /// - Throws: As ``finish(_:)``; then all of it is rolled back.
  func settle(at time: Int64) throws
}
