import BuckiaDiff
import BuckiaLedger
import BuckiaSchemaPlans
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Rows that would come into a share only by a change of one of its recipients: by a row of theirs that refers to them, or by values that a
/// recipient has set. They are left out until a person says yes, and so are the rows that refer to them.
extension ScopeRows {
  /// In the place of the number of a reference: rows that are held back.
  static let heldBack = -1

  private func candidatesName(_ place: Int) -> String {
    "temp.\(SQLiteConnection.temporaryPrefix)candidates_\(place)"
  }

  /// Finds the rows that are held back.
  ///
  /// - Parameters:
  ///   - readers: The keys with which the recipients sign.
  ///   - share: The number of the share.
  /// - Throws: `SQLiteError`.
  func holdBack(from readers: Set<String>, of share: Int64) throws {
    let recipients = try HeldBackRows(readers, share, on: connection)
    var candidates: Set<Int> = []
    for place in schema.tables.indices where schema.tables[place].rows != .all {
      if try addCandidates(place, recipients) { candidates.insert(place) }
    }
    var hasFound = !candidates.isEmpty
    while hasFound {
      hasFound = false
      for (number, reference) in schema.references.enumerated() {
        guard let parent = reference.parent, candidates.contains(parent) else { continue }
        if try removeOwn(reference, number, parent, candidates, recipients) { hasFound = true }
      }
    }
    for place in candidates.sorted() {
      let keys = Self.keys(of: schema.tables[place])
      if try connection.integer("SELECT 1 FROM \(candidatesName(place)) LIMIT 1") != nil {
        try insert("\(keys), 0, \(Self.heldBack) FROM \(candidatesName(place))", into: place, binding: nil)
      }
      try connection.execute("DROP TABLE \(candidatesName(place))")
    }
  }

  /// Lists the rows of a table that recipients are not known to have, and that are shared because others refer to them, or because a
  /// recipient has changed them.
  ///
  /// - Returns: True if there are any.
  private func addCandidates(_ place: Int, _ recipients: HeldBackRows) throws -> Bool {
    let table = schema.tables[place]
    guard let keyed = KeyedTable(table.definition, table.definition), try recipients.mayWiden(schema) else {
      return false
    }
    let changed = try recipients.changed(.row, in: table.name)
    if table.rows == .condition, changed.isEmpty { return false }
    let keys = table.definition.keySQL.map { "c.\($0)" }
    let identity =
      table.rows == .condition ? table.identity.indices.map { "c.buckia_k\($0)" } : table.identity.map { "c.\($0)" }
    let isOnlyReferredTo = table.rows == .gathered ? "s.level IS NULL" : "0"
    let isAsked = changed.isEmpty ? isOnlyReferredTo : "1"
    let query = try connection.prepare(
      """
      SELECT \((keys + identity).joined(separator: ", ")), \(isOnlyReferredTo) FROM \(source(of: place))
      WHERE \(isAsked) AND \(try recipients.isUntold(keyed, keys))
      """)
    if table.rows == .condition, let shared = table.shared {
      try RowSelection(where: nil, shared.parameters).bindParameters(to: query)
    }
    var found: [[ChangesetValue]] = []
    while try query.step() {
      let key = ContentTable.content(of: query, keys.count)
      let isChanged = changed.contains(key)
      guard isChanged || query.integer(at: keys.count + identity.count) == 1,
        try !recipients.have(key, isChanged: isChanged, keyed)
      else { continue }
      found.append(table.identity.indices.map { ChangesetValue(query, at: keys.count + $0) })
    }
    if found.isEmpty { return false }
    query.reset()
    let name = candidatesName(place)
    try connection.execute("DROP TABLE IF EXISTS \(name)")
    try makeTable(name, of: table, [])
    try run(
      "INSERT INTO \(name) VALUES (\(table.identity.indices.map { "?\($0 + 1)" }.joined(separator: ", ")))", for: found)
    return true
  }

