import BuckiaApply
import BuckiaLedger
import SQLiteSchemas
import SQLiteConnections

extension StreamClaims {
  /// The number up to which the author of a diff says that they have applied a share; 0 where they do not say.
  func acknowledged(_ share: ShareEntry) -> Int64 {
    acknowledgements.filter { $0.stream == share.stream && $0.incarnation == share.incarnation }.map(\.through).max()
      ?? 0
  }
}

extension IncomingChanges {
  /// The tables as they travel; of changes without definitions, as they are here.
  ///
  /// - Throws: `SQLiteError`; `ChangesetError` when the changes are damaged, `ByteStreamError` when they cannot be read.
  func definitions(in schema: SchemaReader) throws -> [TableDefinition] {
    if let definitions { return definitions }
    return try feed.summary().tables.compactMap { section in
      let entry = schema.entry(named: TableName(section.table.name))
      guard let entry, entry.kind == .table else { return nil }
      let local = try schema.definition(of: entry)
      return local.changesetColumns.count == section.table.columnCount ? local : nil
    }
  }

  /// What is shared with the author of a diff.
  ///
  /// A share counts whose recipients are known to sign with the diff's key. Where that is not known, it counts when the author has
  /// acknowledged some of it, in this diff or one before it.
  ///
  /// - Parameter senders: Knows which keys have replaced others.
  /// - Throws: `SQLiteError`; `LedgerError` for a newer ledger.
  func sharesWithAuthor(_ senders: KnownSenders, on connection: borrowing SQLiteConnection) throws -> [ShareEntry] {
    guard let replica = claims.replica else { return [] }
    return try ShareEntry.all(on: connection).filter { share in
      if let isRead = try share.isRead(by: key.sender, senders, on: connection) { return isRead }
      return try min(claims.acknowledged(share), share.sequence) > 0
        || AcknowledgementEntry.all(of: share.number, on: connection).contains {
          $0.sender == key.sender && $0.replica == replica && $0.through > 0
        }
    }
  }
}
