/// The folder of a person, with everything that does not belong to one database: identity and contacts, the clock of
/// ids, the list of files made from each database, and the known replicas.
public struct BuckiaHome: Sendable {
  /// The path. The folder is created when it is first needed.
  public let path: String

  /// The passphrase of a protected identity; nil for none.
  public var passphrase: IdentityPassphrase?

  /// Creates a home in a folder.
  ///
  /// - Parameters:
  ///   - path: The path of the folder.
  ///   - passphrase: The passphrase of a protected identity. It is asked for only when the secret keys are needed.
  public init(path: String, passphrase: IdentityPassphrase? = nil) {
    self.path = path
    self.passphrase = passphrase
  }

  /// The home in `BUCKIA_HOME`, otherwise `buckia` in the configuration folder of the system: `XDG_CONFIG_HOME` or
  /// `~/.config`, on Apple systems `~/Library/Application Support`.
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

  /// Creates new ids, each greater than all before it and than those given, across processes.
  ///
  /// The newest id is kept in the file `clock`, which is locked meanwhile.
  ///
  /// - Parameters:
  ///   - count: The number of ids.
  ///   - observed: Ids that were applied before.
  ///   - unixSeconds: The wall clock.
  /// - Returns: The ids, and a warning when the clock could not be kept: they are then only unique, not ordered within
  ///   one second.
  /// - Throws: `KSUIDError` when the time fits no id.
  package func newIDs(
    _ count: Int = 1, after observed: [KSUID], unixSeconds: Int64
  ) throws(KSUIDError) -> (ids: [KSUID], warning: Warning?) {
    // The file stays locked until it is released.
    let file = openClock()
    var clock = KSUIDClock(last: file.flatMap(Self.read))
    for id in observed { clock.observe(id) }
    var generator = SystemRandomNumberGenerator()
    var ids: [KSUID] = []
    for _ in 0..<count { ids.append(try clock.next(unixSeconds: unixSeconds, using: &generator)) }
    let isKept = file.map { file in ids.last.map { Self.write($0, to: file) } ?? true } ?? false
    return (ids, isKept ? nil : Warning(.clockNotKept, "\(path)/clock"))
  }

  /// The locked file with the newest id; nil if it cannot be opened, which a warning reports.
  func openClock() -> PosixFile? {
    makeFolders()
    do {
      let file = try PosixFile(updating: "\(path)/clock")
      // Without file locks, ids are only ordered within this process.
      _ = file.lock()
      return file
    } catch {
      return nil
    }
  }

  /// Creates the folder if it is missing, readable by its owner only.
  func makeFolders() {
    var prefix = path.hasPrefix("/") ? "" : "."
    for part in path.split(separator: "/") {
      prefix += "/\(part)"
      // Existing folders stay; failures appear when the file is opened.
      mkdir(prefix, 0o700)
    }
  }

  /// The newest id; nil for none.
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

  /// Stores the newest id. Returns false on failure.
  private static func write(_ id: KSUID, to file: PosixFile) -> Bool {
    do {
      try Array("\(id)\n".utf8).withUnsafeBytes { try file.write($0, at: 0) }
      return true
    } catch {
      return false
    }
  }
}

/// The list of files made from each database, by which an outbox is not mistaken for an inbound folder and emptied.
///
/// The file `outgoing` has a line for each file: the id, and the replica of the database. For a database without a
/// ledger, the beginning of a digest of its path takes the place of the replica. A copy of the database is another
/// replica and applies such files like any others.
extension BuckiaHome {
  private var outgoingPath: String { "\(path)/outgoing" }
  /// The bytes of a line: an id, a space, 32 digits, a line end.
  private static let lineBytes = Int64(KSUID.textLength + 34)
  /// The number of lines to which the file is cut when it has twice as many.
  private static let lineLimit: Int64 = 10_000

  /// Records that a file is about to be made from a database, if the database is a replica or has a path.
  ///
  /// - Returns: A warning when it could not be noted.
  func noteOutgoing(_ id: KSUID, from database: String, replica: ReplicaID? = nil) -> Warning? {
    guard let origin = replica?.description ?? Self.digest(of: database) else { return nil }
    // The lock keeps other processes from adding and cutting.
    let clock = openClock()
    defer { withExtendedLifetime(clock) {} }
    do {
      try cutOutgoing()
      try PosixFile(appendingTo: outgoingPath).write(Array("\(id) \(origin)\n".utf8))
      return nil
    } catch {
      // If the clock cannot be stored either, its warning covers both.
      return clock == nil ? nil : Warning(.outgoingNotNoted, outgoingPath)
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
      // Nothing was recorded yet, or the file cannot be read, which was reported when it could not be written.
      return []
    }
  }

  /// Assigns the files made as one replica to the replica that continues its restored backup. If that cannot be stored,
  /// they count as those of others.
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

/// Assigns the ids of new diffs, and determines their sender.
package protocol OutgoingIDs {
  /// Creates an id greater than all before it and than those given.
  ///
  /// - Parameter observed: Ids that were applied before.
  /// - Returns: The id, and a warning if its clock could not be stored.
  func next(after observed: [KSUID]) throws -> (id: KSUID, warning: Warning?)
  /// Records that a file is about to be made from a database.
  ///
  /// - Returns: The sender for the manifest, and warnings.
  func begin(_ id: KSUID, from database: RowSource) throws -> (sender: Manifest.Sender?, warnings: [Warning])
}

extension BuckiaHome: OutgoingIDs {
  package func next(after observed: [KSUID]) throws -> (id: KSUID, warning: Warning?) {
    let made = try newIDs(after: observed, unixSeconds: WallClock.unixMilliseconds / 1_000)
    return (made.ids[0], made.warning)
  }

  package func begin(_ id: KSUID, from database: RowSource) throws -> (sender: Manifest.Sender?, warnings: [Warning]) {
    var (replica, warnings) = try origin(of: database, making: id)
    if let warning = try Warning.clockBehind(id, on: database.connection) { warnings.insert(warning, at: 0) }
    if let warning = noteOutgoing(id, from: database.connection.path, replica: replica?.id) { warnings.append(warning) }
    return (replica.map { Manifest.Sender(replica: $0.id, incarnation: $0.incarnation) }, warnings)
  }
}

extension BuckiaHome {
  /// The file with the state of the storages of a database.
  ///
  /// - Parameters:
  ///   - database: The database's path.
  ///   - userID: The person's folder in the storage.
  /// - Throws: `BuckiaError` when the folder for such files cannot be made.
  package func syncIndexPath(of database: String, userID: String) throws -> String {
    let sync = try syncFolder()
    // Another path of the same database gives the same file.
    let folder = FileSystem.folder(of: database)
    let place = "\(FileSystem.resolved(folder) ?? folder)/\(FileSystem.name(of: database))\0\(userID)"
    return "\(sync)/\("\(ContentDigest(of: Array(place.utf8)))".prefix(32)).sqlite"
  }

  /// The file in which `buckia sync` keeps the tokens of sign-ins.
  ///
  /// - Throws: `BuckiaError` when the folder for such files cannot be made.
  package func tokensPath() throws -> String { try "\(syncFolder())/tokens.json" }

  /// The folder with the records of backups.
  ///
  /// - Throws: `BuckiaError` when it cannot be made.
  package func backupFolder() throws -> String {
    makeFolders()
    try FileSystem.makeFolders("\(path)/backups", permissions: 0o700)
    return "\(path)/backups"
  }

  private func syncFolder() throws -> String {
    makeFolders()
    try FileSystem.makeFolders("\(path)/sync", permissions: 0o700)
    return "\(path)/sync"
  }
}
