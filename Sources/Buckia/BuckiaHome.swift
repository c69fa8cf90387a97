import BuckiaBytes
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
