import BuckiaBytes
import BuckiaDiff
import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Rows that would enter a share only through a change by a sender who does not have them: a row that refers to them,
/// or values that the sender has set. They are left out until a person allows them, and so are the rows that refer to
/// them.
///
/// Candidates are the rows that the recipients are not known to have and that are shared because other rows refer to
/// them, or because another sender has changed them, with the children that come along. A shared row that is not a
/// candidate removes the candidates that it brings along, and each removed candidate does the same. The candidates that
/// remain are held back.
extension ScopeRows {
  /// The reference number of rows that are held back.
  static let heldBack = -1

  private func candidatesName(_ place: Int) -> String {
    "temp.\(SQLiteConnection.temporaryPrefix)held_back_\(place)"
  }

  /// Finds the rows that are held back.
  ///
  /// - Parameters:
  ///   - readers: The keys with which the recipients sign.
  ///   - share: The number of the share.
  /// - Throws: `SQLiteError`.
  func holdBack(from readers: Set<String>, of share: Int64) throws {
    let holders = try RowHolders(Provenance(on: connection), of: share, readBy: readers, on: connection)
    guard try holders.mayWiden(schema) else { return }
    var candidates: Set<Int> = []
    for place in schema.tables.indices where schema.tables[place].rows != .all {
      if try addCandidates(place, holders, &candidates) { candidates.insert(place) }
    }
    try repeatForReferences { reference, number in
      guard let parent = reference.parent, candidates.contains(parent), bringsRows(reference) else { return false }
      return try addChildren(of: reference, number, holders, &candidates)
    }
    try repeatForReferences { reference, number in
      guard let parent = reference.parent else { return false }
      let hasParents = try candidates.contains(parent) && removeParents(of: reference, number, candidates, holders)
      let hasChildren =
        try candidates.contains(reference.child) && bringsRows(reference)
        && removeChildren(of: reference, isCandidate: candidates.contains(parent))
      return hasParents || hasChildren
    }
    for place in candidates.sorted() {
      let keys = Self.keys(of: schema.tables[place])
      if try connection.integer("SELECT 1 FROM \(candidatesName(place)) LIMIT 1") != nil {
        try insert("\(keys), 0, \(Self.heldBack) FROM \(candidatesName(place))", into: place, binding: nil)
      }
      try connection.execute("DROP TABLE \(candidatesName(place))")
    }
  }

  /// Runs `body` for each reference, until it changes nothing.
  private func repeatForReferences(_ body: (ScopeSchema.Reference, Int) throws -> Bool) throws {
    var hasFound = true
    while hasFound {
      hasFound = false
      for (number, reference) in schema.references.enumerated() {
        if try body(reference, number) { hasFound = true }
      }
    }
  }

  /// True if rows of a gathered table are shared because they refer to others.
  private func bringsRows(_ reference: ScopeSchema.Reference) -> Bool {
    reference.bringsChildren && schema.tables[reference.child].rows == .gathered
  }

