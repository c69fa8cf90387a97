import BuckiaLedger
import SQLiteSchemas
import BuckiaSharing
import SQLiteConnections

extension DatabaseManager {
  /// Says where the database stands: what has arrived, what waits or is open, and which replica it is. Changes nothing.
  ///
  /// ```swift
  /// let status = try database.status()
  /// for stream in status.streams { print(stream.sender, stream.sequence) }
  /// ```
  ///
  /// - Parameter includesWords: True to read all rows that are shared, for their word fingerprint (``StatusReport/words``).
  /// - Throws: `BuckiaError` when there is no such database, it cannot be read, or has a newer ledger.
  public func status(includesWords: Bool = false) throws -> StatusReport {
    try withReader { connection in
      // All of it is about one state.
      let transaction = try SQLiteTransaction(.deferred, on: connection)
      var report = try StatusReport(of: connection, in: home)
      if includesWords { report.words = try ComparedWords.all(naming: home.knownSenders(), on: connection) }
      transaction.rollback()
      return report
    }
  }
}

extension StatusReport {
  fileprivate init(of connection: borrowing SQLiteConnection, in home: BuckiaHome) throws {
    guard try Ledger.exists(on: connection) else { return }
    trust = try LedgerSettings.trust(on: connection)
    dataset = try Dataset.read(on: connection)
    ledger = try LedgerCounts(on: connection)
    newest = try LedgerEntries.newestID(on: connection)
    recordedAt = try LedgerEntries.newestTime(on: connection)
    streams = try StreamState.all(naming: home.knownSenders(), on: connection)
    self.shares = try ShareState.all(in: home, on: connection)
    var selection = ConflictSelection()
    conflicts = try ConflictRecord.counts(selection, on: connection).reduce(0) { $0 + $1.count }
    selection.isOpen = true
    openConflicts = try ConflictRecord.counts(selection, on: connection).reduce(0) { $0 + $1.count }
    if let remark = try Remark.clockBehind(on: connection) { warnings.append(remark) }
    let shares = try ShareEntry.all(on: connection)
    leftOut = try LeftOutEntry.all(on: connection).map { entry in
      let people = try shares.first { $0.number == entry.share }?.recipients ?? []
      return LeftOut(
        people: people.joined(separator: ", "), table: entry.table.text, rows: Int(clamping: entry.count))
    }
    warnings += try StateEntry.all(on: connection).filter { $0.difference != nil }.map { Remark(of: $0) }
    let (found, standing) = try ReplicaRegistration(of: connection, in: home).look(on: connection)
    replica = found.map { Replica($0, standing) }
  }
}

extension StatusReport.Replica {
  fileprivate init(_ replica: Buckia.Replica, _ standing: ReplicaStanding) {
    id = "\(replica.id)"
    incarnation = "\(replica.incarnation)"
    self.standing =
      switch standing {
      case .same, .moved, .otherHome, .new: .present
      case .restored: .restored
      case .copy: .copied
      case .unknown: .unknown
      }
  }
}
