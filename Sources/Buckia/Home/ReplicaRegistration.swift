import SQLiteConnections

/// Compares the replica that a database names with the home's record, and begins another incarnation if the two
/// disagree.
///
/// A copied or restored file names the earlier replica. If two databases spoke for one replica, or one spoke again for
/// a state that it has lost, receivers would mistake the files of one for those of the other.
struct ReplicaRegistration {
  /// The result: the replica, nil if none could be stored both in the database and at home; and warnings.
  typealias Result = (replica: Replica?, warnings: [Warning])

  private let home: BuckiaHome
  /// The path of the database; nil for one in memory, which is as new as its connection.
  private let path: String?

  /// - Parameters:
  ///   - connection: The database.
  ///   - home: The home with the records.
  init(of connection: borrowing SQLiteConnection, in home: BuckiaHome) {
    self.home = home
    path = FileSystem.resolved(connection.path)
  }

  /// The identity of the database file, and its path: another file with the same contents is a copy.
  private var file: String? { path.flatMap { path in FileIdentity.ofFile(at: path).map { "\($0.file) \(path)" } } }

  // MARK: Looking

  /// The replica that a database names, and its standing. Changes nothing.
  ///
  /// - Throws: `SQLiteError`; `LedgerError` for a newer ledger.
  func look(on connection: borrowing SQLiteConnection) throws -> (replica: Replica?, standing: ReplicaStanding) {
    guard let replica = try Replica.read(on: connection) else {
      return (nil, .new(after: path.map { home.incarnations(at: $0) } ?? []))
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

  /// How long to wait for another database, in milliseconds.
  private static let patience: Int32 = 500

  /// True if the database at a path names a replica. A database that cannot be read now counts as if it did.
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

  /// Makes sure that a database may speak for the replica that it names: creates an id if there is none, and begins
  /// another incarnation if the database was restored or copied.
  ///
  /// It runs in a transaction of its own, or in the open one. If that is rolled back, it happens again the next time.
  ///
  /// - Parameter isNewFile: True if the database itself was just created, and cannot be an earlier state of another.
  /// - Throws: `SQLiteError` when the database cannot be written; `LedgerError` for a newer ledger.
  func settle(on connection: borrowing SQLiteConnection, isNewFile: Bool = false) throws -> Result {
    let found = try look(on: connection)
    if found.standing == .same { return (found.replica, []) }
    let transaction = try SQLiteTransaction(on: connection)
    try Ledger.prepare(on: connection)
    // Another process may have done it meanwhile.
    let (replica, standing) = try look(on: connection)
    var result = try mend(replica, standing, on: connection)
    if isNewFile, case .new = standing { result.warnings = [] }
    try transaction.commit()
    return result
  }

  private func mend(
    _ replica: Replica?, _ standing: ReplicaStanding, on connection: borrowing SQLiteConnection
  ) throws -> Result {
    let notKept = Warning(.replicaNotKept, home.replicaFolder)
    if standing == .same { return (replica, []) }
    if standing == .moved || standing == .otherHome, let replica, let path {
      let progress = home.known(replica.id)?.progress
      let known = KnownReplica(incarnation: replica.incarnation, progress: progress, path: path)
      guard home.keep(known, of: replica.id) else { return (replica, [notKept]) }
      if let file { try ReplicaIdentity.setFile(file, on: connection) }
      return (replica, standing.warning.map { [$0] } ?? [])
    }
    let next = try Replica.random()
    // Before the commit, because no other process must find a database whose replica is not recorded.
    if let path, !home.keep(KnownReplica(incarnation: next.incarnation, progress: nil, path: path), of: next.id) {
      return (nil, [notKept])
    }
    try next.write(on: connection)
    if let file { try ReplicaIdentity.setFile(file, on: connection) }
    if let replica {
      if standing == .restored { home.passOutgoing(of: replica.id, to: next.id) }
      try CopiedRows.separate(
        from: replica.id.bytes, as: next.incarnation.bytes,
        newStream: standing == .restored ? nil : { try (Replica.randomID() as StreamID).bytes }, on: connection)
    }
    var former = standing == .restored ? replica?.incarnation : nil
    if case .new(let earlier) = standing {
      former = earlier.last
      if let first = earlier.first { try CopiedRows.countContents(insertedBy: first.bytes, on: connection) }
    }
    try ReplicaIdentity.setFormer(former?.bytes, on: connection)
    try KeyRanges.move(on: connection)
    return (next, standing.warning.map { [$0] } ?? [])
  }

  /// Records the committed progress of a database's ledger at home. Inside the app's transaction it is the progress
  /// before that.
  ///
  /// - Returns: A warning when it could not be noted.
  /// - Throws: `SQLiteError` when the database cannot be read.
  func noteProgress(on connection: borrowing SQLiteConnection) throws -> Warning? {
    guard let path, let replica = try Replica.read(on: connection) else { return nil }
    guard connection.isInTransaction else { return try noteCommittedProgress(of: replica, on: connection) }
    do {
      // Another connection does not see the writes of this transaction.
      return try noteCommittedProgress(
        of: replica,
        on: SQLiteConnection(opening: path, as: .readOnly, busyTimeout: 0, with: connection.library))
    } catch {
      // While the transaction excludes all readers, nothing is recorded; the next call does it.
      return nil
    }
  }

  /// Records the progress. On failure adds a warning, once.
  func noteProgress(on connection: borrowing SQLiteConnection, in warnings: inout [Warning]) throws {
    if let warning = try noteProgress(on: connection), !warnings.contains(warning) { warnings.append(warning) }
  }

  private func noteCommittedProgress(
    of replica: Replica, on connection: borrowing SQLiteConnection
  ) throws -> Warning? {
    // The committed state is that of another replica if this transaction has begun one.
    guard let committed = try Replica.read(on: connection), committed.id == replica.id,
      committed.incarnation == replica.incarnation
    else { return nil }
    let progress = try LedgerProgress.read(on: connection)
    let isNoted = home.note(progress, of: replica.id, in: replica.incarnation)
    return isNoted ? nil : Warning(.replicaNotKept, home.replicaFolder)
  }
}

/// The standing of a database: its named replica compared with the home's record.
enum ReplicaStanding: Equatable {
  /// The database is the replica that it names.
  case same
  /// The database is the replica that it names, at another path than before.
  case moved
  /// The database names no replica, and has to get an id. Another database, or a later state of this one, may have been
  /// at its path before: then the incarnations there are given, the oldest first.
  case new(after: [IncarnationID])
  /// The database is an earlier state of its replica.
  case restored
  /// A copy of the database at this path, which is still there.
  case copy(of: String)
  /// The database is the replica that it names, and is recorded in another home.
  case otherHome
  /// The replica is unknown here: the database comes from elsewhere, or the record was lost.
  case unknown

  /// The warning after the standing was corrected; nil if there is nothing to report.
  var warning: Warning? {
    switch self {
    case .same, .moved, .new(after: []): nil
    case .new: Warning(.replicaMissing)
    case .restored: Warning(.replicaRestored)
    case .otherHome: Warning(.replicaOtherHome)
    case .copy(let original): Warning(.replicaCopied, original)
    case .unknown: Warning(.replicaUnknown)
    }
  }
}

/// One copy of a database that takes part, in one of its incarnations.
struct Replica: Equatable {
  let id: ReplicaID
  let incarnation: IncarnationID

  /// Creates a replica with random ids.
  static func random() throws(BuckiaError) -> Replica { try Replica(id: randomID(), incarnation: randomID()) }

  /// A random id.
  static func randomID<ID: FixedBytes>() throws(BuckiaError) -> ID {
    var generator = SystemRandomNumberGenerator()
    guard let id = ID.random(using: &generator) else { throw BuckiaError(.misuse, "no id can be made") }
    return id
  }

  /// The replica in the ledger of a database; nil for none.
  static func read(on connection: borrowing SQLiteConnection) throws -> Replica? {
    guard let identity = try ReplicaIdentity.read(on: connection), let id = ReplicaID(identity.replica),
      let incarnation = IncarnationID(identity.incarnation)
    else { return nil }
    return Replica(id: id, incarnation: incarnation)
  }

  /// Stores the replica in the ledger of a database.
  func write(on connection: borrowing SQLiteConnection) throws {
    try ReplicaIdentity(replica: id.bytes, incarnation: incarnation.bytes).write(on: connection)
  }
}

extension DatabaseManager {
  /// Makes sure that the database is a replica of its own before it makes a file: a copy or a restored backup begins
  /// another incarnation. A database without a ledger stays unchanged.
  ///
  /// - Returns: The incarnation in hexadecimal digits, nil without a ledger; and warnings.
  /// - Throws: `BuckiaError` when there is no such database, it cannot be read or written, or has a newer ledger.
  package func settleReplica() throws -> (incarnation: String?, warnings: [Warning]) {
    // A writer rolls back the transaction of a killed process.
    try withWriter { connection in
      guard try Ledger.exists(on: connection) else { return (nil, []) }
      let registration = ReplicaRegistration(of: connection, in: home)
      let (replica, standing) = try registration.look(on: connection)
      if standing == .same { return (replica.map { "\($0.incarnation)" }, []) }
      var settled = try registration.settle(on: connection)
      try registration.noteProgress(on: connection, in: &settled.warnings)
      return (settled.replica.map { "\($0.incarnation)" }, settled.warnings)
    }
  }

  /// The ids of the files that were made from the database, by the home's records.
  ///
  /// - Throws: `BuckiaError` when the database cannot be read.
  package func outgoingIDs() throws -> Set<KSUID> {
    let replica = try withReader { connection in
      try Ledger.exists(on: connection) ? Replica.read(on: connection)?.id : nil
    }
    return home.outgoingIDs(of: path, replica: replica)
  }
}

/// Determines the replica that makes a diff. The database records the diff, by which an older backup is recognized.
extension BuckiaHome {
  /// How long to wait for another writer, in milliseconds: a diff only needs to read.
  private static let patience: Int32 = 1_000

  /// Determines the replica of a database, and records that a diff is about to be made from it.
  ///
  /// - Parameters:
  ///   - source: The database. Without a ledger it is no replica yet, and nothing is written.
  ///   - id: The diff's id.
  /// - Returns: The replica, nil for a database without a ledger, and if it is uncertain; and warnings.
  /// - Throws: `SQLiteError` when the database cannot be read; `LedgerError` for a newer ledger.
  func origin(of source: RowSource, making id: KSUID) throws -> ReplicaRegistration.Result {
    guard try Ledger.exists(on: source.connection) else { return (nil, []) }
    let registration = ReplicaRegistration(of: source.connection, in: self)
    do {
      if let path = source.attachablePath {
        let connection = try SQLiteConnection(opening: path, as: .readWrite, busyTimeout: Self.patience)
        return try registration.settle(making: id, on: connection)
      }
      // The app's transaction only reads: it must not have to wait for other writers on account of this.
      if source.connection.isInTransaction, source.connection.transactionState != .write {
        return try registration.certainReplica(on: source.connection)
      }
      return try registration.settle(making: id, on: source.connection)
    } catch let error as SQLiteError {
      var found = try registration.certainReplica(on: source.connection)
      if found.replica != nil { found.warnings.append(Warning(.diffNotNoted, "\(error)")) }
      return found
    }
  }
}

extension ReplicaRegistration {
  fileprivate func settle(making id: KSUID, on connection: borrowing SQLiteConnection) throws -> Result {
    let transaction = try SQLiteTransaction(on: connection)
    var result = try settle(on: connection)
    try LedgerProgress.note(made: id, on: connection)
    try transaction.commit()
    if result.replica != nil, let warning = try noteProgress(on: connection) { result.warnings.append(warning) }
    return result
  }

  /// Returns the replica that the database names if it is certain, without writing anything.
  fileprivate func certainReplica(on connection: borrowing SQLiteConnection) throws -> Result {
    let (found, standing) = try look(on: connection)
    switch standing {
    case .same, .moved: return (found, [])
    case .new(after: []): return (nil, [])
    default: return (nil, [Warning(.replicaUnsettled)])
    }
  }
}

extension LedgerProgress {
  /// The greatest ids in a database. The id of a new diff must be greater.
  static func knownIDs(on connection: borrowing SQLiteConnection) throws -> [KSUID] {
    try [LedgerEntries.newestID(on: connection), RowClocks.newestID(on: connection), read(on: connection).made]
      .compactMap { $0 }
  }
}
