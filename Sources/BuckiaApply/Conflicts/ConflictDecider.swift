import BuckiaBytes
import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Decides conflicts by the resolver and the policies, and records them.
final class ConflictDecider {
  private let policies: ConflictPolicies
  private let resolver: ((borrowing Conflict) throws -> ConflictDecision)?
  /// The rules; nil if rules are ignored.
  private let rules: ConflictRules?
  /// The rule that has decided the present conflict; nil for none.
  private(set) var rule: Int64?
  /// Nil if conflicts are not recorded.
  private let log: ConflictLog?
  /// The left-out changes of watched tables.
  private(set) var omissions: [Omission] = []
  private var marked = 0
  /// True if rows that block an incoming one by a UNIQUE value are deleted.
  let makesRoom: Bool
  private let watched: [TableName: RowKey]
  /// The keys that the sender contests, which are collected like conflicts; nil if none are.
  private let contested: ContestedKeys?
  /// The conflicts that were open before; nil if they are not closed.
  private let open: OpenConflicts?
  /// The key of the signature, in the ledger's form.
  private let sender: String

  /// A change that was left out because of a conflict.
  struct Omission {
    let table: TableName
    let key: [UInt8]
    let kind: ConflictKind
    let outcome: ConflictOutcome
  }

  /// - Parameters:
  ///   - rules: The rules; nil to ignore rules.
  ///   - contested: The keys that the sender contests, which are stored with the conflicts.
  ///   - open: The conflicts that were open before; nil if they are not closed.
  ///   - sender: The key of the signature, in the ledger's form.
  ///   - watched: The tables whose omissions are collected, with their keys.
  ///   - makesRoom: True to delete rows that block an incoming one by a UNIQUE value.
  init(
    policies: ConflictPolicies, resolver: ((borrowing Conflict) throws -> ConflictDecision)?,
    rules: ConflictRules? = nil, log: ConflictLog?,
    contested: ContestedKeys? = nil, open: OpenConflicts? = nil, from sender: String = "",
    watching watched: [TableName: RowKey] = [:], makesRoom: Bool = false
  ) {
    self.makesRoom = makesRoom
    self.contested = contested
    self.open = open
    self.sender = sender
    self.policies = policies
    self.resolver = resolver
    self.rules = rules
    self.log = log
    self.watched = watched
  }

  /// True if the later diff wins in a table, or in a column of it.
  func usesLatest(for table: TableName) -> Bool { policies.usesLatest(for: table) }

  /// True if equal edits of both sides are conflicts, too: a resolver sees what SQLite's would.
  var asksAboutEverything: Bool { resolver != nil }

  /// True if the table's policy alone decides its conflicts.
  ///
  /// - Throws: `SQLiteError`.
  func decidesByPolicyAlone(for table: TableName) throws -> Bool {
    try resolver == nil && rules?.exist(for: table) != true
  }

  /// True if a single broken reference refuses the whole file, because there is no resolver.
  var refusesViolationsUnasked: Bool { resolver == nil && policies.otherwise == .abort }

  /// True if a row of a table may be left out when it refers to one that is.
  func mayLeaveOut(rowsOf table: TableName) -> Bool { resolver != nil || policies.policy(for: table) != .takeIncoming }

  /// The layout and policies for conflicts of the table that these statements change.
  func layout(of statements: TableStatements) -> ConflictLayout { ConflictLayout(statements, policies) }

  /// True if conflicts about rows of a table are open.
  func hasOpenConflicts(of table: TableName) -> Bool { open?.concern(table) == true }

  /// Records a change that has met no conflict.
  func noteAgreement(_ change: DecodedChange, _ layout: ConflictLayout, _ bytes: RawSpan) {
    open?.note(change, bytes, layout, from: sender)
  }

