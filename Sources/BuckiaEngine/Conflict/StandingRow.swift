import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// A row of the local database that a statement stands on, read where it is and copied only when it must be.
///
/// Good until ``release()``. Writing the row meanwhile does no harm: SQLite holds the values that were read.
struct StandingRow {
  private let prepared: TableStatements.Prepared

  /// Takes the row that a statement has just stepped to.
  init(_ prepared: TableStatements.Prepared) { self.prepared = prepared }

  /// Lets go of the row.
  func release() { prepared.statement.reset() }

  /// A copy of one value.
  func value(at place: Int) -> ChangesetValue {
    switch prepared.statement.storageClass(at: place) {
    case .null: .null
    case .integer: .integer(prepared.statement.integer(at: place))
    case .real: .real(prepared.statement.real(at: place))
    case .text: .text(prepared.statement.text(at: place) ?? "")
    case .blob: .blob(prepared.statement.blob(at: place))
    }
  }

  /// Whether the value at a place is NULL.
  func isNull(at place: Int) -> Bool { prepared.statement.isNull(at: place) }

  /// Binds a value to a parameter of another statement, copying it.
  func bind(_ place: Int, to statement: borrowing SQLiteStatement, at index: Int) throws(SQLiteError) {
    try statement.bind(column: place, of: prepared.statement, at: index)
  }

  /// Adds the first `count` values to a record.
  func append(_ count: Int, to writer: inout ChangesetWriter) {
    for place in 0..<count { writer.append(column: place, of: prepared.statement) }
  }

  /// The whole row, the hidden rowid included, to be put back later.
  func copied() throws -> LocalRow { try LocalRow(copying: prepared.statement) }

  /// Whether the value at `place` is what its column makes of the change's: same class and bytes.
  ///
  /// An INTEGER or NUMERIC column stores 1.0 as 1, a REAL one 1 as 1.0 and -0.0 as 0.0
  /// (<https://sqlite.org/datatype3.html#type_affinity>). Elsewhere these are different values.
  func holds(_ value: ValueSlice, in bytes: RawSpan, at place: Int, affinity: Affinity) -> Bool {
    let kind = prepared.statement.storageClass(at: place)
    switch (kind, value.kind, affinity) {
    case (.integer, .real, .integer), (.integer, .real, .numeric):
      return Int64(exactly: value.real(in: bytes)) == prepared.statement.integer(at: place)
    case (.real, .integer, .real): return prepared.statement.real(at: place) == Double(value.integer(in: bytes))
    case (.real, .real, .real): return prepared.statement.real(at: place) == value.real(in: bytes)
    case (.null, .null, _): return true
    case (.integer, .integer, _): return prepared.statement.integer(at: place) == value.integer(in: bytes)
    case (.real, .real, _): return prepared.statement.real(at: place).bitPattern == value.bits(in: bytes)
    case (.text, .text, _):
      return Self.isEqual(prepared.statement.textBytes(at: place), to: value, in: bytes)
    case (.blob, .blob, _):
      return Self.isEqual(prepared.statement.blobBytes(at: place), to: value, in: bytes)
    default: return false
    }
  }

  private static func isEqual(_ mine: UnsafeRawBufferPointer, to value: ValueSlice, in bytes: RawSpan) -> Bool {
    guard mine.count == value.count else { return false }
    return bytes.extracting(value.payloadRange).withUnsafeBytes { mine.byteOrder(against: $0) == 0 }
  }
}
