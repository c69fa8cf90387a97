import BuckiaSchemaPlans
import SQLiteConnections
import SQLiteSchemas

/// The values that columns have in rows which were written before the columns were added: SQLite does not write those rows
/// again, it reads the default instead (<https://sqlite.org/lang_altertable.html#alter_table_add_column>).
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