  /// Decides one conflict.
  ///
  /// - Throws: `ReplicationError` with `conflict` when the answer is to abort; whatever the resolver throws.
  func decide(_ incident: ConflictIncident, _ layout: ConflictLayout, _ bytes: RawSpan) throws -> ConflictResolution {
    rule = nil
    if let resolver {
      // Sound: the changeset stays where it is for longer than the question takes.
      let address = bytes.withUnsafeBytes { $0 }
      let answered = try resolver(
        Conflict(
          layout: layout, kind: incident.kind, operation: incident.change.operation,
          base: ConflictRow(
            layout: layout,
            content: incident.change.operation == .insert
              ? .missing : .change(incident.change, isNew: false, in: address)),
          local: ConflictRow(layout: layout, content: incident.local.map { .current($0) } ?? .missing),
          incoming: ConflictRow(
            layout: layout,
            content: incident.change.operation == .delete
              ? .missing : .change(incident.change, isNew: true, in: address)),
          details: incident.kind == .constraint || !incident.message.isEmpty ? .message(incident.message) : .none))
      switch answered {
      case .keepLocal: return .keepLocal
      case .takeIncoming: return .takeIncoming
      case .write(let values): return .write(values)
      case .abort: throw Self.refusal(incident, layout, bytes)
      case .useDefault: break
      }
    }
    // Only versions of the same row can be merged column by column.
    let isMerged =
      incident.change.operation != .delete && !incident.isOfAnotherRow
      && (incident.kind == .data || incident.kind == .conflict)
    if let rule = try rules?.rule(for: incident, layout, bytes) {
      self.rule = rule.id
      switch rule.answer {
      case .incoming: return .takeIncoming
      case .local: return isMerged && incident.kind == .data ? .merge(.keepLocal) : .keepLocal
      }
    }
    if isMerged, layout.columnPolicies != nil { return .merge(nil) }
    switch layout.rowPolicy {
    case .keepLocal: return isMerged && incident.kind == .data ? .merge(nil) : .keepLocal
    case .takeIncoming: return .takeIncoming
    case .abort: throw Self.refusal(incident, layout, bytes)
    case .latest:
      if isMerged { return .merge(nil) }
      // A DELETE beats every edit.
      let isDeletion = incident.change.operation == .delete && incident.kind == .data && !incident.isOfAnotherRow
      return isDeletion && !incident.isOutdated ? .takeIncoming : .keepLocal
    }
  }

  /// Refuses the whole diff because of a conflict, and names the row.
  static func refusal(_ incident: ConflictIncident, _ layout: ConflictLayout, _ bytes: RawSpan) -> ReplicationError {
    let because = incident.words.map { ": \($0)" } ?? ""
    let change = incident.change
    var key: [String] = []
    for place in layout.key {
      guard let slice = layout.slice(at: place, of: change, isNew: change.operation == .insert),
        let value = ChangesetValue(slice, in: bytes)
      else { continue }
      key.append("\(layout.columns[place]) = \(value)")
    }
    let row = key.isEmpty ? "a row" : "the row with \(EscapedText(key.joined(separator: ", "), limit: 200))"
    return ReplicationError(
      .conflict,
      "\(change.operation.name) of \(row) of table \"\(layout.name)\" meets a conflict (\(incident.kind.rawValue))"
        + "\(because); under the policy \"abort\" nothing of this file is applied",
      table: layout.name.text)
  }

  /// Decides, once for the whole file, if broken references are accepted.
  ///
  /// - Parameter violations: The number of rows with broken references.
  /// - Throws: `ReplicationError` with `conflict` if they are not; whatever the resolver throws.
  func decideForeignKeys(violations: Int) throws {
    var isAborted = policies.otherwise == .abort
    if let resolver {
      let layout = ConflictLayout(name: TableName(""), columns: [], key: [], sources: [], isKey: [])
      let answered = try resolver(
        Conflict(
          layout: layout, kind: .foreignKey, operation: nil, base: ConflictRow(layout: layout, content: .missing),
          local: ConflictRow(layout: layout, content: .missing),
          incoming: ConflictRow(layout: layout, content: .missing), details: .violations(violations)))
      switch answered {
      case .useDefault: break
      case .abort: isAborted = true
      case .keepLocal, .takeIncoming, .write: isAborted = false
      }
    }
    guard !isAborted else {
      throw ReplicationError(
        .conflict,
        "rows would refer to others that are not there; under the policy \"abort\" nothing of this file is applied")
    }
  }

  /// Records a conflict with all versions of the row.
  func record(
    _ incident: ConflictIncident, _ outcome: ConflictOutcome, _ layout: ConflictLayout, _ bytes: RawSpan
  ) throws {
    if outcome == .keptLocal || outcome == .omitted, let key = watched[layout.name] {
      omissions.append(
        Omission(table: layout.name, key: key.bytes(of: incident.change, bytes), kind: incident.kind, outcome: outcome))
    }
    try log?.record(incident, outcome, layout, decidedBy: rule, bytes)
    rule = nil
  }

  /// Finds the rule that decided a conflict before a constraint postponed it.
  func recall(_ incident: ConflictIncident, _ layout: ConflictLayout, _ bytes: RawSpan) throws {
    // With a resolver, the answer may have been the resolver's.
    rule = resolver == nil ? try rules?.rule(for: incident, layout, bytes)?.id : nil
  }

