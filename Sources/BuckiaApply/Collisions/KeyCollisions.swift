import BuckiaLedger
import SQLiteSchemas
import SQLiteChangesets
import SQLiteConnections

/// What is known, while one diff is applied, of keys that a row of its author's and another local row have in common.
final class KeyCollisions {
  /// The rows that are left out, and those that refer to them.
  let refused: RefusedRows
  /// The keys that the sender contests.
  let contested: ContestedKeys
  /// Whether new contests are written down.
  private let recordsContests: Bool
  /// Whether any key was contested when this diff began: most databases have none, and nothing has to be looked up.
  private let hadContests: Bool
  private let session: ApplySession
  private var referredPlaces: [TableName: [Int]] = [:]

  /// - Parameter recordsContests: Whether new contests are written down.
  init(refused: RefusedRows, contested: ContestedKeys, recordsContests: Bool, in session: ApplySession) throws {
    self.refused = refused
    self.contested = contested
    self.recordsContests = recordsContests
    self.session = session
    hadContests = try session.keepsLedger && ContestedKeys.exist(on: session.connection)
  }

  /// What the changes of a table may meet; nil for most.
  func known(of statements: TableStatements, _ header: ChangesetTable) throws -> KnownCollisions? {
    let areReferred = refused.areReferred(by: TableName(header.name))
    guard hadContests || contested.hasGrown || areReferred else { return nil }
    var links: [ReferenceLink] = []
    if hadContests {
      links = try ReferenceLink.all(of: statements.match, in: session.schema()).compactMap { link in
        guard try contested.exist(in: TableName(link.parent.name)) else { return nil }
        return link.inKeyOrder
      }
    }
    let isContested = try (hadContests || contested.hasGrown) && contested.exist(in: statements.name)
    guard areReferred || isContested || !links.isEmpty else { return nil }
    return KnownCollisions(
      refused, contested, statements, header, areReferred: areReferred, isContested: isContested,
      contestedParents: links, session)
  }

  /// The places in the layout of a table that foreign keys refer to.
  func referredPlaces(of table: TableDefinition) throws -> [Int] {
    let name = TableName(table.name)
    if let known = referredPlaces[name] { return known }
    let children = try session.references().children(of: name)
    let schema = try session.schema()
    let offset = table.isKeyedByRowID ? 1 : 0
    var places: Set<Int> = []
    for child in children {
      guard let entry = schema.entry(named: child), entry.kind == .table else { continue }
      for key in try schema.definition(of: entry).foreignKeys where TableName(key.parent) == name {
        places.formUnion(table.columns(referredToBy: key).map { $0 + offset })
      }
    }
    let found = places.sorted()
    referredPlaces[name] = found
    return found
  }

  /// What the conflicts of a table's INSERTs mean for others.
  func found(in statements: TableStatements, _ header: ChangesetTable) -> FoundCollisions {
    FoundCollisions(self, contested: recordsContests ? contested : nil, statements, header)
  }
}

extension ReferenceLink {
  /// The foreign key with its columns in the order of the parent's key; nil where it refers to other columns.
  fileprivate var inKeyOrder: ReferenceLink? {
    guard parentColumns.count == parent.primaryKey.count else { return nil }
    let order = parent.primaryKey.compactMap { parentColumns.firstIndex(of: $0) }
    guard order.count == parentColumns.count else { return nil }
    return ReferenceLink(
      child: child, parent: parent, parentColumns: parent.primaryKey, childColumns: order.map { childColumns[$0] })
  }
}
