import BuckiaBytes
import BuckiaFormat
import BuckiaLedger

/// Which replicas this home has to do with: the folder `replicas` has a file of one line for each, named by the replica's id.
///
/// A database knows its replica, too, but a restored or copied file says what it said before. What is here is never ahead of what was
/// committed, but for an incarnation that is just being begun.
extension BuckiaHome {
  /// Where the files are.
  var replicaFolder: String { "\(path)/replicas" }
  /// So many replicas are known at least; when there are twice as many, those are dropped whose databases are gone, or were never
  /// committed, then the oldest. A database that is dropped, and still there, begins a new incarnation.
  static let replicaLimit = 1_000

  private func file(of replica: ReplicaID) -> String { "\(replicaFolder)/\(replica)" }

  // MARK: Looking

  /// What is known of a replica; nil for nothing that can be read.
  func known(_ replica: ReplicaID) -> KnownReplica? {
    do {
      let file = try PosixFile(reading: file(of: replica))
      // A path has no more than a few thousand bytes, each of which can be escaped by three.
      guard file.initialByteCount < 1 << 16 else { return nil }
      return KnownReplica(
        line: try [UInt8](unsafeUninitializedCapacity: Int(file.initialByteCount)) { buffer, count in
          count = try file.readFully(into: UnsafeMutableRawBufferPointer(buffer))
        })
    } catch {
      // There is none, or it cannot be read: then nothing is known of it, and a new incarnation is the safe answer.
      return nil
    }
  }

  /// Whether a database with a replica has been seen at a path.
  func knowsReplica(at path: String) -> Bool {
    replicas().contains { replica in
      guard let known = known(replica) else { return false }
      return known.progress != nil && known.path == path
    }
  }

  private func replicas() -> [ReplicaID] {
    do {
      return try FileSystem.names(in: replicaFolder).compactMap { ReplicaID(hex: $0) }
    } catch {
      // It is made with the first file in it.
      return []
    }
  }

  // MARK: Keeping

  /// Keeps what is known of a replica now.
  ///
  /// - Returns: Whether that could be done.
  func keep(_ known: KnownReplica, of replica: ReplicaID) -> Bool {
    let clock = openClock()
    defer { withExtendedLifetime(clock) {} }
    do {
      try FileSystem.makeFolders(replicaFolder, permissions: 0o700)
      let isNew = !FileSystem.exists(file(of: replica))
      let output = try AtomicFileOutput(at: file(of: replica), replacing: true, isPrivate: true)
      try output.write(Array(known.line.utf8))
      try output.publish()
      if isNew { cutReplicas(but: replica) }
      return true
    } catch {
      return false
    }
  }

  /// Notes how far the ledger of a replica has come, unless that is known, or another incarnation has been begun meanwhile.
  ///
  /// - Returns: Whether that could be done.
  func note(_ progress: LedgerProgress, of replica: ReplicaID, in incarnation: IncarnationID) -> Bool {
    // Nobody else begins another incarnation meanwhile.
    let clock = openClock()
    defer { withExtendedLifetime(clock) {} }
    guard let known = known(replica) else { return false }
    guard known.incarnation == incarnation else { return true }
    if let seen = known.progress, seen == progress || progress.isBehind(seen) { return true }
    do {
      // In place and without waiting for the disk: what is lost in a power cut is only that it is noted later.
      let file = try PosixFile(updating: file(of: replica))
      try Array(KnownReplica.text(of: progress).utf8).withUnsafeBytes {
        try file.write($0, at: KnownReplica.progressOffset)
      }
      return true
    } catch {
      return false
    }
  }

  /// Drops replicas where there are too many.
  private func cutReplicas(but kept: ReplicaID) {
    let all = replicas()
    guard all.count >= 2 * Self.replicaLimit else { return }
    var left: [(replica: ReplicaID, time: Int)] = []
    for replica in all where replica != kept {
      // One that was begun and never seen committed is of a transaction that was rolled back.
      if let known = known(replica), known.progress != nil, FileSystem.exists(known.path) {
        left.append((replica, FileSystem.modificationTime(of: file(of: replica))))
      } else {
        unlink(file(of: replica))
      }
    }
    left.sort { $0.time > $1.time }
    for old in left.dropFirst(Self.replicaLimit - 1) { unlink(file(of: old.replica)) }
  }
}