  /// Records a conflict with given rows.
  ///
  /// - Parameters:
  ///   - base: The row before the change at its author, as a record of the layout; nil for none.
  ///   - local: The local row before.
  ///   - incoming: The wanted row.
  ///   - reason: The message.
  func record(
    _ kind: ConflictKind, _ outcome: ConflictOutcome, _ layout: RecordedRowLayout, base: [UInt8]?, local: [UInt8]?,
    incoming: [UInt8]?, because reason: [UInt8]? = nil
  ) throws {
    guard let log else { return }
    func row(_ record: [UInt8]?) -> ConflictLog.Row? { record.map { record in log.row { $0.append(encoded: record) } } }
    try log.record(kind, outcome, layout, base: row(base), local: row(local), incoming: row(incoming), reason: reason)
  }

  /// Records all changes of a table as conflicts, since its rows have another key here.
  ///
  /// - Parameters:
  ///   - table: The table as the changes have it.
  ///   - sections: The changes of all tables.
  ///   - reason: Why nothing of it is written.
  /// - Returns: How many changes there are.
  /// - Throws: `ReplicationError` with `conflict` under the policy `abort`.
  func recordAll(of table: TableDefinition, in sections: TableSections, because reason: Warning) throws -> Int {
    let name = TableName(table.name)
    let layout = RecordedRowLayout(table: name, columns: table.changesetColumns, key: table.keyIndexes)
    var count = 0
    try sections.forEachChange(of: name) { change, bytes in
      guard policies.policy(for: name) != .abort else {
        throw ReplicationError(
          .conflict, "\(reason); under the policy \"abort\" nothing of this file is applied", table: table.name)
      }
      func row(isNew: Bool) -> [UInt8]? {
        guard change.operation != (isNew ? .delete : .insert) else { return nil }
        var writer = ChangesetWriter()
        for column in layout.columns.indices {
          let value = isNew && change.new(column).isDefined ? change.new(column) : change.old(column)
          if value.isDefined { writer.append(value, of: bytes) } else { writer.appendUndefined() }
        }
        return writer.bytes
      }
      try record(
        .constraint, .omitted, layout, base: row(isNew: false), local: nil, incoming: row(isNew: true),
        because: Array(reason.description.utf8))
      count += 1
    }
    return count
  }

  /// Records the values of a left-out change in columns that are unknown here.
  ///
  /// - Parameters:
  ///   - omission: The change.
  ///   - columns: The columns of the row.
  ///   - key: The places of the key among them.
  ///   - values: A value for each, as changeset bytes.
  func record(_ omission: Omission, columns: [String], key: Set<Int>, values: [UInt8]) throws {
    guard let log else { return }
    let layout = RecordedRowLayout(table: omission.table, columns: columns, key: key.sorted())
    try log.record(
      omission.kind, omission.outcome, layout, base: nil, local: nil,
      incoming: log.row { $0.append(encoded: values) }, reason: Array(ConflictRecord.unknownColumns.utf8))
  }

  /// Records that the row of a statement refers to a missing one.
  func recordViolation(_ row: CurrentRow?, _ layout: ConflictLayout, message: String) throws {
    guard let log else { return }
    try log.record(
      .foreignKey, .reported, layout.recorded, base: nil,
      local: row.map { row in log.row { row.append(layout.columns.count, to: &$0) } }, incoming: nil,
      reason: Array(message.utf8))
  }

  /// Marks the present state. A savepoint follows, and ``rewind()`` if it is rolled back.
  func mark() throws {
    marked = omissions.count
    try log?.flush()
    try contested?.flush()
  }

  /// Discards the records since the mark, which the database has rolled back.
  func rewind() {
    omissions.removeLast(omissions.count - marked)
    log?.rewind()
    contested?.rewind()
  }

  /// Writes the records that are still in memory. Call it after the last conflict.
  func finish() throws {
    try log?.flush()
    try contested?.flush()
  }
}

extension ChangeOperation {
  /// The SQL keyword.
  public var name: String {
    switch self {
    case .delete: "DELETE"
    case .insert: "INSERT"
    case .update: "UPDATE"
    }
  }
}

/// A conflict where it occurs: the change in the bytes of the changeset, the local row at a statement.
struct ConflictIncident {
  let kind: ConflictKind
  let change: DecodedChange
  let local: CurrentRow?
  /// The message of SQLite about a constraint, or of the engine about another conflict, as UTF-8.
  var message: [UInt8] = []
  /// True if the local row is not the row that the author means. The two are not versions of one row.
  var isOfAnotherRow = false
  /// True if a later diff has inserted the row that a DELETE is about.
  var isOutdated = false
  /// The row that a resolver has returned, as a record; nil for none.
  var written: [UInt8]?
  /// The keys of the rows that block this one by a UNIQUE value, one after the other.
  var others: [UInt8] = []

