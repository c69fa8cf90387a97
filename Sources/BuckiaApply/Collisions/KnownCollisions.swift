import BuckiaLedger
import SQLiteChangesets
import SQLiteSchemas

/// What the changes of one table are known to meet before they are tried: keys that the sender contests, and rows that were left
/// out.
final class KnownCollisions {
  private let refused: RefusedRows
  private let contested: ContestedKeys
  private let statements: TableStatements
  private let header: ChangesetTable
  private let key: RowKey
  private let session: ApplySession
  /// Whether rows of the table refer to rows of the diff that were left out.
  private let areReferred: Bool
  /// Whether keys of the table are contested.
  private let isContested: Bool
  /// The foreign keys to tables with contested keys.
  private let contestedParents: [ReferenceLink]
  private var keyColumns: [TableName: [String]] = [:]

  init(
    _ refused: RefusedRows, _ contested: ContestedKeys, _ statements: TableStatements, _ header: ChangesetTable,
    areReferred: Bool,
    isContested: Bool, contestedParents: [ReferenceLink], _ session: ApplySession
  ) {
    self.refused = refused
    self.contested = contested
    self.statements = statements
    self.header = header
    self.areReferred = areReferred
    self.isContested = isContested
    self.contestedParents = contestedParents
    self.session = session
    key = RowKey(of: header)
  }

  // MARK: Parents that are not here

  /// Why an INSERT or UPDATE would make its row refer to another than its author means, as a sentence; nil when it would not.
  func missingParent(of change: DecodedChange, _ bytes: RawSpan) throws -> String? {
    if areReferred, let parent = try refused.parent(of: key.identity(of: change, bytes), in: header.name) {
      let because =
        switch parent.cause {
        case .keyTaken?: "because another row with this key is here"
        case .constraint?: "because a constraint refuses it"
        case nil: "too"
        }
      let comma = parent.cause == nil ? "," : ""
      return "it refers to \(try name(of: parent.key, parent.table)), which was left out\(comma) \(because)"
    }
    for link in contestedParents {
      guard let values = try link.values(of: change, bytes, statements) else { continue }
      let table = TableName(link.parent.name)
      guard try contested.contains(values.record, of: table, for: .reference) else { continue }
      return "it refers to \(try name(of: values.record, table)) of its sender, and another row with this key is here"
    }
    return nil
  }

  private func name(of key: [UInt8], _ table: TableName) throws -> RowName {
    RowName(table: table.text, columns: try keyColumns(of: table), values: try ChangesetValue.record(key))
  }

  private func keyColumns(of table: TableName) throws -> [String] {
    if let known = keyColumns[table] { return known }
    let schema = try session.schema()
    let definition = try schema.entry(named: table).map { try schema.definition(of: $0) }
    let names = definition.map { definition in definition.keyIndexes.map { definition.changesetColumns[$0] } } ?? []
    keyColumns[table] = names
    return names
  }

  /// Says that a row is written although it refers to one that was left out.
  func take(_ change: DecodedChange, _ bytes: RawSpan) throws {
    if areReferred { try refused.take(key.identity(of: change, bytes), in: header.name) }
  }

  // MARK: Contested keys

  /// Whether the sender means another row by the key of a change than the local one.
  func isContested(_ change: DecodedChange, _ bytes: RawSpan) throws -> Bool {
    guard isContested, !change.hasNullKey else { return false }
    return try contested.contains(key.bytes(of: change, bytes), of: statements.name, for: .change)
  }

  /// Says that a key means one row to both sides from now on, or none here.
  func endContest(_ change: DecodedChange, _ bytes: RawSpan) throws {
    try contested.remove(key.bytes(of: change, bytes), of: statements.name)
  }
}
