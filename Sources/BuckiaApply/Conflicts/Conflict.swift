import BuckiaBytes
import BuckiaLedger
import SQLiteChangesets
import SQLiteSchemas

/// One conflict for a resolver: a view of three rows that reads values only when they are used.
///
/// The resolver borrows it for the duration of the call, and cannot keep it. Values are copies, which it can keep.
///
/// ```swift
/// let report = try database.processInboundChanges(["inbound"]) { conflict in
///   guard conflict.table == "notes" else { return .useDefault }
///   // The later edit wins.
///   let here = conflict.local.integer("edited") ?? 0
///   let there = conflict.incoming.integer("edited") ?? 0
///   return there > here ? .takeIncoming : .keepLocal
/// }
/// ```
public struct Conflict: ~Copyable {
  let layout: ConflictLayout
  /// Why the change does not fit.
  public let kind: ConflictKind
  /// The operation of the change; nil for the ``ConflictKind/foreignKey`` conflict of a whole file.
  public let operation: ChangeOperation?
  /// The row before the change at its author, as far as the change contains it. It does not exist for an INSERT.
  public let base: ConflictRow
  /// The whole local row, if it exists.
  public let local: ConflictRow
  /// The row after the change at its author. Columns that the change does not set have no value. It does not exist for
  /// a DELETE.
  public let incoming: ConflictRow
  let details: Details

  /// Details of some kinds.
  enum Details {
    case none
    /// A message of SQLite about a constraint, or of the engine.
    case message([UInt8])
    /// The number of rows that refer to missing ones.
    case violations(Int)
  }

  /// The table; an empty name for the ``ConflictKind/foreignKey`` conflict of a whole file.
  public var table: TableName { layout.name }

  /// The names of the columns of the three rows, in their order; the rowid first where the table is keyed by it.
  public var columns: [String] { layout.columns }

  /// The columns of the primary key with their values.
  public var key: [ConflictRecord.Cell] {
    layout.key.map { place in
      .init(layout.columns[place], (operation == .insert ? incoming[place] : base[place]) ?? local[place])
    }
  }

  /// SQLite's message about the constraint that refuses the row, or the left-out row to which the row refers; nil if
  /// ``kind`` says everything.
  public var reason: String? {
    guard case .message(let bytes) = details else { return nil }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// The number of rows that the file leaves with broken references, for the ``ConflictKind/foreignKey`` conflict of a
  /// whole file; 0 for all others.
  public var violations: Int {
    if case .violations(let count) = details { count } else { 0 }
  }
}

/// A function that decides about each conflict. It may be called twice for the same conflict, if a file or a group of
/// files is applied again.
///
/// It runs inside the transaction and must not write to the database.
public typealias ConflictResolver = @Sendable (borrowing Conflict) throws -> ConflictDecision

/// One version of a row in a conflict: its values by column, read when they are used.
///
/// ```swift
/// conflict.local["title"] == .text("Ship's bell")
/// conflict.incoming.text("title")
/// ```
///
/// Names match whatever their case, as in SQLite.
public struct ConflictRow: ~Copyable {
  enum Content {
    case missing
    /// The old or the new values of a change.
    case change(DecodedChange, isNew: Bool, in: UnsafeRawBufferPointer)
    /// A local row, by column of the layout.
    case current(CurrentRow)
  }

  let layout: ConflictLayout
  let content: Content

  /// True if the row exists.
  public var exists: Bool {
    if case .missing = content { false } else { true }
  }

  /// The value of a column; nil without such a column, value or row. SQL's NULL is `.null`.
  public subscript(_ column: String) -> ChangesetValue? { layout.place(of: column).flatMap { self[$0] } }

  /// The value at a place in `Conflict.columns`; nil if there is none.
  public subscript(_ place: Int) -> ChangesetValue? {
    switch content {
    case .missing: return nil
    case .change(let change, let isNew, let bytes):
      guard let slice = layout.slice(at: place, of: change, isNew: isNew) else { return nil }
      // Sound: the view lives for one call of the resolver, and the changeset stays longer.
      return ChangesetValue(slice, in: bytes.bytes)
    case .current(let row): return layout.columns.indices.contains(place) ? row.value(at: place) : nil
    }
  }

  /// All values, in the order of `Conflict.columns`; nil if there is none. Empty when there is no row.
  public var values: [ChangesetValue?] { exists ? layout.columns.indices.map { self[$0] } : [] }

