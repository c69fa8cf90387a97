import BuckiaBytes
import BuckiaDiff
import BuckiaFormat
import SQLiteSchemas

/// The folder that holds what belongs to a person and not to one database, and what is known of databases outside of them: the person's
/// identity and contacts, the clock of their ids, which files were made from which database, and which replicas there are.
public struct BuckiaHome: Sendable {
  /// Where it is. It is made when something is first kept in it.
  public let path: String

  /// What opens the identity where it is protected; nil where nothing does.
  public var passphrase: IdentityPassphrase?

  /// Takes a folder.
  ///
  /// - Parameters:
  ///   - path: Where it is.
  ///   - passphrase: What opens the identity where it is protected. It is asked for where the secret keys are needed, and not before.
  public init(path: String, passphrase: IdentityPassphrase? = nil) {
    self.path = path
    self.passphrase = passphrase
  }

  /// `BUCKIA_HOME`, else `buckia` in the configuration folder of the system: `XDG_CONFIG_HOME` or `~/.config`, on Apple
  /// systems `~/Library/Application Support`.
  public static var standard: BuckiaHome {
    if let home = variable("BUCKIA_HOME") { return BuckiaHome(path: home) }
    let user = variable("HOME") ?? "."
    #if canImport(Darwin)
      return BuckiaHome(path: "\(user)/Library/Application Support/buckia")
    #else
      return BuckiaHome(path: "\(variable("XDG_CONFIG_HOME") ?? "\(user)/.config")/buckia")
    #endif
  }

  private static func variable(_ name: String) -> String? {
    guard let value = getenv(name), value.pointee != 0 else { return nil }
    return String(cString: value)
  }

  /// Makes new ids, each greater than all before it and than those given, across processes.
  ///
  /// The newest id is kept in the file `clock`, which is locked meanwhile.
  ///
  /// - Parameters:
  ///   - count: How many.
  ///   - observed: Ids that were applied before.
  ///   - unixSeconds: The wall clock.
  /// - Returns: The ids, and a remark when the clock could not be kept: they are then only unique, not ordered within
  ///   one second.
  /// - Throws: `KSUIDError` when the time fits no id.
  package func newIDs(
    _ count: Int = 1, after observed: [KSUID], unixSeconds: Int64
  ) throws(KSUIDError) -> (ids: [KSUID], remark: Remark?) {
    // It stays locked until it goes.
    let file = openClock()
    var clock = KSUIDClock(last: file.flatMap(Self.read))
    for id in observed { clock.observe(id) }
    var generator = SystemRandomNumberGenerator()
    var ids: [KSUID] = []
    for _ in 0..<count { ids.append(try clock.next(unixSeconds: unixSeconds, using: &generator)) }
    let isKept = file.map { file in ids.last.map { Self.write($0, to: file) } ?? true } ?? false
    return (ids, isKept ? nil : Remark(.clockNotKept, "\(path)/clock"))
  }

  /// The file with the newest id, locked; nil where it cannot be had, which the remark tells of.
  func openClock() -> PosixFile? {
    makeFolders()
    do {
      let file = try PosixFile(updating: "\(path)/clock")
      // Where files cannot be locked, ids are only ordered within this process.
      _ = file.lock()
      return file
    } catch {
      return nil
    }
  }

  /// Makes the folder where it is missing. Nobody else can look into it.
  func makeFolders() {
    var prefix = path.hasPrefix("/") ? "" : "."
    for part in path.split(separator: "/") {
      prefix += "/\(part)"
      // What is there already stays; what cannot be made shows when the file is opened.
      mkdir(prefix, 0o700)
    }
  }

  /// The newest id; nil where none was kept yet.
  private static func read(_ file: PosixFile) -> KSUID? {
    do {
      let text = try [UInt8](unsafeUninitializedCapacity: KSUID.textLength) { buffer, count in
        count = try file.read(into: UnsafeMutableRawBufferPointer(buffer), at: 0)
      }
      return KSUID(String(decoding: text, as: UTF8.self))
    } catch {
      return nil
    }
  }

  /// Keeps the newest id, and says whether that could be done.
  private static func write(_ id: KSUID, to file: PosixFile) -> Bool {
    do {
      try Array("\(id)\n".utf8).withUnsafeBytes { try file.write($0, at: 0) }
      return true
    } catch {
      return false
    }
  }
}

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

/// Gives new diffs their ids, and knows who makes them.
package protocol OutgoingIDs {
  /// Makes an id that is greater than all before it and than those given.
  ///
  /// - Parameter observed: Ids that were applied before.
  /// - Returns: The id, and a remark when the clock behind it could not be kept.
  func next(after observed: [KSUID]) throws -> (id: KSUID, remark: Remark?)
  /// Notes that a file is about to be made from a database.
  ///
  /// - Returns: What its manifest says of the sender, and what people should know.
  func begin(_ id: KSUID, from database: RowSource) throws -> (sender: Manifest.Sender?, remarks: [Remark])
}

extension BuckiaHome: OutgoingIDs {
  package func next(after observed: [KSUID]) throws -> (id: KSUID, remark: Remark?) {
    let made = try newIDs(after: observed, unixSeconds: WallClock.unixMilliseconds / 1_000)
    return (made.ids[0], made.remark)
  }

  package func begin(_ id: KSUID, from database: RowSource) throws -> (sender: Manifest.Sender?, remarks: [Remark]) {
    var (replica, remarks) = try origin(of: database, making: id)
    if let remark = try Remark.clockBehind(id, on: database.connection) { remarks.insert(remark, at: 0) }
    if let remark = noteOutgoing(id, from: database.connection.path, replica: replica?.id) { remarks.append(remark) }
    return (replica.map { Manifest.Sender(replica: $0.id, incarnation: $0.incarnation) }, remarks)
  }
}

extension BuckiaHome {
  /// The file that holds what is known of the storages to which a database goes.
  ///
  /// - Parameters:
  ///   - database: The database's path.
  ///   - userID: The person's folder in the storage.
  /// - Throws: `BuckiaError` when the folder for such files cannot be made.
  package func syncIndexPath(of database: String, userID: String) throws -> String {
    let sync = try syncFolder()
    // The same database by another way is the same.
    let folder = FileSystem.folder(of: database)
    let place = "\(FileSystem.resolved(folder) ?? folder)/\(FileSystem.name(of: database))\0\(userID)"
    return "\(sync)/\("\(ContentDigest(of: Array(place.utf8)))".prefix(32)).sqlite"
  }

  /// The file in which `buckia sync` keeps the tokens of sign-ins.
  ///
  /// - Throws: `BuckiaError` when the folder for such files cannot be made.
  package func tokensPath() throws -> String { try "\(syncFolder())/tokens.json" }

  private func syncFolder() throws -> String {
    makeFolders()
    try FileSystem.makeFolders("\(path)/sync", permissions: 0o700)
    return "\(path)/sync"
  }
}
