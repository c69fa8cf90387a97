import BuckiaDiff
import BuckiaLedger
import BuckiaSchemaPlans
import SQLiteConnections
import SQLiteFiles
import SQLiteSchemas

/// What the pages of shared tables tell of where their rows may have changed since they were shared last.
///
/// The prints of a table's leaves are kept with its shadow. A leaf with the same print holds the same rows, and whether these are in the
/// scope has not changed either, as long as that depends on each row alone. So only rows on other leaves are compared.
/// `Schemas/ledger.md` says when this holds.
package struct ScopePrints {
  private struct Table {
    let basis: [UInt8]
    let key: [UInt8]
    let leaves: [LeafPrint]
    /// Whether the key is the rowid, so that leaves tell which keys may differ. Otherwise they only tell whether any do.
    let isKeyedByInteger: Bool
    /// The shadow whose prints were read, and these.
    let known: (shadow: Int64, entry: PrintEntry)?
  }

  private var tables: [TableName: Table] = [:]

  /// Reads the pages of the tables that a scope names.
  ///
  /// - Parameters:
  ///   - share: The number of the share; nil where there is none yet.
  ///   - key: The secret of the hashes of tables that have none yet: `PrintEntry.keyBytes` random bytes.
  ///   - connection: One inside a write transaction that has not written anything yet.
  /// - Throws: `SQLiteError`, `LedgerError`.
  package init(
    of scope: ShareScope, share: Int64?, newKey key: [UInt8], on connection: borrowing SQLiteConnection
  ) throws {
    let candidates = scope.tables.filter(\.choosesByRowAlone)
    guard !candidates.isEmpty, let pages = try CommittedPages(on: connection) else { return }
    let schema = try SchemaReader(connection)
    let shadows = try share.map { try ShadowEntry.all(of: $0, on: connection) } ?? []
    for shared in candidates {
      guard let entry = schema.entry(named: shared.name), entry.kind == .table else { continue }
      let definition = try schema.definition(of: entry)
      guard !definition.isWithoutRowID else { continue }
      let shadow = shadows.first { $0.table == shared.name }?.number
      let known = try shadow.flatMap { number in
        try PrintEntry.read(of: number, on: connection).map { (shadow: number, entry: $0) }
      }
      let secret = known?.entry.key ?? key
      guard let leaves = try pages.leafPrints(of: shared.name, key: secret) else { continue }
      let basis = "\(pages.pageSize)\n\(entry.sql)\n\(ShareScope(tables: [shared]).json)"
      tables[shared.name] = Table(
        basis: Array(basis.utf8), key: secret, leaves: leaves,
        isKeyedByInteger: try definition.isKeyedByInteger(on: connection), known: known)
    }
  }

  /// Where rows may differ from a shadow; nothing of tables that have to be compared row by row.
  package func intervals(for rows: ScopeRows, _ shadow: Shadow) -> [TableName: KeyIntervals] {
    var intervals: [TableName: KeyIntervals] = [:]
    for (name, table) in tables where rows.choosesByRowAlone(name) {
      guard let known = table.known, known.shadow == shadow.entry(of: name)?.number,
        known.entry.basis == table.basis, let older = PrintPieces.prints(in: known.entry.pieces)
      else { continue }
      let changed = KeyIntervals(from: older, to: table.leaves)
      if table.isKeyedByInteger || changed.ranges.isEmpty { intervals[name] = changed }
    }
    return intervals
  }

  /// Keeps the prints with a shadow that has been moved to the rows which are shared now, and removes those of an earlier state.
  ///
  /// - Throws: `SQLiteError`.
  package func write(for rows: ScopeRows, _ shadow: Shadow, on connection: borrowing SQLiteConnection) throws {
    for name in shadow.tables {
      guard let number = shadow.entry(of: name)?.number else { continue }
      guard let table = tables[name], rows.choosesByRowAlone(name) else {
        try PrintEntry.remove(of: number, on: connection)
        continue
      }
      // A shadow that was made anew may have the number of the one before, whose prints are gone.
      let known = try table.known?.shadow == number && PrintEntry.exists(of: number, on: connection) ? table.known : nil
      try PrintEntry(basis: table.basis, key: table.key, pieces: PrintPieces.pieces(of: table.leaves))
        .write(of: number, over: known?.entry, on: connection)
    }
  }

  /// Forgets what is known of leaves whose rows have been changed in a shadow without being shared.
  ///
  /// - Parameters:
  ///   - keys: The keys of the rows.
  ///   - shadow: The number of the shadow.
  /// - Throws: `SQLiteError`.
  static func forget(_ keys: Set<Int64>, of shadow: Int64, on connection: borrowing SQLiteConnection) throws {
    guard let known = try PrintEntry.read(of: shadow, on: connection) else { return }
    try PrintEntry(basis: known.basis, key: known.key, pieces: PrintPieces.forgetting(keys, in: known.pieces))
      .write(of: shadow, over: known, on: connection)
  }
}

extension SharedTable {
  /// The beginning of parameters that comparing adds to a condition.
  private static let reservedParameters = "buckia_"

  /// Whether a row is shared depends, by all that the scope says of the table, on the row alone.
  fileprivate var choosesByRowAlone: Bool {
    guard parents.isEmpty else { return false }
    return condition.map { RowExpression.dependsOnRowAlone($0, withoutParameters: Self.reservedParameters) } ?? true
  }
}

extension TableDefinition {
  /// Whether the key is the rowid under another name.
  fileprivate func isKeyedByInteger(on connection: borrowing SQLiteConnection) throws -> Bool {
    guard !isKeyedByRowID, !isWithoutRowID, primaryKey.count == 1 else { return false }
    // Any other key has an index, that of `INTEGER PRIMARY KEY DESC`, too.
    return try connection.integer(
      "SELECT 1 FROM pragma_index_list(?1, 'main') WHERE origin = 'pk'", binding: [name]) == nil
  }
}
