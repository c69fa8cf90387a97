import BuckiaBytes
import BuckiaApply
import BuckiaFormat
import BuckiaLedger
import SQLiteSchemas
import BuckiaSharing
import SQLiteConnections

/// Compares what a database says of itself with what a home knows of it, and begins another incarnation where the two disagree.
///
/// A file that is copied or restored says what it said before. If two databases spoke for one replica, or one spoke again for what it
/// has forgotten, others would take the files of one for those of the other.
struct ReplicaRegistration {
  /// What came of it.
  struct Result {
    /// The replica that the database is; nil where none could be kept both in the database and at home.
    var replica: Replica?
    /// What people should know.
    var remarks: [Remark] = []
  }

  private let home: BuckiaHome
  /// Where the database is; nil for one in memory, which is as new as its connection.
  private let path: String?

  /// - Parameters:
  ///   - connection: The database.
  ///   - home: What knows its replica.
  init(of connection: borrowing SQLiteConnection, in home: BuckiaHome) {
    self.home = home
    path = FileSystem.resolved(connection.path)
  }

  /// Which file the database is, and its path: another file with the same contents is a copy.
  private var file: String? { path.flatMap { path in FileIdentity.ofFile(at: path).map { "\($0.file) \(path)" } } }

  // MARK: Looking

  /// Which replica a database says it is, and what that is worth. Changes nothing.
  ///
  /// - Throws: `SQLiteError`; `LedgerError` for a newer ledger.
  func look(on connection: borrowing SQLiteConnection) throws -> (replica: Replica?, standing: ReplicaStanding) {
    guard let replica = try Replica.read(on: connection) else {
      return (nil, .new(wasKnown: path.map { home.knowsReplica(at: $0) } ?? false))
    }
    let known = home.known(replica.id)
    guard let path else { return (replica, known.map { .copy(of: $0.path) } ?? .same) }
    guard let known else {
      let isSameFile = try file.map { try ReplicaIdentity.file(on: connection) == $0 } ?? false
      return (replica, isSameFile ? .otherHome : .unknown)
    }
    let isElsewhere = known.path != path && !FileSystem.isOneFile(known.path, path)
    if isElsewhere, Self.database(at: known.path, is: replica.id, with: connection.library) {
      return (replica, .copy(of: known.path))
    }
    if let seen = known.progress, try LedgerProgress.read(on: connection).isBehind(seen) {
      return (replica, .restored)
    }
    guard known.incarnation == replica.incarnation else { return (replica, .restored) }
    return (replica, isElsewhere ? .moved : .same)
  }

  /// How long another database is waited for, in milliseconds.
  private static let patience: Int32 = 500

  /// Whether the database at a path says it is a replica. One that cannot be read now counts as if it did.
  private static func database(at path: String, is replica: ReplicaID, with library: SQLiteLibrary) -> Bool {
    guard FileSystem.exists(path), !FileSystem.isFolder(path) else { return false }
    let traces = ReadTraces(besides: [path])
    defer { traces.remove() }
    do {
      let connection = try SQLiteConnection(
        opening: path, as: .readOnly, busyTimeout: patience, with: library)
      return try Replica.read(on: connection)?.id == replica
    } catch let error as SQLiteError where error.isNotADatabase {
      return false
    } catch {
      return true
    }
  }

  // MARK: Settling

  /// Makes sure that a database may speak for the replica that it says it is: gives it an id where it has none, and begins another
  /// incarnation where it was restored or copied.
  ///
  /// It is a transaction of its own, or part of the one that is open. Where that is rolled back, so is this, and it happens again the
  /// next time.
  ///
  /// - Parameter isNewFile: Whether the database itself was made just now, so that it cannot be an earlier state of another.
  /// - Throws: `SQLiteError` when the database cannot be written; `LedgerError` for a newer ledger.
  func settle(on connection: borrowing SQLiteConnection, isNewFile: Bool = false) throws -> Result {
    let found = try look(on: connection)
    if found.standing == .same { return Result(replica: found.replica) }
    let transaction = try SQLiteTransaction(on: connection)
    try Ledger.prepare(on: connection)
    // Another process may have done it meanwhile.
    let (replica, standing) = try look(on: connection)
    var result = try mend(replica, standing, on: connection)
    if isNewFile, standing == .new(wasKnown: true) { result.remarks = [] }
    try transaction.commit()
    return result
  }

  private func mend(
    _ replica: Replica?, _ standing: ReplicaStanding, on connection: borrowing SQLiteConnection
  ) throws -> Result {
    let notKept = Remark(.replicaNotKept, home.replicaFolder)
    if standing == .same { return Result(replica: replica) }
    if standing == .moved || standing == .otherHome, let replica, let path {
      let progress = home.known(replica.id)?.progress
      let known = KnownReplica(incarnation: replica.incarnation, progress: progress, path: path)
      guard home.keep(known, of: replica.id) else { return Result(replica: replica, remarks: [notKept]) }
      if let file { try ReplicaIdentity.setFile(file, on: connection) }
      return Result(replica: replica, remarks: standing.remark.map { [$0] } ?? [])
    }
    let next = try Replica.random()
    // Before it is committed: no other process must find a database that says what nobody knows.
    if let path, !home.keep(KnownReplica(incarnation: next.incarnation, progress: nil, path: path), of: next.id) {
      return Result(remarks: [notKept])
    }
    try next.write(on: connection)
    if let file { try ReplicaIdentity.setFile(file, on: connection) }
    if let replica {
      if standing == .restored { home.passOutgoing(of: replica.id, to: next.id) }
      try CopiedRows.separate(
        from: replica.id.bytes, as: next.incarnation.bytes,
        newStream: standing == .restored ? nil : { try (Replica.randomID() as StreamID).bytes }, on: connection)
    }
    try KeyRanges.move(on: connection)
    return Result(replica: next, remarks: standing.remark.map { [$0] } ?? [])
  }

  /// Notes at home how far the ledger of a database has come, as far as that is committed. Inside the app's transaction it is what was
  /// committed before that.
  ///
  /// - Returns: A remark when it could not be noted.
  /// - Throws: `SQLiteError` when the database cannot be read.
  func noteProgress(on connection: borrowing SQLiteConnection) throws -> Remark? {
    guard let path, let replica = try Replica.read(on: connection) else { return nil }
    guard connection.isInTransaction else { return try noteCommittedProgress(of: replica, on: connection) }
    do {
      // What this transaction has written another connection does not see.
      return try noteCommittedProgress(
        of: replica,
        on: SQLiteConnection(opening: path, as: .readOnly, busyTimeout: 0, with: connection.library))
    } catch {
      // Nothing is read while the transaction keeps all others out: the next call does it.
      return nil
    }
  }

  private func noteCommittedProgress(
    of replica: Replica, on connection: borrowing SQLiteConnection
  ) throws -> Remark? {
    // What was committed is of another replica, where this transaction has begun one.
    guard let committed = try Replica.read(on: connection), committed.id == replica.id,
      committed.incarnation == replica.incarnation
    else { return nil }
    let progress = try LedgerProgress.read(on: connection)
    let isNoted = home.note(progress, of: replica.id, in: replica.incarnation)
    return isNoted ? nil : Remark(.replicaNotKept, home.replicaFolder)
  }
}
