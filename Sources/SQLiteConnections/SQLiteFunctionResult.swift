import CBuckiaSQLite

/// What a function, or a column of a virtual table, returns to SQLite.
package enum SQLiteFunctionResult: Equatable, Sendable {
  case null
  case integer(Int64)
  case real(Double)
  /// Text by its bytes, which should be UTF-8 and are handed on as they are.
  case utf8([UInt8])
  case blob([UInt8])

  /// Text; NULL where there is none.
  package static func text(_ text: String?) -> SQLiteFunctionResult { text.map { .utf8(Array($0.utf8)) } ?? .null }

  /// Hands the value to SQLite, which copies it.
  func set(on context: OpaquePointer, _ routines: SQLiteRoutines) {
    switch self {
    case .null: routines.result_null(context)
    case .integer(let value): routines.result_int64(context, value)
    case .real(let value): routines.result_double(context, value)
    case .utf8(let bytes):
      bytes.withUnsafeBytes { routines.result_text64(context, $0.baseAddress, UInt64($0.count)) }
    case .blob(let bytes):
      bytes.withUnsafeBytes { routines.result_blob64(context, $0.baseAddress, UInt64($0.count)) }
    }
  }
}

/// An error that a function ends its statement with.
package struct SQLiteFunctionFailure: Error, CustomStringConvertible {
  /// What happened and what to do.
  package let message: String
  /// Whether trying again later can help.
  package let isBusy: Bool

  package var description: String { message }

  /// Makes an error.
  package init(_ message: String, isBusy: Bool = false) {
    self.message = message
    self.isBusy = isBusy
  }

  /// Takes any error by its description.
  init(_ error: any Error) {
    switch error {
    case let failure as SQLiteFunctionFailure: self = failure
    case let error as SQLiteError: self.init(error.description, isBusy: error.isBusy)
    default: self.init(String(describing: error))
    }
  }

  /// The result code of the statement. Codes by which SQLite would also roll the transaction of the app back are none of these.
  var code: Int32 { isBusy ? SQLITE_BUSY : SQLITE_ERROR }

  /// Hands the error to SQLite, which copies the message.
  func set(on context: OpaquePointer, _ routines: SQLiteRoutines) {
    routines.result_error(context, message)
    // The message stays.
    routines.result_error_code(context, code)
  }
}
