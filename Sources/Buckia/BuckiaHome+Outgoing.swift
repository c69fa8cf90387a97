import BuckiaBytes
import BuckiaFormat
import SQLiteSchemas

/// Which files were made from which database, so that no outbox is mistaken for an inbound folder and emptied.
///
/// The file `outgoing` has a line for each: the id, and the replica that the database is. One without a ledger is no replica: the
/// beginning of a digest of its path stands for it. A copy of the database is another replica, however alike, and takes such files
/// like anybody's.
extension BuckiaHome {
  private var outgoingPath: String { "\(path)/outgoing" }
  /// The bytes of a line: an id, a space, 32 digits, a line end.
  private static let lineBytes = Int64(KSUID.textLength + 34)
  /// So many lines are kept at least; twice as many are cut down to that.
  private static let lineLimit: Int64 = 10_000

  /// Notes that a file is about to be made from a database. One that is no replica and has no path is not noted.
  ///
  /// - Returns: A remark when it could not be noted.
  func noteOutgoing(_ id: KSUID, from database: String, replica: ReplicaID? = nil) -> Remark? {
    guard let origin = replica?.description ?? Self.digest(of: database) else { return nil }
    // While it is locked, nobody else adds or cuts.
    let clock = openClock()
    defer { withExtendedLifetime(clock) {} }
    do {
      try cutOutgoing()
      try PosixFile(appendingTo: outgoingPath).write(Array("\(id) \(origin)\n".utf8))
      return nil
    } catch {
      // Where the clock cannot be kept either, the remark about that says this, too.
      return clock == nil ? nil : Remark(.outgoingNotNoted, outgoingPath)
    }
  }

  /// The ids of the files that were made from a database: since it is a replica, wherever it was, and before, at its path.
  func outgoingIDs(of database: String, replica: ReplicaID? = nil) -> Set<KSUID> {
    let origins = [replica?.description, Self.digest(of: database)].compactMap { $0.map { Array($0.utf8) } }
    guard !origins.isEmpty else { return [] }
    do {
      let lines = try outgoingLines()
      return Set(
        lines.compactMap { line in
          let origin = line.dropFirst(KSUID.textLength + 1)
          guard origins.contains(where: { origin.elementsEqual($0) }) else { return nil }
          return KSUID(String(decoding: line.prefix(KSUID.textLength), as: UTF8.self))
        })
    } catch {
      // Nothing was noted yet, or it cannot be read: a remark has told of that when it could not be written.
      return []
    }
  }

  /// Counts the files that were made as a replica as made by the one that its restored backup is. Where that cannot be written, they count as
  /// those of others.
  func passOutgoing(of replica: ReplicaID, to next: ReplicaID) {
    let clock = openClock()
    defer { withExtendedLifetime(clock) {} }
    let former = Array("\(replica)".utf8)
    _ = Result {
      let lines = try outgoingLines()
      let output = try AtomicFileOutput(at: outgoingPath, replacing: true, isPrivate: true)
      for line in lines {
        let isTheirs = line.suffix(former.count).elementsEqual(former)
        try output.write(isTheirs ? Array(line.dropLast(former.count)) + Array("\(next)".utf8) : Array(line))
        try output.write([UInt8(ascii: "\n")])
      }
      try output.publish()
    }
  }

  private static func digest(of database: String) -> String? {
    FileSystem.resolved(database).map { String("\(ContentDigest(of: Array($0.utf8)))".prefix(32)) }
  }

  private func outgoingLines() throws -> [ArraySlice<UInt8>] {
    let file = try PosixFile(reading: outgoingPath)
    let bytes = try [UInt8](unsafeUninitializedCapacity: Int(file.initialByteCount)) { buffer, count in
      count = try file.readFully(into: UnsafeMutableRawBufferPointer(buffer))
    }
    return bytes.split(separator: UInt8(ascii: "\n"))
  }

  /// Drops the oldest lines when there are many.
  private func cutOutgoing() throws {
    guard FileSystem.byteCount(of: outgoingPath) >= 2 * Self.lineLimit * Self.lineBytes else { return }
    let output = try AtomicFileOutput(at: outgoingPath, replacing: true, isPrivate: true)
    for line in try outgoingLines().suffix(Int(Self.lineLimit)) { try output.write(Array(line) + [UInt8(ascii: "\n")]) }
    try output.publish()
  }
}