  /// Lists the rows of a table that the recipients are not known to have and that are shared because other rows refer
  /// to them, or because another sender has changed them.
  ///
  /// - Parameter parents: The referring rows, as a part of a FROM clause in which they are `c`, and the table with its
  ///   parameters; nil for all rows.
  /// - Returns: True if there are any.
  private func addCandidates(
    _ place: Int, _ holders: RowHolders, _ candidates: inout Set<Int>,
    among parents: (sql: String, binding: SharedTable?)? = nil
  ) throws -> Bool {
    let table = schema.tables[place]
    guard let keyed = KeyedTable(table.definition, table.definition) else { return false }
    let changed = try parents == nil ? holders.changed(.widening, in: table.name) : [:]
    if table.rows == .condition, changed.isEmpty { return false }
    let keys = table.definition.keySQL.map { "c.\($0)" }
    let identity =
      table.rows == .condition ? table.identity.indices.map { "c.buckia_k\($0)" } : table.identity.map { "c.\($0)" }
    let isOnlyReferredTo = table.rows == .gathered ? "s.level IS NULL" : "0"
    var isAsked = changed.isEmpty ? isOnlyReferredTo : "1"
    if let parents {
      let list = "(\(Self.keys(of: table, as: "s")))"
      isAsked = "s.level > 0 AND \(list) IN (SELECT \(Self.keys(of: table, as: "c")) FROM \(parents.sql))"
      if candidates.contains(place) {
        isAsked += " AND \(list) NOT IN (SELECT \(Self.keys(of: table)) FROM \(candidatesName(place)))"
      }
    }
    let query = try connection.prepare(
      """
      SELECT \((keys + identity).joined(separator: ", ")), \(isOnlyReferredTo) FROM \(source(of: place))
      WHERE \(isAsked) AND \(try holders.isUnsent(keyed, keys))
      """)
    if let shared = table.rows == .condition ? table.shared : parents?.binding {
      try RowSelection(where: nil, shared.parameters).bindParameters(to: query)
    }
    var found: [[ChangesetValue]] = []
    while try query.step() {
      let key = query.record(of: 0..<keys.count)
      let isChanged = changed[key] != nil
      guard isChanged || parents != nil || query.integer(at: keys.count + identity.count) == 1,
        try isChanged || !holders.haveSent(key, keyed)
      else { continue }
      found.append(
        table.identity.indices.map { ChangesetValue(query, at: keys.count + $0) } + [.integer(isChanged ? 1 : 0)])
    }
    if found.isEmpty { return false }
    query.reset()
    let name = candidatesName(place)
    if !candidates.contains(place) {
      try connection.execute("DROP TABLE IF EXISTS \(name)")
      try makeTable(name, of: table, [("changed", "INTEGER NOT NULL")])
      candidates.insert(place)
    }
    try run(
      "INSERT INTO \(name) VALUES (\((0...table.identity.count).map { "?\($0 + 1)" }.joined(separator: ", ")))",
      for: found)
    return true
  }

  /// Adds the children of candidates to the candidates.
  ///
  /// - Returns: True if any were added.
  private func addChildren(
    of reference: ScopeSchema.Reference, _ number: Int, _ holders: RowHolders, _ candidates: inout Set<Int>
  ) throws -> Bool {
    guard let place = reference.parent else { return false }
    let children = try join(
      sharedChildren(of: reference, number), of: reference, number, to: place, candidatesName(place))
    return try addCandidates(reference.child, holders, &candidates, among: children)
  }

  /// Removes the candidates to which a shared row refers that is not a candidate itself, unless that reference was set
  /// by a sender who does not have the candidate.
  ///
  /// - Returns: True if there were any.
  private func removeParents(
    of reference: ScopeSchema.Reference, _ number: Int, _ candidates: Set<Int>, _ holders: RowHolders
  ) throws -> Bool {
    guard let place = reference.parent else { return false }
    let (child, parent) = (schema.tables[reference.child], schema.tables[place])
    guard let keyedParent = KeyedTable(parent.definition, parent.definition) else { return false }
    let keyedChild = KeyedTable(child.definition, child.definition)
    let (join, binding) = try join(
      sharedChildren(of: reference, number), of: reference, number, to: place, candidatesName(place))
    let parents = parent.identity.indices.map { "s.k\($0)" }
    let parentKey = parent.definition.keySQL.map { "p.\($0)" }
    let childKey = child.definition.keySQL.map { "t.\($0)" }
    let childIdentity = child.identity.indices.map { "c.k\($0)" }
    let isOpen = candidates.contains(reference.child) ? isCandidate(childIdentity, reference.child) : "0"
    let isChild = zip(child.identity, childIdentity).map { "t.\($0) = \($1)" }.joined(separator: " AND ")
    let query = try connection.prepare(
      """
      SELECT \((childKey + parentKey + childIdentity + parents).joined(separator: ", ")) FROM \(join) \
      CROSS JOIN \(child.sql) AS t ON \(isChild) WHERE NOT \(isOpen)
      """)
    if let binding { try RowSelection(where: nil, binding.parameters).bindParameters(to: query) }
    var own: [[ChangesetValue]] = []
    while try query.step() {
      var place = 0
      func next(_ count: Int) -> [ChangesetValue] {
        defer { place += count }
        return (0..<count).map { ChangesetValue(query, at: place + $0) }
      }
      let (key, parentKey) = (next(childKey.count), ChangesetWriter.record(of: next(parentKey.count)))
      let identity = next(childIdentity.count)
      let senders =
        if let keyedChild, !key.contains(.null) {
          try holders.senders(ofReferences: ChangesetWriter.record(of: key), in: keyedChild)
        } else {
          try holders.senders(ofContent: identity, in: child)
        }
      guard try senders.isEmpty || senders.contains(where: { try holders.has($0, parentKey, of: keyedParent) }) else {
        continue
      }
      own.append(next(parents.count))
    }
    query.reset()
    let isOwn = parents.indices.map { "k\($0) = ?\($0 + 1)" }.joined(separator: " AND ")
    try run("DELETE FROM \(candidatesName(place)) WHERE \(isOwn)", for: own)
    return !own.isEmpty
  }

