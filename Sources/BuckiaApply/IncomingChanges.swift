import BuckiaBytes
import BuckiaLedger
import SQLiteSchemas
import SQLiteChangesets

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
  /// Whether their sender may not know of deletions that are forgotten here.
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
