/// A home's record of a replica, outside of its database.
struct KnownReplica: Equatable {
  /// Its present incarnation.
  let incarnation: IncarnationID
  /// How far its ledger had come when it was last seen; nil until the incarnation has been seen in a committed database.
  var progress: LedgerProgress?
  /// The absolute path of its database, without links.
  let path: String
}

/// The record as a line of text: the incarnation, the number of the last entry and the last made diff, both of a fixed
/// width to be replaced in place, and the path, in which line ends and invisible characters are escaped by `%`.
extension KnownReplica {
  /// The offset of the progress in the line, in bytes.
  static let progressOffset = 2 * IncarnationID.byteCount + 1

  private static let entryDigits = 19
  private static let noEntry = String(repeating: "-", count: entryDigits)
  private static let noDiff = String(repeating: "-", count: KSUID.textLength)

  var line: String {
    "\(incarnation) \(Self.text(of: progress))\(Self.lineEnd(of: path))"
  }

  /// How the lines of all replicas at a path end.
  static func lineEnd(of path: String) -> String { " \(escaped(path))\n" }

  /// Reads a line; nil if it is damaged.
  init?(line: [UInt8]) {
    guard let end = line.firstIndex(of: UInt8(ascii: "\n")) else { return nil }
    let fields = line[..<end].split(separator: UInt8(ascii: " "), omittingEmptySubsequences: false).map {
      String(decoding: $0, as: UTF8.self)
    }
    guard fields.count == 4, let incarnation = IncarnationID(hex: fields[0]), let path = Self.unescaped(fields[3])
    else { return nil }
    self.incarnation = incarnation
    self.path = path
    if fields[1] == Self.noEntry {
      progress = nil
    } else {
      guard let entry = Int64(fields[1]), entry >= 0 else { return nil }
      let made = KSUID(fields[2])
      guard made != nil || fields[2] == Self.noDiff else { return nil }
      progress = LedgerProgress(entry: entry, made: made)
    }
  }

  static func text(of progress: LedgerProgress?) -> String {
    guard let progress else { return "\(noEntry) \(noDiff)" }
    let digits = String(progress.entry)
    let zeros = String(repeating: "0", count: entryDigits - digits.utf8.count)
    return "\(zeros)\(digits) \(progress.made?.description ?? noDiff)"
  }

  private static func escaped(_ path: String) -> String {
    var text: [UInt8] = []
    for byte in path.utf8 {
      if byte > 0x20, byte != 0x7f, byte != UInt8(ascii: "%") {
        text.append(byte)
      } else {
        let digits = Array("0123456789abcdef".utf8)
        text += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
      }
    }
    return String(decoding: text, as: UTF8.self)
  }

  private static func unescaped(_ text: String) -> String? {
    var bytes: [UInt8] = []
    var rest = Array(text.utf8)[...]
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "%") else {
        bytes.append(byte)
        continue
      }
      guard rest.count >= 2, let value = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16) else {
        return nil
      }
      bytes.append(value)
      rest = rest.dropFirst(2)
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}

/// The replicas that this home knows: the folder `replicas` has a file of one line for each, named by the replica's id.
///
/// A database names its replica, too, but a restored or copied file names the earlier one. The records here are never
/// ahead of the committed state, except for an incarnation that is just being begun.
extension BuckiaHome {
  /// The folder of the files.
  var replicaFolder: String { "\(path)/replicas" }
  /// The number of replicas to which the records are cut when there are twice as many: first those whose databases are
  /// missing or were never committed, then the oldest. A database without its record begins a new incarnation.
  static let replicaLimit = 1_000

  private func file(of replica: ReplicaID) -> String { "\(replicaFolder)/\(replica)" }

  // MARK: Looking

  /// The record of a replica; nil for none that can be read.
  func known(_ replica: ReplicaID) -> KnownReplica? { line(of: replica).flatMap { KnownReplica(line: $0) } }

  private func line(of replica: ReplicaID) -> [UInt8]? {
    do {
      // A path has no more than a few thousand bytes, each of which can be escaped by three.
      return try PosixFile(reading: file(of: replica)).contents(limit: 1 << 16)
    } catch {
      // There is none, or it cannot be read. A new incarnation is the safe answer then.
      return nil
    }
  }

  /// The incarnations of the replicas that have been seen at a path, the oldest first.
  func incarnations(at path: String) -> [IncarnationID] {
    let end = Array(KnownReplica.lineEnd(of: path).utf8)
    let found = replicas().compactMap { replica -> (incarnation: IncarnationID, time: Int)? in
      // Only the line that ends as it should is worth reading.
      guard let line = line(of: replica), line.suffix(end.count).elementsEqual(end),
        let known = KnownReplica(line: line), known.progress != nil
      else { return nil }
      return (known.incarnation, FileSystem.modificationTime(of: file(of: replica)))
    }
    return found.sorted { $0.time < $1.time }.map(\.incarnation)
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

  /// Stores the record of a replica.
  ///
  /// - Returns: True if that could be done.
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

  /// Records the progress of a replica's ledger, unless it is recorded, or another incarnation has begun meanwhile.
  ///
  /// - Returns: True if that could be done.
  func note(_ progress: LedgerProgress, of replica: ReplicaID, in incarnation: IncarnationID) -> Bool {
    // The lock keeps other processes from beginning another incarnation.
    let clock = openClock()
    defer { withExtendedLifetime(clock) {} }
    guard let known = known(replica) else { return false }
    guard known.incarnation == incarnation else { return true }
    if let seen = known.progress, seen == progress || progress.isBehind(seen) { return true }
    do {
      // In place and without waiting for the disk: after a power cut the progress is only recorded later.
      let file = try PosixFile(updating: file(of: replica))
      try Array(KnownReplica.text(of: progress).utf8).withUnsafeBytes {
        try file.write($0, at: KnownReplica.progressOffset)
      }
      return true
    } catch {
      return false
    }
  }

  /// Drops records if there are too many.
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
