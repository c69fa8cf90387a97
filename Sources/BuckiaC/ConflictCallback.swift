import Buckia
import CBuckia

/// Asks a callback of the program about conflicts.
///
/// `@unchecked Sendable`: it is only used in the thread that has called.
final class ConflictCallback: @unchecked Sendable {
  private let callback: buckia_conflict_callback
  private let context: UnsafeMutableRawPointer?
  private let answer = RowAnswer()
  private var values = ValueBuffer()
  /// The names of the columns of the last table, which the next conflict mostly has, too.
  private var columns: (names: [String], texts: CTexts)?

  init(_ callback: buckia_conflict_callback, _ context: UnsafeMutableRawPointer?) {
    self.callback = callback
    self.context = context
  }

  /// Asks about one.
  ///
  /// - Throws: `CallbackFailure` when the callback says so, or its answer is none.
  func decide(_ conflict: borrowing Conflict) throws -> ConflictDecision {
    answer.values.removeAll(keepingCapacity: true)
    switch ask(about: conflict) {
    case BUCKIA_ANSWER_DEFAULT: return .useDefault
    case BUCKIA_ANSWER_LOCAL: return .keepLocal
    case BUCKIA_ANSWER_INCOMING: return .takeIncoming
    case BUCKIA_ANSWER_ABORT: return .abort
    case BUCKIA_ANSWER_ROW: return .write(answer.values)
    case BUCKIA_ANSWER_FAIL: throw CallbackFailure("the callback that resolves conflicts has failed")
    case let other:
      throw CallbackFailure("the callback that resolves conflicts has returned \(other.rawValue), which is no answer")
    }
  }

  private func ask(about conflict: borrowing Conflict) -> buckia_answer {
    let name = conflict.table.text
    let names = conflict.columns
    let texts = texts(of: names)
    let key = Set(conflict.key.map(\.column))
    values.removeAll()
    let base = add(conflict.base)
    let local = add(conflict.local)
    let incoming = add(conflict.incoming)
    var shown = buckia_conflict()
    shown.kind = conflict.kind.cValue
    shown.operation = conflict.operation?.cValue ?? BUCKIA_NO_OPERATION
    shown.column_count = names.count
    shown.columns = texts.pointer
    shown.violations = Int64(conflict.violations)
    let reason = conflict.reason.map { CText($0) }
    shown.reason = reason?.pointer
    return withExtendedLifetime((texts, reason, answer)) {
      names.map { key.contains($0) }.withUnsafeBufferPointer { isKey in
        name.withCString { table in
          values.withValues { values in
            shown.table = table
            shown.is_key = isKey.baseAddress
            shown.base = base.flatMap { values?.advanced(by: $0) }
            shown.local = local.flatMap { values?.advanced(by: $0) }
            shown.incoming = incoming.flatMap { values?.advanced(by: $0) }
            return callback(context, &shown, OpaquePointer(Unmanaged.passUnretained(answer).toOpaque()))
          }
        }
      }
    }
  }

  /// Adds the values of a row.
  ///
  /// - Returns: The address of the first; nil without a row.
  private func add(_ row: borrowing ConflictRow) -> Int? {
    guard row.exists else { return nil }
    let start = values.count
    for value in row.values { values.append(value) }
    return start
  }

  private func texts(of names: [String]) -> CTexts {
    if let columns, columns.names == names { return columns.texts }
    let texts = CTexts(names)
    columns = (names, texts)
    return texts
  }
}

extension ConflictKind {
  /// The kind as C has it.
  var cValue: buckia_conflict_kind {
    switch self {
    case .data: BUCKIA_CONFLICT_DATA
    case .notFound: BUCKIA_CONFLICT_NOT_FOUND
    case .conflict: BUCKIA_CONFLICT_CONFLICT
    case .constraint: BUCKIA_CONFLICT_CONSTRAINT
    case .foreignKey: BUCKIA_CONFLICT_FOREIGN_KEY
    }
  }
}

extension ChangeOperation {
  /// The operation as C has it.
  var cValue: buckia_operation {
    switch self {
    case .insert: BUCKIA_INSERT
    case .update: BUCKIA_UPDATE
    case .delete: BUCKIA_DELETE
    }
  }
}

