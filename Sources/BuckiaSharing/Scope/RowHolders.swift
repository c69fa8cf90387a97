import BuckiaBytes
import BuckiaLedger
import SQLiteSchemas
import SQLiteChangesets
import SQLiteConnections

/// Who has which rows, as far as that is known here, and who has changed them.
final class RowHolders {
  private let readers: Set<String>
  private let vouchers: Vouchers
  private let connection: SQLiteConnection
  private let shadows: [TableName: ShadowEntry]
  private var changes: [String: [[UInt8]: Set<String>]] = [:]
  private var contents: [TableName: ContentTable] = [:]
  /// What each share has sent, and the keys of its recipients.
  private lazy var shares = Result {
    try ShareEntry.all(on: connection).map {
      (readers: try $0.readers(on: connection), shadow: try PeerShadow(of: $0, on: connection))
    }
  }

  /// - Parameters:
  ///   - share: The number of the share in question; nil for none.
  ///   - readers: The keys with which its recipients sign.
  /// - Throws: `SQLiteError`.
  init(
    _ vouchers: Vouchers, of share: Int64? = nil, readBy readers: Set<String> = [],
    on connection: borrowing SQLiteConnection
  ) throws {
    self.readers = readers
    self.vouchers = vouchers
    self.connection = SQLiteConnection(sharing: connection)
    let sent = try share.map { try ShadowEntry.all(of: $0, on: connection) } ?? []
    shadows = Dictionary(sent.map { ($0.table, $0) }) { first, _ in first }
  }

  /// True if others have sent rows of the tables, or changed any.
  func mayWiden(_ schema: ScopeSchema) throws -> Bool {
    try schema.tables.contains { table in
      if try !changed(.row, in: table.name).isEmpty || !changed(.reference, in: table.name).isEmpty { return true }
      if let keyed = KeyedTable(table.definition, table.definition), try vouchers.haveBrought(keyed) { return true }
      return try CountedTable(table.name, on: connection) != nil
    }
  }

  /// The rows of a table that others have changed, and who has.
  func changed(_ kind: WideningChanges.Kind, in table: TableName) throws -> [[UInt8]: Set<String>] {
    let name = "\(kind.rawValue) \(ASCIIName.folded(table.text))"
    if let known = changes[name] { return known }
    let found = try WideningChanges.senders(kind, of: table, on: connection)
    changes[name] = found
    return found
  }

  /// Chooses rows that were not sent to the recipients, as SQL.
  ///
  /// - Parameter keys: The columns of their key, as SQL.
  func isUntold(_ table: KeyedTable, _ keys: [String]) throws -> String {
    guard let shadow = shadows[table.name] else { return "1" }
    let isSame = zip(table.local.keySQL, keys).map { "o.\($0) = \($1)" }.joined(separator: " AND ")
    return "NOT EXISTS (SELECT 1 FROM main.\(shadow.name.quoted) AS o WHERE \(isSame))"
  }

  /// True if recipients have sent a row.
  func haveSent(_ key: [UInt8], _ table: KeyedTable) throws -> Bool {
    try key.withRawSpan { bytes in
      try vouchers.found(table.row(withKey: bytes), bytes, of: table).contains { readers.contains($0.entry.sender) }
    }
  }

  /// True if a sender is known to have a row.
  ///
  /// - Parameter key: The values of its key, in the format of changesets.
  func has(_ sender: String, _ key: [UInt8], of table: KeyedTable) throws -> Bool {
    try key.withRawSpan { bytes in
      let row = table.row(withKey: bytes)
      if try vouchers.found(row, bytes, of: table).contains(where: { $0.entry.sender == sender }) { return true }
      return try shares.get().contains { share in
        try share.readers.contains(sender) && share.shadow.has(row, bytes, of: table)
      }
    }
  }

  /// Those by whose changes a row refers to what it does; empty where that was done here.
  ///
  /// - Parameter key: The values of its key, in the format of changesets.
  func senders(ofReferences key: [UInt8], in table: KeyedTable) throws -> Set<String> {
    let changed = try [WideningChanges.Kind.row, .reference].compactMap { try self.changed($0, in: table.name)[key] }
    let brought = try key.withRawSpan { bytes in
      try vouchers.found(table.row(withKey: bytes), bytes, of: table).filter { !$0.row.isOwn }.map(\.entry.sender)
    }
    return changed.reduce(Set(brought)) { $0.union($1) }
  }

  /// Those who have sent a row that only its content identifies; empty where that was done here.
  func senders(ofContent identity: [ChangesetValue], in table: ScopeSchema.Table) throws -> Set<String> {
    let known =
      try contents[table.name]
      ?? ContentTables([table.definition], SchemaReader(connection), on: connection)[table.name]
    contents[table.name] = known
    let senders = try known?.senders(ofRow: identity, identifiedBy: table.identity) ?? []
    // The rows that a dataset begins with were here before.
    return senders.contains(CopiedRows.datasetSender) ? [] : senders
  }
}
