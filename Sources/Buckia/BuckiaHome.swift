import BuckiaKSUID

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// The folder that holds what belongs to a person and not to one database: so far, the clock of their ids.
public struct BuckiaHome: Sendable {
  /// Where it is. It is made when something is first kept in it.
  public let path: String

  /// Takes a folder.
  public init(path: String) { self.path = path }

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
  public func newIDs(
    _ count: Int = 1, after observed: [KSUID], unixSeconds: Int64
  ) throws(KSUIDError) -> (ids: [KSUID], remark: String?) {
    let file = openClock()
    defer { if file >= 0 { close(file) } }
    var clock = KSUIDClock(last: file >= 0 ? Self.read(file) : nil)
    for id in observed { clock.observe(id) }
    var generator = SystemRandomNumberGenerator()
    var ids: [KSUID] = []
    for _ in 0..<count { ids.append(try clock.next(unixSeconds: unixSeconds, using: &generator)) }
    let isKept = file >= 0 && (ids.last.map { Self.write($0, to: file) } ?? true)
    return (ids, isKept ? nil : "\(path)/clock cannot be written, so ids made within one second have no order")
  }

  private func openClock() -> Int32 {
    makeFolders()
    let file = open("\(path)/clock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
    if file >= 0 { flock(file, LOCK_EX) }
    return file
  }

  private func makeFolders() {
    var prefix = path.hasPrefix("/") ? "" : "."
    for part in path.split(separator: "/") {
      prefix += "/\(part)"
      // What is there already stays; what cannot be made shows when the file is opened.
      mkdir(prefix, 0o700)
    }
  }

  private static func read(_ file: Int32) -> KSUID? {
    var text = [UInt8](repeating: 0, count: KSUID.textLength)
    guard pread(file, &text, text.count, 0) == text.count else { return nil }
    return KSUID(String(decoding: text, as: UTF8.self))
  }

  private static func write(_ id: KSUID, to file: Int32) -> Bool {
    let text = Array("\(id)\n".utf8)
    return pwrite(file, text, text.count, 0) == text.count
  }
}