  /// A message for people; nil if the kind says everything.
  var words: String? {
    if !message.isEmpty { return String(decoding: message, as: UTF8.self) }
    return kind == .conflict ? "another row with this key is here" : nil
  }
}

/// The resolution of one conflict.
enum ConflictResolution {
  /// The local row stays.
  case keepLocal
  /// The incoming row is written.
  case takeIncoming
  /// The three versions of the row are merged column by column. The policy decides about columns that both sides have
  /// changed; nil uses the policy of each column.
  case merge(ConflictPolicy?)
  /// These values are written.
  case write([String: ChangesetValue])
}

/// The rules for conflicts.
///
/// They are read at the first conflict. Rows without a conflict cost nothing, and without rules neither do conflicts.
final class ConflictRules {
  private let connection: SQLiteConnection
  private lazy var byTable = Result {
    Dictionary(grouping: try ConflictRule.all(on: connection)) { $0.question.table }
  }

  init(on connection: borrowing SQLiteConnection) { self.connection = SQLiteConnection(sharing: connection) }

  /// True if there are rules for a table.
  ///
  /// - Throws: `SQLiteError`.
  func exist(for table: TableName) throws -> Bool { try byTable.get()[table] != nil }

  /// The rule that decides a conflict; nil for none.
  ///
  /// - Throws: `SQLiteError`; `ChangesetError` when a rule is damaged.
  func rule(for incident: ConflictIncident, _ layout: ConflictLayout, _ bytes: RawSpan) throws -> ConflictRule? {
    guard let rules = try byTable.get()[layout.name],
      let question = Self.question(of: incident, layout, bytes)
    else { return nil }
    return rules.last { $0.question == question }
  }

  /// The question of a conflict, for finding a rule; nil if there are no two versions of a row to choose from.
  private static func question(
    of incident: ConflictIncident, _ layout: ConflictLayout, _ bytes: RawSpan
  ) -> ConflictQuestion? {
    guard incident.kind == .data || incident.kind == .conflict, !incident.isOfAnotherRow, let local = incident.local
    else { return nil }
    let change = incident.change
    let isDelete = change.operation == .delete
    let columns = layout.columns.indices.filter { place in
      func isHeld(isNew: Bool) -> Bool? {
        layout.slice(at: place, of: change, isNew: isNew).map {
          local.holds($0, in: bytes, at: place, affinity: layout.affinities[place])
        }
      }
      guard !layout.key.contains(place), isHeld(isNew: !isDelete) == false else { return false }
      return isDelete || isHeld(isNew: false) != true
    }
    guard !columns.isEmpty else { return nil }
    return ConflictQuestion(
      table: layout.name, kind: incident.kind, operation: change.operation, columns: columns.map { layout.columns[$0] })
  }
}

extension ConflictLog {
  /// Records a conflict of a change, with all versions of its row.
  ///
  /// - Parameter rule: The rule that has decided the conflict; nil for none.
  func record(
    _ incident: ConflictIncident, _ outcome: ConflictOutcome, _ layout: ConflictLayout, decidedBy rule: Int64?,
    _ bytes: RawSpan
  ) throws {
    // Sound: the rows are encoded before this returns, and the changeset stays longer.
    let address = bytes.withUnsafeBytes { $0 }
    let operation = incident.change.operation
    let base = operation == .insert ? nil : row(of: incident.change, isNew: false, layout, address)
    let incoming = operation == .delete ? nil : row(of: incident.change, isNew: true, layout, address)
    let local = incident.local.map { local in row { local.append(layout.columns.count, to: &$0) } }
    var details: Details?
    if rule != nil || incident.written != nil || !incident.others.isEmpty {
      details = Details()
      details?.rule = rule
      details?.written = incident.written.map { record in row { $0.append(encoded: record) } }
      if !incident.others.isEmpty { details?.others = row { $0.append(encoded: incident.others) } }
    }
    try record(
      incident.kind, outcome, layout.recorded, base: base, local: local, incoming: incoming,
      reason: incident.kind == .constraint || !incident.message.isEmpty ? incident.message : nil, details: details)
  }

  /// Encodes the values of a change in the order of the local row.
  private func row(
    of change: DecodedChange, isNew: Bool, _ layout: ConflictLayout, _ bytes: UnsafeRawBufferPointer
  ) -> Row {
    row { writer in
      for place in layout.columns.indices {
        writer.append(layout.slice(at: place, of: change, isNew: isNew) ?? .undefined, of: bytes.bytes)
      }
    }
  }
}
