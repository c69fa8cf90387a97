import BuckiaBytes
import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// The changes of a verified diff file or raw changeset. ``ReceiverGate`` decides whether they may be applied.
package struct IncomingChanges {
  /// Their identity in the ledger.
  package let key: LedgerKey
  /// Their place in a stream; nil where they belong to none.
  package let place: StreamPlace?
  /// The name of the file, without its folder.
  package let file: String
  /// The definitions of their tables; nil for a raw changeset, whose columns are matched by position.
  package let definitions: [TableDefinition]?
  /// The author's whole schema as SQL; nil where it did not travel. Only used where the schema is to be adopted.
  package let author: AuthorSchema?
  /// Columns that the author has renamed.
  package let renames: [ColumnRename]
  /// The changes.
  package let changeset: TemporaryBuffer
  /// How far the changes are there and checked.
  package let feed: ChangesetFeed
  /// The shared database that they belong to: 16 bytes; nil where they do not say.
  package var dataset: [UInt8]?
  /// What they say of their sender and of streams.
  package var claims = StreamClaims()
  /// Which of the changes are withdrawals: how many neighbours are, or are not, in their order. Empty where none is. Only to be asked
  /// when all changes are there.
  package var withdrawals: () throws -> [(count: Int64, isWithdrawal: Bool)] = { [] }
  /// Which diffs the changes come from, in their order. Empty where all of them are the diff's own. Only to be asked when all changes are
  /// there.
  package var origins: () throws -> [OriginRun] = { [] }
  /// The same by the keys of the rows, where others have looked at the changes before and may have left some out.
  package var knownOrigins: RowOrigins?
  /// What other replicas call the rows. Only to be asked when all changes are there.
  package var naming: () throws -> RowNaming = { RowNaming() }
  /// True if their sender may not know of deletions that are forgotten here.
  package var isFromReturning = false
  /// How many changes of each table the author says there are; nil where nobody does.
  private let claimed: [TableName: ApplyCounts]?
  /// The place of each table among the definitions.
  private let places: [TableName: Int]

  /// Takes changes that have been verified (digests, structure and sender), or that another thread is still verifying.
  ///
  /// The latter are only for whoever owns the transaction and rolls all of it back when applying throws what the feed has
  /// failed with.
  ///
  /// - Parameters:
  ///   - place: Their place in a stream; nil for none.
  ///   - claimed: How many changes of each table the author says there are; only to plan the work by.
  ///   - feed: What the walk that checks the changes has found in these very bytes.
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

  /// Which diffs the changes come from, by the keys of their rows; nil where all of them are the diff's own. Waits until all are there.
  ///
  /// - Throws: As ``origins``; `ChangesetError` when the changes are damaged, `ByteStreamError` when they cannot be read.
  func rowOrigins() throws -> RowOrigins? {
    if let knownOrigins { return knownOrigins }
    let runs = try origins()
    guard let id = key.id, runs.contains(where: { $0.isNews(in: id) }) else { return nil }
    return try RowOrigins(runs, of: changeset, id, knowing: feed.summary())
  }

  /// How many changes of each table there will be; nil where nobody knows yet.
  func expectedCounts() throws -> [TableName: ApplyCounts]? {
    guard feed.isAllThere else { return claimed }
    let tables = try feed.summary().tables.map { (TableName($0.table.name), ApplyCounts(expecting: $0)) }
    return Dictionary(tables) { first, _ in first }
  }

  /// The definition of a table; nil when there is none.
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

  /// What is to be said where conflicts cannot be seen; nil where they can. A diff file has all old values.
  func remarkOnOldValues() throws -> Remark? {
    guard definitions == nil else { return nil }
    let count = try feed.summary().tables.reduce(0) {
      TableName($1.table.name).isReservedBySQLite ? $0 : $0 + $1.withoutOldValues
    }
    return count > 0 ? Remark(.noOldValues, "\(count)") : nil
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

/// What a diff says of its sender and of streams, beside its own place in one.
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

  /// The sender's replica; nil where the diff does not say. 16 bytes, or more where the diff claims a replica that another key has signed as.
  package var replica: [UInt8]?
  /// The key, as the ledger has it, that has first signed as the replica which the diff claims; nil where that is its sender's.
  package var firstSigner: String?
  /// What its sender has applied.
  package var acknowledgements: [Acknowledgement] = []
  /// What its stream holds of a table after it.
  package struct State: Equatable, Sendable {
    /// The table.
    package let table: String
    /// How many rows there are.
    package let rows: Int64
    /// The sum of the hashes of all rows: 16 bytes.
    package let digest: [UInt8]
    /// The first two bytes of the sums of the buckets that the diff has changed; nil where they are not said.
    package let buckets: [UInt8: [UInt8]]?

    /// Says what there is.
    package init(table: String, rows: Int64, digest: [UInt8], buckets: [UInt8: [UInt8]]?) {
      self.table = table
      self.rows = rows
      self.digest = digest
      self.buckets = buckets
    }
  }

  /// What its stream holds of the tables that it changes.
  package var states: [State] = []
  /// Which rows of a table: those in some buckets, or all.
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
  /// True for the keys of others, in hex, with whom its sender shares such rows.
  package var isSharedWith: @Sendable (String) -> Bool = { _ in false }

  /// Says nothing.
  package init() {}
}

/// What other replicas call the rows of a diff, as far as its sender knows.
package struct RowNaming: Sendable {
  /// Neighbouring changes whose rows the same replicas call something.
  package struct Run: Sendable {
    /// How many changes.
    package let count: Int64
    /// What replicas call the rows; empty where the sender alone does.
    package let names: [Names]

    /// Names some rows.
    package init(count: Int64, names: [Names]) {
      self.count = count
      self.names = names
    }
  }

  /// What a replica calls the rows of a run.
  package struct Names: Sendable {
    /// The replica.
    package let replica: [UInt8]
    /// Its key of each row; empty where it calls them as the changes do.
    package let keys: [Int64]
    /// The hash of each row as the sender last took it from that replica; empty where the rows have not changed since.
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

  /// The changes, in their order; empty where the sender alone has given all keys.
  package var runs: [Run] = []
  /// Rows that are referred to.
  package var references: [Reference] = []
  /// References that no foreign key declares, with the table that refers.
  package var links: [(table: TableName, key: ForeignKey)] = []

  /// Names nothing.
  package init() {}
}

/// Takes part when diffs of others are applied, in the same transaction: what is known of those with whom rows are shared depends on
/// them.
package protocol SharingParticipant: AnyObject {
  /// True if changes are about streams: those are applied one by one.
  ///
  /// - Throws: `SQLiteError`.
  func concerns(_ changes: IncomingChanges) throws -> Bool
  /// Looks at changes before they are applied, and writes nothing: they may yet be refused.
  ///
  /// - Returns: The changes to be applied in their place.
  /// - Throws: `SQLiteError`, `ChangesetError`, `ByteStreamError`.
  func prepare(_ changes: IncomingChanges) throws -> IncomingChanges
  /// What the author of the changes that were prepared last knows of a row that has been edited here since: an edit of which they have not
  /// been told counts as later than what they have done.
  ///
  /// - Parameters:
  ///   - key: The values of the row's key, in the format of changesets.
  ///   - table: Its table.
  /// - Returns: The values of the edited columns as the author was told them, in the format of changesets, by the names of the columns in
  ///   lower case; empty where nothing was edited, or it is not known.
  /// - Throws: As ``prepare(_:)``.
  func valuesBeforeEdits(ofRow key: [UInt8], in table: TableName) throws -> [String: [UInt8]]
  /// Notes that a row was kept which the changes that were prepared last were to delete, since rows here refer to it.
  ///
  /// - Parameters:
  ///   - key: The values of the row's key as the changes have them.
  ///   - table: Its table.
  func didKeep(_ key: [UInt8], of table: TableName)
  /// True if it wants to know which rows the changes that were prepared last write because of others.
  var isWatching: Bool { get }
  /// Notes that the changes that were prepared last have written a row because of another one: by a foreign-key action, a trigger or a
  /// conflict.
  ///
  /// - Parameters:
  ///   - key: The values of the row's key as the local table has them, in the format of changesets.
  ///   - table: Its table.
  /// - Throws: `SQLiteError`; `LedgerError` when the ledger is damaged.
  func didWriteIndirectly(_ key: [UInt8], of table: TableName) throws
  /// Notes what follows from the changes that were prepared last, once they have been applied.
  ///
  /// - Parameter counts: What was done with the changes.
  /// - Returns: What is worth knowing of their stream.
  /// - Throws: As ``prepare(_:)``. They must be rolled back then.
  func finish(_ changes: IncomingChanges, counting counts: ApplyCounts) throws -> [Remark]
  /// Does what is to be done once before a transaction in which diffs were applied is committed.
  ///
  /// - Parameter time: The present time, in milliseconds since 1970.
  /// - Throws: As ``finish(_:)``; then all of it is rolled back.
  func settle(at time: Int64) throws
}
