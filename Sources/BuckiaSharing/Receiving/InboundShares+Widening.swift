import BuckiaApply
import BuckiaDiff
import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Changes by which their senders could get more rows than are shared with them (``ScopeRows/holdBack(from:of:)``).
extension InboundShares {
  /// Those of some rows that are not shared with the author of a diff already, as far as that depends on each row alone.
  func outOfScope(
    _ keys: [TableName: Set<[UInt8]>], _ tables: KeyedTables, _ changes: IncomingChanges
  ) throws -> [TableName: Set<[UInt8]>] {
    guard !keys.isEmpty else { return [:] }
    let scopes = try changes.sharesWithAuthor(senders, on: connection).map { try ShareScope(json: $0.scope) }
    return try keys.reduce(into: [:]) { found, entry in
      let chosen = scopes.compactMap { $0.table(entry.key) }
      guard let table = tables[entry.key], !chosen.isEmpty else { return found[entry.key] = entry.value }
      found[entry.key] = try entry.value.filter { key in
        try !chosen.allSatisfy { shared in
          guard let condition = shared.condition else { return shared.parents.isEmpty }
          let query = try connection.prepare("\(table.lookup) AND (\(condition)\n)")
          try RowSelection(where: nil, shared.parameters).bindParameters(to: query)
          return try key.withRawSpan { bytes in
            try table.bindKey(table.row(withKey: bytes), bytes, to: query)
            return try query.step()
          }
        }
      }
    }
  }

  /// Notes a change that may bring rows into what is shared with its sender.
  ///
  /// - Parameter shadows: Those of the shares that the sender gets.
  func noteWidening(
    _ change: Change, _ reader: ChangesetReader, _ bytes: RawSpan, of table: KeyedTable, _ stream: [UInt8]?,
    _ sender: String, sentIn shadows: [PeerShadow]
  ) throws {
    let row = change.operation == .insert ? reader.new : reader.old
    guard change.operation != .delete, table.hasKey(row) else { return }
    func note(_ kind: WideningChanges.Kind) throws {
      // The key in the spelling of the row here.
      let here = try LocalRow(row, bytes, of: table, on: connection)
      let key = here.map { row in table.keyPlaces.flatMap { row.encoded($0) } } ?? table.key(row, bytes)
      try WideningChanges.note(kind, key, of: table.name, by: sender, on: connection)
    }
    guard change.operation == .update else {
      if let keys = contested[table.name], keys.contains(table.key(row, bytes)) { try note(.row) }
      return
    }
    let isBrought =
      try stream.map { try vouchers.hash(row, bytes, of: table, streams: [$0], from: sender) != nil } ?? false
    if try !isBrought && !shadows.contains(where: { try $0.has(row, bytes, of: table) }) { return try note(.row) }
    let refers = reader.new.indices.contains { place in
      reader.new[place].isDefined
        && (table.referringPlaces.contains(place)
          || shadows.contains { $0.declaresReference(by: table.columns[place], of: table.name) })
    }
    if refers { try note(.reference) }
  }
}
