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
    answer.removeAll()
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
    var told = buckia_conflict()
    told.kind = conflict.kind.cValue
    told.operation = conflict.operation?.cValue ?? BUCKIA_NO_OPERATION
    told.column_count = names.count
    told.columns = texts.pointer
    told.violations = Int64(conflict.violations)
    let reason = conflict.reason.map { CText($0) }
    told.reason = reason?.pointer
    return withExtendedLifetime((texts, reason, answer)) {
      names.map { key.contains($0) }.withUnsafeBufferPointer { isKey in
        name.withCString { table in
          values.withValues { values in
            told.table = table
            told.is_key = isKey.baseAddress
            told.base = base.flatMap { values?.advanced(by: $0) }
            told.local = local.flatMap { values?.advanced(by: $0) }
            told.incoming = incoming.flatMap { values?.advanced(by: $0) }
            return callback(context, &told, OpaquePointer(Unmanaged.passUnretained(answer).toOpaque()))
          }
        }
      }
    }
  }

  /// Adds the values of a row.
  ///
  /// - Returns: Where they begin; nil where there is no row.
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
