import BuckiaBytes
import BuckiaLedger
import BuckiaSharing
import SQLiteConnections

extension DatabaseManager {
  /// What is shared with somebody, or is going to be since they have accepted an invitation: the scopes, the first one first.
  ///
  /// ```swift
  /// for scope in try database.sharedScopes(with: [ShareRecipient("ben")]) { print(scope.name ?? scope.json) }
  /// ```
  ///
  /// - Parameter recipients: The people, all of them: a share with one of them alone is another.
  /// - Throws: `BuckiaError` when the database cannot be read.
  public func sharedScopes(with recipients: [ShareRecipient]) throws -> [ShareScope] {
    let audience = ShareEntry.audience(of: recipients.map(\.name))
    return try withReader { connection in
      try ShareEntry.all(on: connection).filter { $0.audience == audience }.map { try ShareScope(json: $0.scope) }
    }
  }
}

extension ShareEntry {
  /// Whom a share is for, as a document: equal people have equal ones.
  static func audience(of names: [String]) -> String {
    JSONValue.array(Set(names).sorted().map { .string($0) }).text()
  }
}
