import Buckia
import SQLiteConnections

extension JSONValue {
  /// A member of a document as a value of a column: plain values as they are, lists and objects as JSON.
  var column: SQLiteFunctionResult {
    switch self {
    case .null: .null
    case .bool(let flag): .integer(flag ? 1 : 0)
    case .integer(let number): .integer(number)
    case .real(let number): .real(number)
    case .string(let text): .text(text)
    case .array, .object: .text(text())
    }
  }

  /// The members of a document as a row.
  ///
  /// - Parameter names: The names of the members, in the order of the columns.
  func row(_ names: [String]) -> [SQLiteFunctionResult] {
    guard case .object(let object) = self else { return [] }
    return names.map { object[$0]?.column ?? .null }
  }
}