  /// Removes the candidates that no other sender has changed and that refer to a shared row which is not a candidate.
  ///
  /// - Parameter isCandidate: True if rows of the parent may be candidates.
  /// - Returns: True if there were any.
  private func removeChildren(of reference: ScopeSchema.Reference, isCandidate: Bool) throws -> Bool {
    guard let place = reference.parent else { return false }
    let (child, parent) = (schema.tables[reference.child], schema.tables[place])
    let isChild = zip(child.identity, child.identity.indices).map { "c.\($0) = o.k\($1)" }.joined(separator: " AND ")
    let identity =
      parent.rows == .condition ? parent.identity.indices.map { "p.buckia_k\($0)" } : parent.identity.map { "p.\($0)" }
    // The parent is found by its key.
    let source =
      parent.rows == .gathered
      ? "\(parent.sql) AS p ON \(match(reference)) CROSS JOIN \(Self.name(place)) AS s ON \(isGathered(parent, as: "p"))"
      : "\(self.source(of: place, as: "p")) ON \(match(reference))"
    let terms = [
      "NOT o.changed", parent.rows == .gathered ? "s.level IS NOT NULL" : nil,
      isCandidate ? "NOT \(self.isCandidate(identity, place, as: "q"))" : nil,
    ]
    let keys = Self.keys(of: child)
    let removed = try run(
      """
      DELETE FROM \(candidatesName(reference.child)) WHERE (\(keys)) IN (SELECT \(Self.keys(of: child, as: "o")) \
      FROM \(candidatesName(reference.child)) AS o CROSS JOIN \(child.sql) AS c ON \(isChild) CROSS JOIN \(source) \
      WHERE \(terms.compactMap { $0 }.joined(separator: " AND ")))
      """, binding: parent.rows == .condition ? parent.shared : nil)
    return removed > 0
  }

  /// An SQL expression that is true for a candidate.
  private func isCandidate(_ identity: [String], _ place: Int, as alias: String = "o") -> String {
    let isSame = identity.enumerated().map { "\(alias).k\($0) = \($1)" }.joined(separator: " AND ")
    return "EXISTS (SELECT 1 FROM \(candidatesName(place)) AS \(alias) WHERE \(isSame))"
  }

  /// Runs a statement for each of some keys.
  private func run(_ sql: String, for keys: [[ChangesetValue]]) throws {
    let statement = try connection.prepare(sql)
    for values in keys {
      for (index, value) in values.enumerated() { try statement.bind(value, at: index) }
      try statement.run()
    }
  }
}

/// Which senders are known to have which rows, and which have changed them.
final class RowHolders {
  private let readers: Set<String>
  private let provenance: Provenance
  private let connection: SQLiteConnection
  private let baselines: [TableName: BaselineEntry]
  private var changes: [String: [[UInt8]: Set<String>]] = [:]
  private var contents: [TableName: ContentTable] = [:]
  /// What each share has sent, and the keys of its recipients.
  private lazy var shares = Result {
    try ShareEntry.all(on: connection).map {
      (readers: try $0.readers(on: connection), baseline: try PeerBaseline(of: $0, on: connection))
    }
  }