/// What `buckia_row` points to: the row that a resolver makes up.
final class RowAnswer {
  var values: [String: ChangesetValue] = [:]
}

extension ChangesetValue {
  /// Copies a value that a program gives.
  ///
  /// - Throws: `BuckiaError` with `misuse` when it is none.
  init(_ value: buckia_value, of column: String) throws {
    switch value.type {
    case BUCKIA_NULL: self = .null
    case BUCKIA_INTEGER: self = .integer(value.integer)
    case BUCKIA_REAL: self = .real(value.real)
    case BUCKIA_TEXT:
      let bytes = try Arguments.array(value.bytes?.assumingMemoryBound(to: UInt8.self), value.length, "bytes")
      guard let text = String(validating: bytes, as: UTF8.self) else {
        throw Arguments.misuse("the text for column \(column) is not UTF-8")
      }
      self = .text(text)
    case BUCKIA_BLOB:
      self = .blob(Array(try Arguments.array(value.bytes?.assumingMemoryBound(to: UInt8.self), value.length, "bytes")))
    default: throw Arguments.misuse("the value for column \(column) has no type")
    }
  }

  /// The values that a program gives for columns.
  ///
  /// - Throws: `BuckiaError` with `misuse` when one is none.
  static func values(_ cells: UnsafePointer<buckia_cell>?, _ count: Int) throws -> [String: ChangesetValue] {
    var values: [String: ChangesetValue] = [:]
    for cell in try Arguments.array(cells, count, "values") {
      let column = try Arguments.text(cell.column, "the name of a column")
      values[column] = try ChangesetValue(cell.value, of: column)
    }
    return values
  }
}

@c @implementation
package func buckia_row_set(
  _ row: OpaquePointer?, _ column: CString, _ value: UnsafePointer<buckia_value>?
) -> buckia_status {
  call(nil) {
    let row: RowAnswer = try Handle.required(row, "row")
    let column = try Arguments.text(column, "column")
    guard let value else { throw Arguments.misuse("value is NULL") }
    row.values[column] = try ChangesetValue(value.pointee, of: column)
  }
}

/// Copies of values as C reads them, with the bytes of their texts and blobs.
struct ValueBuffer {
  private var values: [buckia_value] = []
  /// The offset of each value's bytes in `bytes`; nil if it has none.
  private var places: [Int?] = []
  private var bytes: [UInt8] = []

  /// The number of values.
  var count: Int { values.count }

  /// Adds a value; nil if there is none.
  mutating func append(_ value: ChangesetValue?) {
    var copy = buckia_value()
    var place: Int?
    switch value {
    case nil: copy.type = BUCKIA_NONE
    case .null?: copy.type = BUCKIA_NULL
    case .integer(let number)?:
      copy.type = BUCKIA_INTEGER
      copy.integer = number
    case .real(let number)?:
      copy.type = BUCKIA_REAL
      copy.real = number
    case .text(let text)?:
      copy.type = BUCKIA_TEXT
      place = append(text.utf8, to: &copy)
    case .blob(let blob)?:
      copy.type = BUCKIA_BLOB
      place = append(blob, to: &copy)
    }
    values.append(copy)
    places.append(place)
  }

  private mutating func append(_ content: some Collection<UInt8>, to value: inout buckia_value) -> Int {
    let place = bytes.count
    bytes.append(contentsOf: content)
    value.length = bytes.count - place
    value.whole_length = Int64(value.length)
    return place
  }

  mutating func removeAll() {
    values.removeAll(keepingCapacity: true)
    places.removeAll(keepingCapacity: true)
    bytes.removeAll(keepingCapacity: true)
  }

  /// Passes the values to `body`, which must not keep them.
  mutating func withValues<Result>(_ body: (UnsafePointer<buckia_value>?) throws -> Result) rethrows -> Result {
    try bytes.withUnsafeBytes { bytes in
      for (index, place) in places.enumerated() {
        // No pointer for bytes that are not there.
        if let place, let start = bytes.baseAddress { values[index].bytes = start + place }
      }
      return try values.withUnsafeBufferPointer { try body($0.baseAddress) }
    }
  }
}