  /// Takes out those that a shared row refers to which is neither a recipient's nor in question itself.
  ///
  /// - Returns: True if there were any.
  private func removeOwn(
    _ reference: ScopeSchema.Reference, _ number: Int, _ place: Int, _ candidates: Set<Int>, _ recipients: HeldBackRows
  ) throws -> Bool {
    let child = schema.tables[reference.child]
    let keyed = KeyedTable(child.definition, child.definition)
    let (join, binding) = try join(
      sharedChildren(of: reference, number), of: reference, number, to: place, candidatesName(place))
    let parents = schema.tables[place].identity.indices.map { "s.k\($0)" }
    let keys = child.definition.keySQL
    let isOpen =
      candidates.contains(reference.child)
      ? "EXISTS (SELECT 1 FROM \(candidatesName(reference.child)) AS o WHERE "
        + child.identity.indices.map { "o.k\($0) = c.k\($0)" }.joined(separator: " AND ") + ")" : "0"
    let isChild = zip(child.identity, child.identity.indices).map { "t.\($0) = c.k\($1)" }.joined(separator: " AND ")
    let query = try connection.prepare(
      """
      SELECT \((keys.map { "t.\($0)" } + parents).joined(separator: ", ")) FROM \(join) \
      CROSS JOIN \(child.sql) AS t ON \(isChild) WHERE NOT \(isOpen)
      """)
    if let binding { try RowSelection(where: nil, binding.parameters).bindParameters(to: query) }
    var own: [[ChangesetValue]] = []
    while try query.step() {
      let key = keyed == nil ? nil : ContentTable.content(of: query, keys.count)
      if try keyed.map({ try recipients.haveReferred(key ?? [], $0) }) ?? recipients.haveSent(child.name) { continue }
      own.append(parents.indices.map { ChangesetValue(query, at: keys.count + $0) })
    }
    query.reset()
    let isOwn = parents.indices.map { "k\($0) = ?\($0 + 1)" }.joined(separator: " AND ")
    try run("DELETE FROM \(candidatesName(place)) WHERE \(isOwn)", for: own)
    return !own.isEmpty
  }

  /// Runs a statement for some keys.
  private func run(_ sql: String, for keys: [[ChangesetValue]]) throws {
    let statement = try connection.prepare(sql)
    for values in keys {
      for (index, value) in values.enumerated() { try statement.bind(value, at: index) }
      try statement.run()
    }
  }
}

/// What the recipients of a share have, and what they have done.
private final class HeldBackRows {
  private let readers: Set<String>
  private let vouchers: Vouchers
  private let connection: SQLiteConnection
  private let shadows: [TableName: ShadowEntry]
  private var changes: [String: Set<[UInt8]>] = [:]
  private var sent: [TableName: Bool] = [:]
  private var widens: Bool?

  init(_ readers: Set<String>, _ share: Int64, on connection: borrowing SQLiteConnection) throws {
    self.readers = readers
    vouchers = Vouchers(on: connection)
    self.connection = SQLiteConnection(sharing: connection)
    let found = try ShadowEntry.all(of: share, on: connection)
    shadows = Dictionary(found.map { ($0.table, $0) }) { first, _ in first }
  }

  /// True if the recipients have sent any rows of the tables, or changed any.
  func mayWiden(_ schema: ScopeSchema) throws -> Bool {
    if let widens { return widens }
    let found = try schema.tables.contains { table in
      if let keyed = KeyedTable(table.definition, table.definition) {
        return try vouchers.haveBrought(keyed) || !changed(.row, in: table.name).isEmpty
          || !changed(.reference, in: table.name).isEmpty
      }
      return try haveSent(table.name)
    }
    widens = found
    return found
  }

  func changed(_ kind: WideningChanges.Kind, in table: TableName) throws -> Set<[UInt8]> {
    let name = "\(kind.rawValue) \(ASCIIName.folded(table.text))"
    if let known = changes[name] { return known }
    let found = try WideningChanges.keys(kind, of: table, by: readers, on: connection)
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

  /// True if recipients are known to have a row that was not sent to them: they have sent it themselves.
  func have(_ key: [UInt8], isChanged: Bool, _ table: KeyedTable) throws -> Bool {
    if isChanged { return false }
    return try key.withRawSpan { bytes in
      try vouchers.found(table.row(withKey: bytes), bytes, of: table).contains { readers.contains($0.entry.sender) }
    }
  }

  /// True if a row refers to what it does because recipients have said so.
  func haveReferred(_ key: [UInt8], _ table: KeyedTable) throws -> Bool {
    if try changed(.reference, in: table.name).contains(key) || changed(.row, in: table.name).contains(key) {
      return true
    }
    return try key.withRawSpan { try vouchers.brought(table.row(withKey: $0), $0, of: table, by: readers) }
  }

  /// True if recipients have sent rows of a table without a key.
  func haveSent(_ table: TableName) throws -> Bool {
    if let known = sent[table] { return known }
    let found = try CountedTable(table, on: connection)?.hasContent(heldBy: readers) ?? false
    sent[table] = found
    return found
  }
}
