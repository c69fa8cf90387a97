import BuckiaBytes
import BuckiaLedger
import SQLiteConnections

extension DatabaseManager {
  /// Makes sure that the database speaks for a replica of its own, before anything is done in its name: a copy or a restored backup begins
  /// another incarnation. A database without a ledger stays as it is.
  ///
  /// - Returns: The incarnation in hexadecimal, nil without a ledger; and what people should know.
  /// - Throws: `BuckiaError` when there is no such database, it cannot be read or written, or has a newer ledger.
  package func settleReplica() throws -> (incarnation: String?, remarks: [Remark]) {
    // As a writer, which rolls back what a process was killed in.
    try withWriter { connection in
      guard try Ledger.exists(on: connection) else { return (nil, []) }
      let registration = ReplicaRegistration(of: connection, in: home)
      let (replica, standing) = try registration.look(on: connection)
      if standing == .same { return (replica.map { "\($0.incarnation)" }, []) }
      var settled = try registration.settle(on: connection)
      if let remark = try registration.noteProgress(on: connection) { settled.remarks.append(remark) }
      return (settled.replica.map { "\($0.incarnation)" }, settled.remarks)
    }
  }

  /// The ids of the files that were made from the database, as far as the home knows.
  ///
  /// - Throws: `BuckiaError` when the database cannot be read.
  package func outgoingIDs() throws -> Set<KSUID> {
    let replica = try withReader { connection in
      try Ledger.exists(on: connection) ? Replica.read(on: connection)?.id : nil
    }
    return home.outgoingIDs(of: path, replica: replica)
  }
}
