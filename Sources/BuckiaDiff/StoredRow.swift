import BuckiaSchemaPlans
import SQLiteChangesets
import SQLiteConnections
import SQLiteFiles
import SQLiteSchemas

/// A value as it stands in a database file, or as a row that is too short for it has it. Good until its row is left.
struct StoredValue {
  enum Content {
    case null
    case integer(Int64)
    case real(Double)
    case text(UnsafeRawBufferPointer)
    case blob(UnsafeRawBufferPointer)
  }

  let content: Content

  /// Whether both have the same storage class and the same bytes.
  func isIdentical(to other: StoredValue) -> Bool {
    switch (content, other.content) {
    case (.null, .null): true
    case (.integer(let mine), .integer(let theirs)): mine == theirs
    case (.real(let mine), .real(let theirs)): mine.bitPattern == theirs.bitPattern
    case (.text(let mine), .text(let theirs)), (.blob(let mine), .blob(let theirs)):
      mine.count == theirs.count && mine.byteOrder(against: theirs) == 0
    default: false
    }
  }

  /// SQLite's order under the BINARY collation: NULL, numbers, text, blobs.
  func order(against other: StoredValue) -> Int {
    switch (content, other.content) {
    case (.integer(let mine), .integer(let theirs)): mine < theirs ? -1 : mine == theirs ? 0 : 1
    case (.real(let mine), .real(let theirs)): mine < theirs ? -1 : mine == theirs ? 0 : 1
    case (.integer(let mine), .real(let theirs)): RowValue.order(mine, real: theirs)
    case (.real(let mine), .integer(let theirs)): -RowValue.order(theirs, real: mine)
    case (.text(let mine), .text(let theirs)), (.blob(let mine), .blob(let theirs)): mine.byteOrder(against: theirs)
    default: rank - other.rank
    }
  }

  private var rank: Int {
    switch content {
    case .null: 0
    case .integer, .real: 1
    case .text: 2
    case .blob: 3
    }
  }

  var isNull: Bool { if case .null = content { true } else { false } }

  /// Writes the value into a change.
  func append(to writer: inout ChangesetWriter) {
    switch content {
    case .null: writer.appendNull()
    case .integer(let value): writer.append(integer: value)
    case .real(let value): writer.append(real: value)
    case .text(let bytes): writer.append(.text, bytes)
    case .blob(let bytes): writer.append(.blob, bytes)
    }
  }
}

/// The values of the row that a cursor stands on, by the columns of the changeset.
final class StoredRow {
  let cursor: BTreeCursor
  private let table: StoredTable
  private let missing: MissingValues
  private let record: RecordReader

  /// - Parameter missing: What rows have that were written before a column was added.
  init(_ cursor: BTreeCursor, of table: StoredTable, missing: MissingValues) {
    self.cursor = cursor
    self.table = table
    self.missing = missing
    record = RecordReader(limit: table.fieldLimit)
  }

  /// Takes the present row apart; to be called before its values are asked for.
  func read() throws { try record.read(try cursor.payload(), page: cursor.page) }

  /// The value of a column of the changeset.
  ///
  /// - Throws: `MissingValues.Unknown` when the row is too short, and nobody knows what SQLite makes of that.
  func value(_ column: Int) throws -> StoredValue {
    guard let field = table.fields[column] else { return StoredValue(content: .integer(cursor.rowID)) }
    guard field < record.columnCount else { return try missing.value(column) }
    switch record.storageClass(field) {
    case .null: return StoredValue(content: .null)
    case .integer:
      let value = record.integer(field)
      return StoredValue(content: table.isReal[column] ? .real(Double(value)) : .integer(value))
    case .real: return StoredValue(content: .real(record.real(field)))
    case .text: return StoredValue(content: .text(record.payload(field)))
    case .blob: return StoredValue(content: .blob(record.payload(field)))
    }
  }
}

/// The values of columns that were added when there were rows already: those rows are not written anew, and SQLite reads the
/// column's default in its place (<https://sqlite.org/lang_altertable.html#alter_table_add_column>).
final class MissingValues {
  /// The default is no literal.
  struct Unknown: Error {}

  private let table: StoredTable
  private let isStrict: Bool
  private var known: [Int: StoredValue] = [:]
  private var storage: [UnsafeMutableRawBufferPointer] = []

  init(_ table: StoredTable, isStrict: Bool) {
    self.table = table
    self.isStrict = isStrict
  }

  deinit { for buffer in storage { buffer.deallocate() } }

  func value(_ column: Int) throws -> StoredValue {
    if let value = known[column] { return value }
    guard let definition = table.definitions[column], !definition.hasExpressionDefault,
      definition.defaultValue?.isTimeDependent != true
    else { throw Unknown() }
    let scratch = try SQLiteConnection(opening: ":memory:", as: .create)
    let literal = try AddedColumnValue.literal(of: definition, isStrict: isStrict)
    var value = StoredValue(content: .null)
    try scratch.forEachRow(of: "SELECT \(literal)") { row in
      switch row.storageClass(at: 0) {
      case .null: break
      case .integer: value = StoredValue(content: .integer(row.integer(at: 0)))
      case .real: value = StoredValue(content: .real(row.real(at: 0)))
      case .text: value = StoredValue(content: .text(keep(row.textBytes(at: 0))))
      case .blob: value = StoredValue(content: .blob(keep(row.blobBytes(at: 0))))
      }
    }
    known[column] = value
    return value
  }

  private func keep(_ bytes: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
    let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: max(1, bytes.count), alignment: 1)
    copy.copyMemory(from: bytes)
    storage.append(copy)
    return UnsafeRawBufferPointer(rebasing: copy[..<bytes.count])
  }
}
