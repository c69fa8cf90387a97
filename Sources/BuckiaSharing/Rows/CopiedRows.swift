import BuckiaApply
import BuckiaDiff
import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Rows that other copies of this database are known to have had. They are recorded like rows of a stream: the rows of
/// a dataset under the dataset, and the rows that a copied replica has shared under that replica.
///
/// A share treats them like rows that its recipients have sent: it sends their deletions, and its INSERTs name the
/// dataset or the replica, and the version that has changed since.
package enum CopiedRows {
  /// The sender of the dataset's rows.
  package static let datasetSender = "dataset"

  /// The sender of the rows of a share from the replica that this database is a copy of.
  package static func sender(of share: Int64) -> String { "copy:\(share)" }

  /// Records the present rows as those of a dataset.
  ///
  /// - Parameter dataset: Its id.
  /// - Throws: `SQLiteError`; `ReplicationError` when the schema cannot be read.
  package static func begin(dataset: [UInt8], on connection: borrowing SQLiteConnection) throws {
    let schema = try SchemaReader(connection)
    let provenance = Provenance(on: connection)
    try countContents(insertedBy: dataset, on: connection)
    for entry in schema.entries where entry.kind == .table && Replicability.refusal(of: entry) == nil {
      let definition = try schema.definition(of: entry)
      guard let table = KeyedTable(definition, definition) else { continue }
      try note(table.sql, table, dataset, from: datasetSender, provenance, on: connection)
    }
    try provenance.flush()
    try OriginKeyEntry.note(author: dataset, of: dataset, from: datasetSender, on: connection)
  }

  /// Counts the present rows that only their content identifies as rows of an earlier incarnation.
  ///
  /// Where the database was restored from a state before it was a replica, recipients may have these rows, and know them
  /// under the incarnation that was here first.
  ///
  /// - Throws: As ``begin(dataset:on:)``.
  package static func countContents(
    insertedBy incarnation: [UInt8], on connection: borrowing SQLiteConnection
  ) throws {
    let schema = try SchemaReader(connection)
    for entry in schema.entries where entry.kind == .table && Replicability.refusal(of: entry) == nil {
      try ContentTables([schema.definition(of: entry)], schema, on: connection)[entry.name]?.countAll(
        insertedBy: incarnation, heldBy: datasetSender)
    }
  }

  /// Records the rows that a replica has shared, of which this database is a copy or a restored backup, as rows of that
  /// replica's streams.
  ///
  /// A copied replica continues its streams, and this database begins streams of its own. After the restore of a
  /// backup, the streams stay in the ledger until the first diff of the next stream, which states that it replaces
  /// them.
  ///
  /// - Parameters:
  ///   - replica: The replica.
  ///   - incarnation: That of this database.
  ///   - newStream: Creates the id of a stream; nil if a backup was restored.
  /// - Throws: `SQLiteError`; `ReplicationError` when a scope in the ledger is damaged; what `newStream` throws.
  package static func separate(
    from replica: [UInt8], as incarnation: [UInt8], newStream: (() throws -> [UInt8])?,
    on connection: borrowing SQLiteConnection
  ) throws {
    let schema = try SchemaReader(connection)
    let provenance = Provenance(on: connection)
    for var share in try ShareEntry.all(on: connection) {
      let sender = sender(of: share.number)
      let scope = try ShareScope(json: share.scope)
      for baseline in try BaselineEntry.all(of: share.number, on: connection) {
        defer { provenance.reload() }
        if let local = try schema.table(named: baseline.table) {
          let omitted =
            try scope.table(baseline.table)?.omittedColumns(of: local)
            ?? local.columns.map(\.name).filter { try !baseline.hasColumn($0, on: connection) }
          let sent = try RowSelection(omitting: omitted).applied(to: local)
          if let table = KeyedTable(sent, local),
            try sent.columns.allSatisfy({ try baseline.hasColumn($0.name, on: connection) })
          {
            try note("main.\(baseline.name.quoted)", table, share.stream, from: sender, provenance, on: connection)
            try provenance.flush()
          }
        }
        try baseline.setAside(from: share.number, on: connection)
      }
      try OriginKeyEntry.note(author: replica, of: share.stream, from: sender, on: connection)
      try CountedTable.rename(SentContents.holder(of: share.number), to: sender, on: connection)
      guard let newStream else { continue }
      share.stream = try newStream()
      share.incarnation = incarnation
      share.sequence = 0
      share.last = nil
      try share.write(on: connection)
      try OutboxPart.removeAll(of: share.number, on: connection)
      try AcknowledgementEntry.removeAll(of: share.number, on: connection)
      try TombstoneAcknowledgements.restart(share.number, on: connection)
    }
  }

  /// Records the rows of a table as rows of a stream.
  private static func note(
    _ source: String, _ table: KeyedTable, _ stream: [UInt8], from sender: String, _ provenance: Provenance,
    on connection: borrowing SQLiteConnection
  ) throws {
    let columns = table.columns.map { SQLText.identifier($0) }.joined(separator: ", ")
    try connection.forEachRow(of: "SELECT \(columns) FROM \(source)") { row in
      try row.record(of: table.columns.indices).withRawSpan { bytes in
        let slices = ValueSlice.values(table.columns.count, of: bytes)
        guard table.hasKey(slices) else { return }
        try provenance.add(slices, bytes, of: table, stream: stream, from: sender, isOwn: true)
      }
    }
  }
}

/// How to treat the first diff of a sender whose rows mostly exist here with the same integer keys: one database is
/// probably a copy of the other, and no dataset says so.
public enum CopyPolicy: String, Sendable, CaseIterable {
  /// The diff is refused (`from-copy`), and a person decides.
  case ask
  /// Rows with the same key are the same row if at least half of their other columns are equal. Different values are
  /// conflicts.
  case same
  /// Rows with the same key that differ are different rows: one of them gets another key.
  case apart
}

extension Refusal {
  /// The refusal of a first diff whose integer keys suggest that one database is a copy of the other.
  ///
  /// - Parameters:
  ///   - equal: The number of rows that equal the local row with their key.
  ///   - different: The number of rows that differ from it, in at most half of their columns.
  init?(ofCopyWithEqual equal: Int, different: Int) {
    guard different > 0, equal > different, equal > 1 else { return nil }
    self.init(
      .rejected, code: .fromCopy,
      reason:
        "\(equal) of its rows are here with the same keys and values, and \(different) with the same keys and some other values: its sender's "
        + "database and this one seem to be copies of one database, and have been changed since. If they are, apply it with `--copies same`: "
        + "these rows are the same rows then, and what differs is a conflict. If not, apply it with "
        + "`--copies apart`: rows that differ are kept beside each other, with new keys. `buckia init DATABASE --dataset new` before a copy is made saves the question"
    )
  }
}
