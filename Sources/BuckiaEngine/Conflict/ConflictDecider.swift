import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// A conflict as it happened, still in the bytes of the changeset.
struct ConflictIncident {
  let kind: ConflictKind
  let operation: ChangeOperation
  let old: [ValueSlice]
  let new: [ValueSlice]
  let local: LocalRow?
  let error: SQLiteError?
}

/// Decides conflicts by the resolver and the policy, and writes them down.
final class ConflictDecider {
  private let policy: ConflictPolicy
  private let resolver: ConflictResolver?
  private let log: ConflictLog

  init(policy: ConflictPolicy, resolver: ConflictResolver?, log: ConflictLog) {
    self.policy = policy
    self.resolver = resolver
    self.log = log
  }

  /// Whether edits that both sides made alike are asked about too: a resolver sees what SQLite's would.
  var asksAboutEverything: Bool { resolver != nil }

  /// Decides one conflict.
  ///
  /// - Throws: `EngineError` with `conflict` when the answer is to abort; whatever the resolver throws.
  func decide(_ incident: ConflictIncident, _ table: TableStatements, _ bytes: RawSpan) throws -> ConflictPolicy {
    var answer = policy
    if let resolver {
      switch try resolver(try conflict(incident, table, bytes)) {
      case .useDefault: break
      case .keepLocal: answer = .keepLocal
      case .takeIncoming: answer = .takeIncoming
      case .abort: answer = .abort
      }
    }
    if answer == .abort {
      let because = incident.error.map { ": \($0.message)" } ?? ""
      throw EngineError(
        .conflict,
        "\(incident.operation.name) of a row of table \"\(table.name)\" meets a conflict (\(incident.kind.rawValue))"
          + "\(because); under the policy \"abort\" nothing of this file is applied",
        table: table.name.text)
    }
    return answer
  }

  private func conflict(
    _ incident: ConflictIncident, _ table: TableStatements, _ bytes: RawSpan
  ) throws -> Conflict {
    let rows = Rows(incident, table, bytes)
    return Conflict(
      table: table.name, kind: incident.kind, operation: incident.operation,
      columns: table.match.local.changesetColumns, base: try rows.base.map { try ChangesetValue.record($0) },
      local: try rows.local.map { try ChangesetValue.record($0) },
      incoming: try rows.incoming.map { try ChangesetValue.record($0) })
  }

  /// Writes a conflict down with all its versions.
  func record(
    _ incident: ConflictIncident, _ outcome: ConflictOutcome, _ table: TableStatements, _ bytes: RawSpan,
    on connection: borrowing SQLiteConnection
  ) throws {
    let rows = Rows(incident, table, bytes)
    let keys = table.isKey.indices.filter { table.isKey[$0] }.map { table.match.columns[$0] }
    try log.record(
      table: table.name, columns: table.match.local.changesetColumns, key: Set(keys), kind: incident.kind,
      outcome: outcome, base: rows.base, local: rows.local, incoming: rows.incoming, reason: incident.error?.message,
      on: connection)
  }

  /// Writes down that a row refers to one that is not there.
  func recordForeignKey(_ violation: ForeignKeyAudit.Violation, on connection: borrowing SQLiteConnection) throws {
    if policy == .abort {
      throw EngineError(
        .conflict, "\(violation.message); under the policy \"abort\" nothing of this file is applied",
        table: violation.table.text)
    }
    try log.record(
      table: violation.table, columns: violation.columns, key: violation.key, kind: .foreignKey, outcome: .reported,
      base: nil, local: violation.row, incoming: nil, reason: violation.message, on: connection)
  }

  /// The three versions of a row, in the order of the local layout.
  private struct Rows {
    let base: [UInt8]?
    let local: [UInt8]?
    let incoming: [UInt8]?

    init(_ incident: ConflictIncident, _ table: TableStatements, _ bytes: RawSpan) {
      base = incident.operation == .insert ? nil : Self.encoded(incident.old, key: [], table, bytes)
      incoming = incident.operation == .delete ? nil : Self.encoded(incident.new, key: incident.old, table, bytes)
      local = incident.local?.prefix(table.layout.count)
    }

    /// The values of a change as a local row, with those of the key from where the change has them.
    private static func encoded(
      _ values: [ValueSlice], key: [ValueSlice], _ table: TableStatements, _ bytes: RawSpan
    ) -> [UInt8] {
      var places = [ValueSlice](repeating: .undefined, count: table.layout.count)
      for index in key.indices where table.isKey[index] { places[table.match.columns[index]] = key[index] }
      for index in values.indices where values[index].isDefined { places[table.match.columns[index]] = values[index] }
      var writer = ChangesetWriter()
      for value in places { writer.append(value, of: bytes) }
      return writer.bytes
    }
  }
}

extension ChangeOperation {
  /// The SQL word.
  public var name: String {
    switch self {
    case .delete: "DELETE"
    case .insert: "INSERT"
    case .update: "UPDATE"
    }
  }
}
