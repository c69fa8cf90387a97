import BuckiaLedger
import SQLiteChangesets
import SQLiteSchemas

/// One conflict, as a resolver sees it: a view of three rows that reads values only when they are asked for.
///
/// It is lent to the resolver for the length of the call and cannot be kept; the values it gives are copies and can.
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
  /// What the change does. Nil for the ``ConflictKind/foreignKey`` that is asked about once for a whole file.
  public let operation: ChangeOperation?
  /// The row as its author saw it before the change, as far as the change tells: not there for an INSERT.
  public let base: ConflictRow
  /// The row as it is here, whole; not there when there is none.
  public let local: ConflictRow
  /// The row as its author wants it; columns that the change leaves alone hold no value. Not there for a DELETE.
  public let incoming: ConflictRow
  let details: Details

  /// What only some kinds know.
  enum Details {
    case none
    /// SQLite's words about a constraint, or the engine's.
    case message([UInt8])
    /// How many rows refer to others that are not there.
    case violations(Int)
  }

  /// The table; an empty name for the ``ConflictKind/foreignKey`` that is asked about once for a whole file.
  public var table: TableName { layout.name }

  /// The names of the columns of the three rows, in their order; the rowid first where the table is keyed by it.
  public var columns: [String] { layout.columns }

  /// What the row is known by: the columns of the primary key with their values.
  public var key: [ConflictRecord.Cell] {
    layout.key.map { place in
      (layout.columns[place], (operation == .insert ? incoming[place] : base[place]) ?? local[place])
    }
  }

  /// SQLite's words about the constraint that refuses the row; for a row that refers to one which was left out, which that is; nil
  /// where ``kind`` says all.
  public var reason: String? {
    guard case .message(let bytes) = details else { return nil }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// How many rows the file has left with references that lead nowhere, for the ``ConflictKind/foreignKey`` that is asked about
  /// once for a whole file. 0 for all others.
  public var violations: Int {
    if case .violations(let count) = details { count } else { 0 }
  }
}

/// Is asked about each conflict. It may be asked twice about the same one, when a file or a group of files is run again.
///
/// It runs inside the transaction and must not write to the database.
public typealias ConflictResolver = @Sendable (borrowing Conflict) throws -> ConflictDecision

/// One version of a row that a conflict is about: its values by column, read when asked for.
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

  /// Whether there is such a row.
  public var exists: Bool {
    if case .missing = content { false } else { true }
  }

  /// The value of a column; nil where there is no such column, no value, or no row. SQL's NULL is `.null`.
  public subscript(_ column: String) -> ChangesetValue? { layout.place(of: column).flatMap { self[$0] } }

  /// The value at a place in `Conflict.columns`; nil where there is none.
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

  /// All values, in the order of `Conflict.columns`; nil where there is none. Empty when there is no row.
  public var values: [ChangesetValue?] { exists ? layout.columns.indices.map { self[$0] } : [] }

  /// The value of a column as an integer; nil when it is anything else, or not there.
  public func integer(_ column: String) -> Int64? {
    if case .integer(let value)? = self[column] { value } else { nil }
  }

  /// The value of a column as a number, integer or real; nil when it is anything else, or not there.
  public func real(_ column: String) -> Double? {
    switch self[column] {
    case .integer(let value)?: Double(value)
    case .real(let value)?: value
    default: nil
    }
  }

  /// The value of a column as text; nil when it is anything else, or not there.
  public func text(_ column: String) -> String? {
    if case .text(let value)? = self[column] { value } else { nil }
  }

  /// The value of a column as a blob; nil when it is anything else, or not there.
  public func blob(_ column: String) -> [UInt8]? {
    if case .blob(let value)? = self[column] { value } else { nil }
  }
}
