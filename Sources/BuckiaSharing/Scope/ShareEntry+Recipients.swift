import BuckiaApply
import BuckiaBytes
import BuckiaLedger
import SQLiteConnections
import SQLiteSchemas

extension ShareEntry {
  /// The names of the recipients.
  ///
  /// - Throws: `JSONError` when the ledger is damaged.
  package var recipients: [String] {
    get throws { try Self.recipients(in: audience) }
  }

  /// The names that a document holds.
  ///
  /// - Throws: `JSONError` when the ledger is damaged.
  package static func recipients(in document: String) throws -> [String] {
    try JSONValue.strings(in: document)
  }

  /// True if it is shared with one person alone.
  ///
  /// - Throws: `JSONError` when the ledger is damaged.
  func isForOne() throws -> Bool { try recipients.count == 1 }

  /// The signing keys of the recipients, in the ledger's form: the keys that they were addressed by, and the keys that
  /// they have signed with.
  ///
  /// - Throws: `SQLiteError`; `LedgerError` for a newer ledger.
  func readers(on connection: borrowing SQLiteConnection) throws -> Set<String> {
    try RecipientKey.all(of: number, on: connection).union(
      AcknowledgementEntry.all(of: number, on: connection).map(\.sender))
  }

  /// True if a sender is a recipient of the share, by the key that they sign with.
  ///
  /// - Parameters:
  ///   - sender: The verified key in hex, as the ledger has it.
  ///   - senders: The keys that have replaced others.
  /// - Returns: nil if the key of a recipient is unknown and could be the sender's.
  /// - Throws: `SQLiteError`; `LedgerError` for a newer ledger.
  func isRead(
    by sender: String, _ senders: KnownSenders, on connection: borrowing SQLiteConnection
  ) throws -> Bool? {
    let keys = try RecipientKey.all(of: number, on: connection)
    if !sender.isEmpty, !keys.isDisjoint(with: [sender] + senders.keys(before: sender)) { return true }
    return keys.isEmpty || keys.contains(RecipientKey.unknown) ? nil : false
  }
}

extension StreamClaims {
  /// The number up to which the author of a diff acknowledges a share; 0 without an acknowledgement.
  func acknowledged(_ share: ShareEntry) -> Int64 {
    acknowledgements.filter { $0.stream == share.stream && $0.incarnation == share.incarnation }.map(\.through).max()
      ?? 0
  }
}

extension IncomingChanges {
  /// The definitions that the file has, or for changes without definitions those of the local tables.
  ///
  /// - Throws: `SQLiteError`; `ChangesetError` when the changes are damaged, `ByteStreamError` when they cannot be read.
  func definitions(in schema: SchemaReader) throws -> [TableDefinition] {
    if let definitions { return definitions }
    return try feed.summary().tables.compactMap { section in
      let local = try schema.table(named: TableName(section.table.name))
      return local?.changesetColumns.count == section.table.columnCount ? local : nil
    }
  }

  /// The shares of which the author of a diff is a recipient.
  ///
  /// A share counts if one of its recipients is known to sign with the diff's key. If that is unknown, it counts if the
  /// author has acknowledged some of it, in this diff or an earlier one.
  ///
  /// - Parameter senders: The keys that have replaced others.
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

  /// The shares with the author of a diff of which the author had not applied all diffs, and how far the author had
  /// applied them.
  ///
  /// - Parameter senders: The keys that have replaced others.
  /// - Throws: `SQLiteError`; `LedgerError` for a newer ledger.
  func unseenShares(
    _ senders: KnownSenders, on connection: borrowing SQLiteConnection
  ) throws -> [(share: ShareEntry, through: Int64)] {
    try sharesWithAuthor(senders, on: connection).map { ($0, claims.acknowledged($0)) }
      .filter { $0.through < $0.share.sequence }
  }

  /// The last diff of this database that the author claims to have applied; nil for none.
  ///
  /// - Throws: `SQLiteError`; `JSONError` when the ledger is damaged.
  func lastApplied(on connection: borrowing SQLiteConnection) throws -> KSUID? {
    try ShareEntry.all(on: connection).compactMap { share in
      let through = claims.acknowledged(share)
      return through > 0 ? try OutboxEntry.last(of: share.number, through: through, on: connection) : nil
    }.max()
  }
}

extension InboundShares {
  /// Transfers what is recorded for a sender's former keys to the present one: acknowledgements, and the rows of the
  /// stream that a snapshot replaces. Streams that were replaced before the key was confirmed are deleted.
  ///
  /// Streams are recorded by key. A new key begins another stream with a snapshot that names the former stream. Only a
  /// person's confirmation makes both keys one sender; until then nothing is transferred.
  ///
  /// - Parameters:
  ///   - present: The key that has replaced the others, as the ledger has it.
  ///   - place: The place of the diff that is about to be applied.
  /// - Throws: `SQLiteError`.
  func takeOverStreams(by present: String, _ place: StreamPlace?) throws {
    for key in senders.keys(before: present) {
      try AcknowledgementEntry.handOver(from: key, to: present, on: connection)
      let streams = try ProvenanceEntry.streams(from: key, on: connection)
      guard !streams.isEmpty else { continue }
      let replaced = try StreamEntries.replaced(by: present, on: connection)
      for stream in streams {
        if stream == place?.replaces {
          try ProvenanceEntry.handOver(stream, from: key, to: present, on: connection)
        } else if replaced.contains(stream) {
          for table in try ProvenanceEntry.tables(of: stream, from: key, on: connection) {
            try ProvenanceEntry.remove(stream, from: key, table, on: connection)
          }
          try StateEntry.remove(stream, from: key, nil, on: connection)
          try OriginKeyEntry.forget(stream, from: key, on: connection)
        }
      }
    }
  }
}
