import BuckiaByteStreams
import BuckiaDiffFiles
import BuckiaKSUID
import BuckiaSchemaPlans

/// Which files were made from which database, so that no outbox is mistaken for an inbound folder and emptied.
///
/// The file `outgoing` has a line for each: the id, and the beginning of a digest of the database's path. A copy of the
/// database is another one, however alike, and takes such files like anybody's.
extension BuckiaHome {
  private var outgoingPath: String { "\(path)/outgoing" }
  /// The bytes of a line: an id, a space, 32 digits, a line end.
  private static let lineBytes = Int64(KSUID.textLength + 34)
  /// So many lines are kept at least; twice as many are cut down to that.
  private static let lineLimit: Int64 = 10_000

  /// Notes that a file is about to be made from a database. One that has no path is not noted.
  ///
  /// - Returns: A remark when it could not be noted.
  package func noteOutgoing(_ id: KSUID, from database: String) -> Remark? {
    guard let digest = Self.digest(of: database) else { return nil }
    // While it is locked, nobody else adds or cuts.
    let clock = openClock()
    defer { withExtendedLifetime(clock) {} }
    do {
      try cutOutgoing()
      try PosixFile(appendingTo: outgoingPath).write(Array("\(id) \(digest)\n".utf8))
      return nil
    } catch {
      // Where the clock cannot be kept either, the remark about that says this, too.
      return clock == nil ? nil : Remark(.outgoingNotNoted, outgoingPath)
    }
  }

  /// The ids of the files that were made from a database.
  func outgoingIDs(of database: String) -> Set<KSUID> {
    guard let digest = Self.digest(of: database) else { return [] }
    do {
      let lines = try outgoingLines()
      return Set(
        lines.compactMap { line in
          line.dropFirst(KSUID.textLength + 1).elementsEqual(digest.utf8)
            ? KSUID(String(decoding: line.prefix(KSUID.textLength), as: UTF8.self)) : nil
        })
    } catch {
      // Nothing was noted yet, or it cannot be read: a remark has told of that when it could not be written.
      return []
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
    let output = try AtomicFileOutput(at: outgoingPath, replacing: true)
    for line in try outgoingLines().suffix(Int(Self.lineLimit)) { try output.write(Array(line) + [UInt8(ascii: "\n")]) }
    try output.publish()
  }
}
