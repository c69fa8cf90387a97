import BuckiaDiff
import BuckiaFormat
import BuckiaBytes
import BuckiaLedger
import SQLiteSchemas
import SQLiteConnections

/// Which replica a diff is made from. The database notes the diff, so that a backup which is older than it is told from the database.
struct DiffOrigin {
  /// The replica; nil for a database without a ledger, and where it is not certain.
  private(set) var replica: Replica?
  /// What people should know.
  private(set) var remarks: [Remark] = []

  /// What the manifest says; nil for nothing.
  var sender: Manifest.Sender? {
    replica.map { Manifest.Sender(replica: $0.id, incarnation: $0.incarnation) }
  }

  /// How long another writer is waited for, in milliseconds: a diff needs nothing but to read.
  private static let patience: Int32 = 1_000

  /// Settles which replica a database is, and notes that a diff is about to be made from it.
  ///
  /// - Parameters:
  ///   - source: The database. Without a ledger it is no replica yet, and nothing is written.
  ///   - id: The diff's id.
  ///   - home: What knows the replica.
  /// - Throws: `SQLiteError` when the database cannot be read; `LedgerError` for a newer ledger.
  init(of source: RowSource, making id: KSUID, in home: BuckiaHome) throws {
    guard try Ledger.exists(on: source.connection) else { return }
    let registration = ReplicaRegistration(of: source.connection, in: home)
    do {
      if let path = source.attachablePath {
        try settle(
          registration, id, on: SQLiteConnection(opening: path, as: .readWrite, busyTimeout: Self.patience))
      } else if source.connection.isInTransaction, source.connection.transactionState != .write {
        // The app's transaction only reads: it must not have to wait for other writers on account of this.
        try look(registration, on: source.connection)
      } else {
        try settle(registration, id, on: source.connection)
      }
    } catch let error as SQLiteError {
      try look(registration, on: source.connection)
      if replica != nil { remarks.append(Remark(.diffNotNoted, "\(error)")) }
    }
  }

  private mutating func settle(
    _ registration: ReplicaRegistration, _ id: KSUID, on connection: borrowing SQLiteConnection
  ) throws {
    let transaction = try SQLiteTransaction(on: connection)
    let result = try registration.settle(on: connection)
    try LedgerProgress.note(made: id, on: connection)
    try transaction.commit()
    replica = result.replica
    remarks = result.remarks
    if result.replica != nil, let remark = try registration.noteProgress(on: connection) { remarks.append(remark) }
  }

  /// Takes what the database says where that is certain, without writing anything.
  private mutating func look(_ registration: ReplicaRegistration, on connection: borrowing SQLiteConnection) throws {
    let (found, standing) = try registration.look(on: connection)
    switch standing {
    case .same, .moved: replica = found
    case .new(wasKnown: false): break
    default: remarks.append(Remark(.replicaUnsettled))
    }
  }
}
