import Buckia
import SQLiteConnections

extension SQLiteConnection {
  /// Adds `buckia_verify(path or blob)`: the report of `buckia verify --json`.
  func addVerifyFunction() throws(SQLiteError) {
    try addFunction("buckia_verify", argumentCounts: 1...1, access: .direct) { arguments in
      guard let source = try arguments.source(at: 0, of: "buckia_verify") else { return .null }
      let report = try SQLiteFunctionFailure.wrapping { try DiffInspection.verify([source], home: .standard) }
      return .text(report.json.text())
    }
  }
}
