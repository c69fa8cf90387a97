/// What SQLite calls for a function. SQLite holds it until the function is removed.
final class SQLiteFunctionBody {
  /// Computes the result.
  typealias Call = (borrowing SQLiteArguments) throws -> SQLiteFunctionResult

  /// What it does now.
  var call: Call
  /// What it is called among the kept functions; nil until it is one of them.
  var keptName: KeptFunctions.Name?

  init(_ call: @escaping Call) { self.call = call }

  deinit { if let keptName { KeptFunctions.shared.forget(keptName, ObjectIdentifier(self)) } }
}