  /// The value of a column as an integer; nil if it is anything else, or not there.
  public func integer(_ column: String) -> Int64? {
    if case .integer(let value)? = self[column] { value } else { nil }
  }

  /// The value of a column as a number, integer or real; nil if it is anything else, or not there.
  public func real(_ column: String) -> Double? {
    switch self[column] {
    case .integer(let value)?: Double(value)
    case .real(let value)?: value
    default: nil
    }
  }

  /// The value of a column as text; nil if it is anything else, or not there.
  public func text(_ column: String) -> String? {
    if case .text(let value)? = self[column] { value } else { nil }
  }

  /// The value of a column as a blob; nil if it is anything else, or not there.
  public func blob(_ column: String) -> [UInt8]? {
    if case .blob(let value)? = self[column] { value } else { nil }
  }
}

/// The layout of one table's rows in conflicts: the names of the columns, and the places of their values in changes.
///
/// It is created once for a table, at its first conflict.
final class ConflictLayout {
  /// The table, the names of the local row's columns, and the places of the key among them.
  let recorded: RecordedRowLayout
  /// The column in the changeset of each local column; -1 for columns that only exist here.
  private let sources: [Int]
  /// True if each column of the changeset belongs to the key.
  private let isKey: [Bool]

  init(name: TableName, columns: [String], key: [Int], sources: [Int], isKey: [Bool]) {
    recorded = RecordedRowLayout(table: name, columns: columns, key: key)
    self.sources = sources
    self.isKey = isKey
  }

  /// The layout of the table that these statements change, with the policies of the table and its columns.
  convenience init(_ statements: TableStatements, _ policies: ConflictPolicies) {
    let columns = statements.match.local.changesetColumns
    var sources = [Int](repeating: -1, count: columns.count)
    for (index, place) in statements.match.columns.enumerated() { sources[place] = index }
    let isKey = statements.isKey
    self.init(
      name: statements.name, columns: columns,
      key: isKey.indices.filter { isKey[$0] }.map { statements.match.columns[$0] }, sources: sources, isKey: isKey)
    affinities = statements.affinities
    rowPolicy = policies.policy(for: name)
    let each = columns.map { policies.policy(for: $0, of: name) }
    columnPolicies = each.allSatisfy { $0 == rowPolicy } ? nil : each
  }

  /// A layout for a table whose rows are only read.
  convenience init(_ table: TableDefinition) {
    self.init(
      name: TableName(table.name), columns: table.changesetColumns, key: table.keyIndexes, sources: [], isKey: [])
  }

  /// The affinity of each column of the local row; empty for a table whose rows are only read.
  private(set) var affinities: [Affinity] = []
  /// The policy for whole rows.
  private(set) var rowPolicy = ConflictPolicy.keepLocal
  /// The policy of each local column; nil if all have the policy for whole rows.
  private(set) var columnPolicies: [ConflictPolicy]?

  /// The policy for the value at a place of the local row.
  func policy(at place: Int) -> ConflictPolicy { columnPolicies?[place] ?? rowPolicy }

  var name: TableName { recorded.table }
  var columns: [String] { recorded.columns }
  var key: [Int] { recorded.key }

  /// The place of a column, whatever the case of its name.
  func place(of column: String) -> Int? { columns.firstIndex { ASCIIName.matches($0, column) } }

  /// The old or new value in a change at a place of the local row; nil if it has none. Except for an INSERT, the key is
  /// among the old values only.
  func slice(at place: Int, of change: DecodedChange, isNew: Bool) -> ValueSlice? {
    guard sources.indices.contains(place), sources[place] >= 0 else { return nil }
    let column = sources[place]
    let value = isNew ? change.new(column) : change.old(column)
    if value.isDefined { return value }
    return isNew && isKey[column] && change.old(column).isDefined ? change.old(column) : nil
  }
}

/// What to do about conflicts.
public enum ConflictPolicy: String, Sendable, CaseIterable, Codable {
  /// Keeps the local values, and records the incoming ones.
  case keepLocal = "keep-local"
  /// Writes the incoming values, and records the local ones.
  case takeIncoming = "take-incoming"
  /// Refuses the whole diff.
  case abort
  /// Of two changes of a column, that of the later diff wins: the diff with the greater id, in whatever order they
  /// arrive. A DELETE beats every UPDATE, and only a later INSERT brings a deleted row back. A row gives way to a later
  /// one with the same UNIQUE value, and comes back when the value is free.
  ///
  /// All databases that have applied the same diffs then have the same rows. For that, the table gets a clock, which
  /// records what each diff has set.
  case latest
}

/// A policy for each table and column.
///
/// ```swift
/// var options = ApplyOptions()
/// options.conflicts = [
///   .table("notes"): .takeIncoming, .column("title", of: "notes"): .keepLocal, .otherwise: .keepLocal,
/// ]
/// ```
///
/// The policy of a column decides about values that both sides have changed; that of a table about whole rows: one that was
/// deleted on one side, or that breaks a constraint. Names match whatever their case, as in SQLite.
public struct ConflictPolicies: Sendable, Equatable, ExpressibleByDictionaryLiteral {
  /// The subject of a policy.
  public struct Subject: Hashable, Sendable {
    fileprivate let table: TableName?
    fileprivate let column: String?

