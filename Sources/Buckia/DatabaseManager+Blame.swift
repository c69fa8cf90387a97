import BuckiaBytes
import BuckiaApply
import BuckiaLedger
import SQLiteSchemas
import SQLiteChangesets
import SQLiteConnections

extension DatabaseManager {
  /// Tells which diffs have set the columns of a row last.
  ///
  /// ```swift
  /// let origin = try database.origin(ofRowIn: "notes", key: ["id": .integer(7)])
  /// for column in origin.columns { print(column.name, column.source?.sender ?? "from the beginning") }
  /// ```
  ///
  /// - Parameters:
  ///   - table: The table. It must have a clock: see ``keepClocks(of:)``.
  ///   - key: A value for each column of its primary key, or for `_rowid_` where it has none.
  /// - Throws: `BuckiaError`: `noSuchTable`; `noClock`; `columnsDiffer` where the values are not those of the key; as
  ///   ``BuckiaHome/contacts()``.
  public func origin(ofRowIn table: String, key: [String: ChangesetValue]) throws -> RowOrigin {
    let senders = try home.knownSenders()
    return try withReader { connection in
      let schema = try SchemaReader(connection)
      guard let entry = schema.entry(named: TableName(table)), entry.kind == .table else {
        throw BuckiaError(.noSuchTable, "there is no table \"\(EscapedText(table, limit: 100))\"", path: path)
      }
      let definition = try schema.definition(of: entry)
      let names = definition.changesetColumns
      let keyNames = definition.keyIndexes.map { names[$0] }
      let values = keyNames.compactMap { name in key.first { ASCIIName.matches($0.key, name) }?.value }
      guard values.count == keyNames.count, key.count == keyNames.count else {
        throw BuckiaError(
          .columnsDiffer, "the key of table \"\(definition.name)\" is \(keyNames.joined(separator: ", "))", path: path)
      }
      guard let history = try RowHistory(of: values, in: definition, on: connection) else {
        throw BuckiaError(
          .noClock, "table \"\(definition.name)\" has no clock, which would record the diffs that changed its rows",
          path: path)
      }
      var sources: [Int64: RowOrigin.Source] = [:]
      for stamp in [history.stamp] + history.setters {
        guard let stamp, sources[stamp.number] == nil else { continue }
        sources[stamp.number] = try Self.source(of: stamp, senders, on: connection)
      }
      return RowOrigin(
        table: definition.name, exists: history.values != nil, source: history.stamp.flatMap { sources[$0.number] },
        columns: history.columns.indices.map { place in
          RowOrigin.Column(
            name: history.columns[place], value: history.values?[place],
            source: history.setters[place].flatMap { sources[$0.number] })
        })
    }
  }

  private static func source(
    of stamp: RowStamp, _ senders: KnownSenders, on connection: borrowing SQLiteConnection
  ) throws -> RowOrigin.Source {
    switch try RowClocks.source(of: stamp.number, on: connection) {
    case .own:
      return RowOrigin.Source(
        diff: stamp.diff, sender: LedgerEntries.shown(sender: LedgerEntries.ownSender), isClaimed: false,
        appliedAt: nil)
    case .claimed(let carrier):
      // Anybody can say that a change comes from a diff of somebody else's, so the sender of the diff that says so is named.
      let entry = try carrier.flatMap { try LedgerEntries.applied($0, on: connection) }
      return RowOrigin.Source(
        diff: stamp.diff, sender: senders.shown(entry?.sender ?? LedgerEntries.ownSender), isClaimed: true,
        appliedAt: entry?.time)
    case .applied, nil:
      let entry = try LedgerEntries.applied(stamp.diff, on: connection)
      return RowOrigin.Source(
        diff: stamp.diff, sender: senders.shown(entry?.sender ?? ""), isClaimed: false, appliedAt: entry?.time)
    }
  }
}
