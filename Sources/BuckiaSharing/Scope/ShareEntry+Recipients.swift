import BuckiaApply
import BuckiaBytes
import BuckiaLedger
import SQLiteConnections
import SQLiteSchemas

extension ShareEntry {
  /// The names of those that it is shared with.
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

  /// The keys of its recipients, as the ledger has them: those that they were addressed by, and those that they have signed with.
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
  ///   - senders: Knows which keys have replaced others.
  /// - Returns: nil where the key of some recipient is not known, and the sender may be that recipient.
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
      let local = try schema.table(named: TableName(section.table.name))
      return local?.changesetColumns.count == section.table.columnCount ? local : nil
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

extension InboundShares {
  /// Makes what is known of a sender's former keys known of the present one: how far they have applied what was sent, and which rows
  /// came with the stream that a snapshot takes the place of. Streams whose place was taken before the key was confirmed are forgotten.
  ///
  /// Streams are kept by key, so a new key begins again, with a snapshot that names the stream of the former one. Only a person who has
  /// confirmed the new key has made them one sender: then it takes over what is known of the former one's streams.
  ///
  /// - Parameters:
  ///   - present: The key that has replaced the others, as the ledger has it.
  ///   - place: That of the diff which is about to be applied.
  /// - Throws: `SQLiteError`.
  func takeOverStreams(by present: String, _ place: StreamPlace?) throws {
    for key in senders.keys(before: present) {
      try AcknowledgementEntry.handOver(from: key, to: present, on: connection)
      let streams = try VouchEntry.streams(from: key, on: connection)
      guard !streams.isEmpty else { continue }
      let replaced = try StreamEntries.replaced(by: present, on: connection)
      for stream in streams {
        if stream == place?.replaces {
          try VouchEntry.handOver(stream, from: key, to: present, on: connection)
        } else if replaced.contains(stream) {
          for table in try VouchEntry.tables(of: stream, from: key, on: connection) {
            try VouchEntry.remove(stream, from: key, table, on: connection)
          }
          try StateEntry.remove(stream, from: key, nil, on: connection)
          try RowNameEntry.forget(stream, from: key, on: connection)
        }
      }
    }
  }
}
