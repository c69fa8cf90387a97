import SQLiteConnections
import SQLiteFiles
import SQLiteSchemas

/// The rows that a cursor goes through, their values by the columns of the changeset.
final class StoredRow: RowValues {
  private let cursor: TreeCursor
  private let table: TableStorage
  private let defaults: AddedColumnDefaults
  private let record: RecordReader
  private var isRead = false

  /// - Parameter defaults: What rows have that were written before a column was added.
  init(_ cursor: TreeCursor, of table: TableStorage, defaults: AddedColumnDefaults) {
    self.cursor = cursor
    self.table = table
    self.defaults = defaults
    record = RecordReader(limit: table.fieldLimit)
  }

  /// The row's rowid; 0 where it has none.
  var rowID: Int64 { cursor.rowID }

  /// Goes on to the next row.
  ///
  /// - Returns: false behind the last one.
  func next() throws -> Bool {
    isRead = false
    return try cursor.next()
  }

  /// Reads the header of the row's record; to be called before its values are asked for.
  func read() throws {
    if isRead { return }
    try record.read(try cursor.payload(), page: cursor.page)
    isRead = true
  }

  /// The value of a column of the changeset.
  ///
  /// - Throws: `AddedColumnDefaults.Unknown` when the row is too short, and only SQLite can say what takes the place.
  func value(_ column: Int) throws -> RowValue {
    guard let field = table.fields[column] else { return .integer(cursor.rowID) }
    guard field < record.fieldCount else { return try defaults.value(column) }
    switch record.kind(field) {
    case .null: return .null
    case .integer:
      let value = record.integer(field)
      return table.isReal[column] ? .real(Double(value)) : .integer(value)
    case .real: return .real(record.real(field))
    case .text: return .text(record.payload(field))
    case .blob: return .blob(record.payload(field))
    }
  }
}

/// The values that columns have in rows which were written before the columns were added: SQLite does not write those rows
/// anew, it reads the default instead (<https://sqlite.org/lang_altertable.html#alter_table_add_column>).
final class AddedColumnDefaults {
  /// The default is no literal.
  struct Unknown: Error {}

  private let table: TableStorage
  private let isStrict: Bool
  private var known: [Int: RowValue] = [:]
  private var storage: [UnsafeMutableRawBufferPointer] = []

  init(_ table: TableStorage, isStrict: Bool) {
    self.table = table
    self.isStrict = isStrict
  }

  deinit { for buffer in storage { buffer.deallocate() } }

  func value(_ column: Int) throws -> RowValue {
    if let value = known[column] { return value }
    guard let definition = table.definitions[column], !definition.hasExpressionDefault,
      definition.defaultValue?.isTimeDependent != true
    else { throw Unknown() }
    let scratch = try SQLiteConnection(opening: ":memory:", as: .create)
    let literal = try AddedColumnValue.literal(of: definition, isStrict: isStrict)
    var value = RowValue.null
    try scratch.forEachRow(of: "SELECT \(literal)") { row in
      switch row.value(at: 0) {
      case .text(let bytes): value = .text(copy(bytes))
      case .blob(let bytes): value = .blob(copy(bytes))
      case let number: value = number
      }
    }
    known[column] = value
    return value
  }

  private func copy(_ bytes: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
    let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: max(1, bytes.count), alignment: 1)
    copy.copyMemory(from: bytes)
    storage.append(copy)
    return UnsafeRawBufferPointer(rebasing: copy[..<bytes.count])
  }
}
