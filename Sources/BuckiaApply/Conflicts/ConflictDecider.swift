import BuckiaBytes
import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Decides conflicts by the resolver and the policies, and records them.
final class ConflictDecider {
  private let policies: ConflictPolicies
  private let resolver: ApplySettings.Resolver?
  /// The answers that are kept as rules; nil where none count.
  private let rules: ConflictRules?
  /// The rule that has decided the conflict in hand; nil where none has.
  private(set) var rule: Int64?
  /// Nil where conflicts are not written down.
  private let log: ConflictLog?
  /// Changes that were left out, of the tables that are watched.
  private(set) var omissions: [Omission] = []
  private var marked = 0
  /// True if rows that have a UNIQUE value of an incoming one are deleted.
  let makesRoom: Bool
  private let watched: [TableName: RowKey]
  /// The keys that the sender contests, which are gathered like conflicts; nil where none are.
  private let contested: ContestedKeys?
  /// The conflicts that were open before; nil where they are not to be closed.
  private let open: OpenConflicts?
  /// The key with which the changes were signed, as the ledger has it.
  private let sender: String

  /// A change that a conflict has left out.
  struct Omission {
    let table: TableName
    let key: [UInt8]
    let kind: ConflictKind
    let outcome: ConflictOutcome
  }

  /// - Parameters:
  ///   - rules: The answers that are kept as rules; nil where none count.
  ///   - contested: The keys that the sender contests, which are written with the conflicts.
  ///   - open: The conflicts that were open before; nil where they are not to be closed.
  ///   - sender: The key with which the changes were signed, as the ledger has it.
  ///   - watched: The tables whose omissions are to be known, with their keys.
  ///   - makesRoom: True if rows that have a UNIQUE value of an incoming one are deleted.
  init(
    policies: ConflictPolicies, resolver: ApplySettings.Resolver?, rules: ConflictRules? = nil, log: ConflictLog?,
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

  /// True if edits that both sides made alike are asked about too: a resolver sees what SQLite's would.
  var asksAboutEverything: Bool { resolver != nil }

  /// True if the conflicts of a table are decided by its policy alone.
  ///
  /// - Throws: `SQLiteError`.
  func decidesByPolicyAlone(for table: TableName) throws -> Bool {
    try resolver == nil && rules?.exist(for: table) != true
  }

  /// True if a single broken reference refuses the whole file, since there is no resolver to ask.
  var refusesViolationsUnasked: Bool { resolver == nil && policies.otherwise == .abort }

  /// True if a row of a table may be left out when it refers to one that is.
  func mayLeaveOut(rowsOf table: TableName) -> Bool { resolver != nil || policies.policy(for: table) != .takeIncoming }

  /// How conflicts of the table that these statements change are laid out and decided.
  func layout(of statements: TableStatements) -> ConflictLayout { ConflictLayout(statements, policies) }

  /// True if conflicts about rows of a table are open.
  func hasOpenConflicts(of table: TableName) -> Bool { open?.concern(table) == true }

  /// Notes a change that has met no conflict.
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
    // Only two versions of a row can be merged column by column.
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

  /// Asks, once for the whole file, whether references that lead nowhere may stand.
  ///
  /// - Parameter violations: How many rows have such references.
  /// - Throws: `ReplicationError` with `conflict` when they may not; whatever the resolver throws.
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

  /// Writes a conflict down with all its versions.
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

  /// Finds the rule again that has decided a conflict which a constraint has put off.
  func recall(_ incident: ConflictIncident, _ layout: ConflictLayout, _ bytes: RawSpan) throws {
    // Where a resolver is asked first, the answer may have been its own.
    rule = resolver == nil ? try rules?.rule(for: incident, layout, bytes)?.id : nil
  }

  /// Writes down a conflict of which the rows are known.
  ///
  /// - Parameters:
  ///   - base: The row as its author saw it, as a record of the layout; nil for none.
  ///   - local: The row as it was here.
  ///   - incoming: The row as it is to be.
  ///   - reason: What is to be said of it.
  func record(
    _ kind: ConflictKind, _ outcome: ConflictOutcome, _ layout: RecordedRowLayout, base: [UInt8]?, local: [UInt8]?,
    incoming: [UInt8]?, because reason: [UInt8]? = nil
  ) throws {
    guard let log else { return }
    func row(_ record: [UInt8]?) -> ConflictLog.Row? { record.map { record in log.row { $0.append(encoded: record) } } }
    try log.record(kind, outcome, layout, base: row(base), local: row(local), incoming: row(incoming), reason: reason)
  }

  /// Writes down what a change that was left out says of columns that are unknown here.
  ///
  /// - Parameters:
  ///   - omission: The change.
  ///   - columns: The columns of the row that it is about.
  ///   - key: Which of them are the key.
  ///   - values: A value for each, as changeset bytes.
  func record(_ omission: Omission, columns: [String], key: Set<Int>, values: [UInt8]) throws {
    guard let log else { return }
    let layout = RecordedRowLayout(table: omission.table, columns: columns, key: key.sorted())
    try log.record(
      omission.kind, omission.outcome, layout, base: nil, local: nil,
      incoming: log.row { $0.append(encoded: values) }, reason: Array(ConflictRecord.unknownColumns.utf8))
  }

  /// Writes down that the row a statement stands on refers to one that is not there.
  func recordViolation(_ row: CurrentRow?, _ layout: ConflictLayout, message: String) throws {
    guard let log else { return }
    try log.record(
      .foreignKey, .reported, layout.recorded, base: nil,
      local: row.map { row in log.row { row.append(layout.columns.count, to: &$0) } }, incoming: nil,
      reason: Array(message.utf8))
  }

  /// Remembers what has been recorded: a savepoint follows, and ``rewind()`` when that is rolled back.
  func mark() throws {
    marked = omissions.count
    try log?.flush()
    try contested?.flush()
  }

  /// Forgets what was recorded since the mark: the database has forgotten it, too.
  func rewind() {
    omissions.removeLast(omissions.count - marked)
    log?.rewind()
    contested?.rewind()
  }

  /// Writes what is still gathered in memory; to be called when the last conflict has been recorded.
  func finish() throws {
    try log?.flush()
    try contested?.flush()
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

/// A conflict as it happened: the change still in the bytes of the changeset, the local row where a statement stands.
struct ConflictIncident {
  let kind: ConflictKind
  let change: DecodedChange
  let local: CurrentRow?
  /// SQLite's words about a constraint, or the engine's about another conflict, as UTF-8.
  var message: [UInt8] = []
  /// True if the local row is another than the change's author means, so that the two are no versions of one row.
  var isOfAnotherRow = false
  /// True if a later diff has inserted the row that a DELETE is about.
  var isOutdated = false
  /// The row that a resolver has written, as a record; nil where none has.
  var written: [UInt8]?
  /// The keys of the rows that have a UNIQUE value which this one was to get, one after the other.
  var others: [UInt8] = []

  /// What happened, for people; nil where the kind says all.
  var words: String? {
    if !message.isEmpty { return String(decoding: message, as: UTF8.self) }
    return kind == .conflict ? "another row with this key is here" : nil
  }
}

/// How one conflict is resolved.
enum ConflictResolution {
  /// The local row stays as it is.
  case keepLocal
  /// All that came in is written.
  case takeIncoming
  /// The three versions of the row are merged column by column. The policy decides about columns that both sides have changed;
  /// that of each column where there is none.
  case merge(ConflictPolicy?)
  /// These values are written.
  case write([String: ChangesetValue])
}

/// The answers that are kept as rules, and which of them a conflict meets.
///
/// They are read when the first conflict is met. Rows without a conflict cost nothing, and where there are no rules, conflicts
/// do not either.
final class ConflictRules {
  private let connection: SQLiteConnection
  private lazy var byTable = Result {
    Dictionary(grouping: try ConflictRule.all(on: connection)) { $0.question.table }
  }

  init(on connection: borrowing SQLiteConnection) { self.connection = SQLiteConnection(sharing: connection) }

  /// True if there are any about a table.
  ///
  /// - Throws: `SQLiteError`.
  func exist(for table: TableName) throws -> Bool { try byTable.get()[table] != nil }

  /// The rule that decides a conflict; nil where there is none.
  ///
  /// - Throws: `SQLiteError`; `ChangesetError` when a rule is damaged.
  func rule(for incident: ConflictIncident, _ layout: ConflictLayout, _ bytes: RawSpan) throws -> ConflictRule? {
    guard let rules = try byTable.get()[layout.name],
      let question = Self.question(of: incident, layout, bytes)
    else { return nil }
    return rules.last { $0.question == question }
  }

  /// What a conflict asks; nil where there are no two versions of a row to choose from.
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
  /// - Parameter rule: The rule that has decided it; nil where none has.
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
