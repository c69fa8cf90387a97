import BuckiaFormat
import BuckiaBytes
import BuckiaLedger
import SQLiteConnections

/// One copy of a database that takes part, in one of its incarnations.
struct Replica: Equatable {
  let id: ReplicaID
  let incarnation: IncarnationID

  /// Makes one with ids that nobody else has.
  static func random() throws(BuckiaError) -> Replica { try Replica(id: randomID(), incarnation: randomID()) }

  /// An id that nothing else has.
  static func randomID<ID: FixedBytes>() throws(BuckiaError) -> ID {
    var generator = SystemRandomNumberGenerator()
    guard let id = ID.random(using: &generator) else { throw BuckiaError(.misuse, "no id can be made") }
    return id
  }

  /// What the ledger of a database says; nil where it has none, or does not say yet.
  static func read(on connection: borrowing SQLiteConnection) throws -> Replica? {
    guard let identity = try ReplicaIdentity.read(on: connection), let id = ReplicaID(identity.replica),
      let incarnation = IncarnationID(identity.incarnation)
    else { return nil }
    return Replica(id: id, incarnation: incarnation)
  }

  /// Makes the ledger of a database say so.
  func write(on connection: borrowing SQLiteConnection) throws {
    try ReplicaIdentity(replica: id.bytes, incarnation: incarnation.bytes).write(on: connection)
  }
}