    /// A table, and those of its columns that have no policy of their own.
    public static func table(_ name: String) -> Subject { Subject(table: TableName(name), column: nil) }
    /// A column of a table.
    public static func column(_ name: String, of table: String) -> Subject {
      Subject(table: TableName(table), column: ASCIIName.folded(name))
    }
    /// Everything that has no policy of its own.
    public static let otherwise = Subject(table: nil, column: nil)
  }

  private var policies: [Subject: ConflictPolicy]

  /// Creates policies by subject. ``Subject/otherwise`` is `keepLocal` by default.
  public init(dictionaryLiteral elements: (Subject, ConflictPolicy)...) {
    policies = Dictionary(elements) { _, last in last }
  }

  /// The same policy for everything.
  public init(_ policy: ConflictPolicy) { policies = [.otherwise: policy] }

  /// The policy of a subject itself; nil uses the policy of its table, and in the end `otherwise`.
  public subscript(_ subject: Subject) -> ConflictPolicy? {
    get { policies[subject] }
    set { policies[subject] = newValue }
  }

  /// Keeps the local values everywhere.
  public static let keepLocal = ConflictPolicies(.keepLocal)
  /// Writes the incoming values everywhere.
  public static let takeIncoming = ConflictPolicies(.takeIncoming)
  /// Refuses the whole diff at any conflict.
  public static let abort = ConflictPolicies(.abort)
  /// The later diff wins everywhere.
  public static let latest = ConflictPolicies(.latest)

  /// The policy of everything without one of its own.
  var otherwise: ConflictPolicy { policies[.otherwise] ?? .keepLocal }

  /// The tables with policies of their own, and those of their columns that have one.
  package var columns: [TableName: [String]] {
    policies.keys.reduce(into: [:]) { columns, subject in
      if let table = subject.table { columns[table, default: []] += subject.column.map { [$0] } ?? [] }
    }
  }

  /// True if the later diff wins in any table.
  package var usesLatest: Bool { policies.values.contains(.latest) }

  /// True if incoming values are written somewhere.
  package var usesTakeIncoming: Bool { policies.values.contains(.takeIncoming) }

  /// True if the later diff wins in a table, or in a column of it.
  func usesLatest(for table: TableName) -> Bool {
    policy(for: table) == .latest || policies.contains { $0.key.table == table && $0.value == .latest }
  }

  /// The policy for whole rows of a table.
  package func policy(for table: TableName) -> ConflictPolicy {
    policies[Subject(table: table, column: nil)] ?? otherwise
  }

  /// The policy for the values of a column.
  func policy(for column: String, of table: TableName) -> ConflictPolicy {
    policies[Subject(table: table, column: ASCIIName.folded(column))] ?? policy(for: table)
  }
}

/// A resolver's answer.
///
/// Only conflicts of the kinds `data` and `conflict` have two versions to choose from. For a missing row (`not-found`),
/// and a row that a constraint refuses, ``keepLocal`` and ``takeIncoming`` mean the same: the change is left out and
/// recorded. For the ``ConflictKind/foreignKey`` conflict of a whole file, both accept the violations, which are
/// recorded.
public enum ConflictDecision: Sendable {
  /// Decide by the policies of the options. Columns that only one side has changed merge.
  case useDefault
  /// Keep the local row.
  case keepLocal
  /// Write the incoming row.
  case takeIncoming
  /// Write these values by column name. Other columns keep the local value, or without a local row get the incoming
  /// one. An existing local row keeps its key.
  case write([String: ChangesetValue])
  /// Refuse the whole diff.
  case abort
}