  /// - Parameters:
  ///   - share: The number of the share in question; nil for none.
  ///   - readers: The keys with which its recipients sign.
  /// - Throws: `SQLiteError`.
  init(
    _ provenance: Provenance, of share: Int64? = nil, readBy readers: Set<String> = [],
    on connection: borrowing SQLiteConnection
  ) throws {
    self.readers = readers
    self.provenance = provenance
    self.connection = SQLiteConnection(sharing: connection)
    let sent = try share.map { try BaselineEntry.all(of: $0, on: connection) } ?? []
    baselines = Dictionary(sent.map { ($0.table, $0) }) { first, _ in first }
  }

  /// True if others have sent rows of the tables, or changed any.
  func mayWiden(_ schema: ScopeSchema) throws -> Bool {
    try schema.tables.contains { table in
      if try !changed(.widening, in: table.name).isEmpty || !changed(.wideningReference, in: table.name).isEmpty {
        return true
      }
      if let keyed = KeyedTable(table.definition, table.definition), try provenance.haveBrought(keyed) { return true }
      return try CountedTable(table.name, on: connection) != nil
    }
  }

  /// The rows of a table that other senders have changed, with these senders.
  func changed(_ kind: RowNotes.Kind, in table: TableName) throws -> [[UInt8]: Set<String>] {
    let name = "\(kind.rawValue) \(ASCIIName.folded(table.text))"
    if let known = changes[name] { return known }
    let found = try RowNotes.senders(kind, of: table, on: connection)
    changes[name] = found
    return found
  }

  /// An SQL condition for rows that were not sent to the recipients.
  ///
  /// - Parameter keys: The key columns, as SQL.
  func isUnsent(_ table: KeyedTable, _ keys: [String]) throws -> String {
    guard let baseline = baselines[table.name] else { return "1" }
    let isSame = zip(table.local.keySQL, keys).map { "o.\($0) = \($1)" }.joined(separator: " AND ")
    return "NOT EXISTS (SELECT 1 FROM main.\(baseline.name.quoted) AS o WHERE \(isSame))"
  }

  /// True if recipients have sent a row.
  func haveSent(_ key: [UInt8], _ table: KeyedTable) throws -> Bool {
    try key.withRawSpan { bytes in
      try provenance.found(table.row(withKey: bytes), bytes, of: table).contains { readers.contains($0.entry.sender) }
    }
  }

  /// True if a sender is known to have a row.
  ///
  /// - Parameter key: The values of its key, in the format of changesets.
  func has(_ sender: String, _ key: [UInt8], of table: KeyedTable) throws -> Bool {
    try key.withRawSpan { bytes in
      let row = table.row(withKey: bytes)
      // A sender who has named a row without knowing it does not have it.
      if try provenance.found(row, bytes, of: table).contains(where: { $0.entry.sender == sender }),
        try changed(.widening, in: table.name)[key]?.contains(sender) != true
      {
        return true
      }
      return try shares.get().contains { share in
        try share.readers.contains(sender) && share.baseline.has(row, bytes, of: table)
      }
    }
  }

  /// The senders whose changes have set the references of a row; empty if they were set here.
  ///
  /// - Parameter key: The values of its key, in the format of changesets.
  func senders(ofReferences key: [UInt8], in table: KeyedTable) throws -> Set<String> {
    let changed = try [RowNotes.Kind.widening, .wideningReference].compactMap {
      try self.changed($0, in: table.name)[key]
    }
    let brought = try key.withRawSpan { bytes in
      try provenance.found(table.row(withKey: bytes), bytes, of: table).filter { !$0.row.isOwn }.map(\.entry.sender)
    }
    return changed.reduce(Set(brought)) { $0.union($1) }
  }

  /// The senders of a row that only its content identifies; empty if it was inserted here.
  func senders(ofContent identity: [ChangesetValue], in table: ScopeSchema.Table) throws -> Set<String> {
    let known =
      try contents[table.name]
      ?? ContentTables([table.definition], SchemaReader(connection), on: connection)[table.name]
    contents[table.name] = known
    let senders = try known?.senders(ofRow: identity, identifiedBy: table.identity) ?? []
    // Rows of the dataset were here before any sender sent them.
    return senders.contains(CopiedRows.datasetSender) ? [] : senders
  }
}
