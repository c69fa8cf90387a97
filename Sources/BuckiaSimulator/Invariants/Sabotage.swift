import SQLiteConnections

/// A mistake that tests build into replicas, to see that it is found.
package struct Sabotage: Sendable {
  /// What is done to a replica's database whenever it has received diffs.
  private let body: @Sendable (_ replica: Int, borrowing SQLiteConnection) throws -> Void

  /// - Parameter body: What is done to a replica's database whenever it has received diffs.
  package init(_ body: @escaping @Sendable (_ replica: Int, borrowing SQLiteConnection) throws -> Void) {
    self.body = body
  }

  func didReceive(_ replica: Replica) throws { try body(replica.number, replica.database) }
}
