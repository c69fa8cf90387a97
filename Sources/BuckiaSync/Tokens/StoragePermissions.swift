import BuckiaBytes
import BuckiaStorage

/// Permissions for a storage, by folder. Operations that no rule allows are forbidden.
///
/// ```swift
/// // Read everything, and write into one folder.
/// let permissions = StoragePermissions.reading.adding(.write, in: try RemotePath("7f3a/inbound"))
/// permissions.allow(.write, try RemotePath("7f3a/inbound/1.bdiff"))    // true
/// permissions.allow(.write, try RemotePath("7f3a/backups"))      // false
/// ```
///
/// ``RestrictedStorage`` enforces them; ``SignedTokenFactory`` and others make tokens that carry them.
public struct StoragePermissions: Sendable, Hashable, CustomStringConvertible {
  /// A rule: the allowed actions in one place.
  public struct Rule: Sendable, Hashable, CustomStringConvertible {
    /// The place.
    public let place: Place
    /// The allowed actions.
    public let actions: StorageActions

    /// Creates a rule.
    public init(_ actions: StorageActions, in place: Place) {
      self.actions = actions
      self.place = place
    }

    /// What is allowed and where, for people.
    public var description: String { "\(actions) in \(place)" }
  }

  /// The place of a rule.
  public enum Place: Sendable, Hashable, CustomStringConvertible {
    /// Everywhere.
    case everywhere
    /// In a folder and the folders in it. The name of the folder itself is no object of it.
    case folder(RemotePath)
    /// For one object.
    case object(RemotePath)

    /// True if an object is in the place.
    public func contains(_ path: RemotePath) -> Bool {
      switch self {
      case .everywhere: true
      case .folder(let folder): path.isIn(folder)
      case .object(let object): path == object
      }
    }

    /// True if all objects of a folder are in the place; of the whole storage, for nil.
    func covers(folder: RemotePath?) -> Bool {
      switch (self, folder) {
      case (.everywhere, _): true
      case (.folder(let own), let folder?): folder == own || folder.isIn(own)
      case (.folder, nil), (.object, _): false
      }
    }

    /// True if some object of a folder may be in the place.
    func touches(folder: RemotePath?) -> Bool {
      guard let folder else { return true }
      return switch self {
      case .everywhere: true
      case .folder(let own): folder == own || folder.isIn(own) || own.isIn(folder)
      case .object(let object): object.isIn(folder)
      }
    }

    /// What is allowed and where, for people.
    public var description: String {
      switch self {
      case .everywhere: "the whole storage"
      case .folder(let path): "\(path)/"
      case .object(let path): path.text
      }
    }
  }

  /// The rules. Each adds permissions to the others.
  public let rules: [Rule]

  /// Takes rules. Those that allow nothing are left out.
  public init(_ rules: [Rule]) { self.rules = rules.filter { !$0.actions.isEmpty } }

  /// Nothing.
  public static let none = Self([])
  /// Everything, everywhere.
  public static let full = Self([Rule(.all, in: .everywhere)])
  /// To read and list everything.
  public static let reading = Self([Rule([.read, .list], in: .everywhere)])

  /// Permission to read everything, and to write to a folder, as needed for sending and receiving diffs.
  public static func readingAll(writing folder: RemotePath) -> Self { reading.adding(.write, in: folder) }

  /// These permissions and more.
  ///
  /// - Parameters:
  ///   - actions: Further actions.
  ///   - folder: The folder; nil for everywhere.
  public func adding(_ actions: StorageActions, in folder: RemotePath?) -> Self {
    Self(rules + [Rule(actions, in: folder.map { .folder($0) } ?? .everywhere)])
  }

  /// These permissions and more.
  public func adding(_ actions: StorageActions, to object: RemotePath) -> Self {
    Self(rules + [Rule(actions, in: .object(object))])
  }

  // MARK: Asking

  /// True if all of the actions are allowed for an object. Several rules may allow one each.
  public func allow(_ actions: StorageActions, _ path: RemotePath) -> Bool {
    allowed(path).isSuperset(of: actions)
  }

  /// The allowed actions for an object.
  public func allowed(_ path: RemotePath) -> StorageActions {
    rules.reduce([]) { $1.place.contains(path) ? $0.union($1.actions) : $0 }
  }

  /// How much of a folder may be listed.
  func listing(of folder: RemotePath?) -> Listing {
    let lists = rules.filter { $0.actions.contains(.list) }
    if lists.contains(where: { $0.place.covers(folder: folder) }) { return .all }
    return lists.contains { $0.place.touches(folder: folder) } ? .some : .nothing
  }

  enum Listing { case all, some, nothing }

  /// True if other permissions allow at least as much.
  public func isSubset(of others: StoragePermissions) -> Bool {
    rules.allSatisfy { rule in
      var missing = rule.actions
      for other in others.rules where other.place.covers(rule.place) { missing.subtract(other.actions) }
      return missing.isEmpty
    }
  }

  /// What is allowed and where, for people.
  public var description: String { rules.isEmpty ? "nothing" : rules.map(\.description).joined(separator: "; ") }
}

extension StoragePermissions.Place {
  /// True if all objects of another place are in this one.
  fileprivate func covers(_ other: Self) -> Bool {
    switch other {
    case .everywhere: covers(folder: nil)
    case .folder(let folder): covers(folder: folder)
    case .object(let object): contains(object)
    }
  }
}

/// Actions on objects.
public struct StorageActions: OptionSet, Hashable, Sendable, CustomStringConvertible {
  /// The actions as bits.
  public let rawValue: UInt8
  /// Takes bits.
  public init(rawValue: UInt8) { self.rawValue = rawValue }

  /// To read an object, and to look it up by its name.
  public static let read = Self(rawValue: 1)
  /// To write an object, also in place of another.
  public static let write = Self(rawValue: 2)
  /// To delete an object.
  public static let delete = Self(rawValue: 4)
  /// To list the objects in a folder.
  public static let list = Self(rawValue: 8)
  /// Everything.
  public static let all: Self = [.read, .write, .delete, .list]

  /// The actions with their words, in the order in which they are written.
  private static let words: [(Self, String)] = [
    (.read, "read"), (.write, "write"), (.delete, "delete"), (.list, "list"),
  ]

  /// The words for the actions.
  public var words: [String] { Self.words.filter { contains($0.0) }.map(\.1) }

  /// Takes a word; nil if it is none.
  init?(word: String) {
    guard let found = Self.words.first(where: { $0.1 == word }) else { return nil }
    self = found.0
  }

  /// The words, for people.
  public var description: String { isEmpty ? "nothing" : words.joined(separator: ", ") }
}

extension StoragePermissions {
  /// The most rules of a token.
  private static let ruleLimit = 1000

  /// A list of rules: `[{"actions":["read","list"]},{"actions":["write"],"prefix":"7f3a/inbound/"}]`. A prefix that ends with a slash is a
  /// folder, any other an object; without one, the rule holds everywhere.
  var document: JSONValue {
    .array(
      rules.map { rule in
        var object = JSONObject()
        object.append("actions", .strings(rule.actions.words))
        switch rule.place {
        case .everywhere: break
        case .folder(let path): object.append("prefix", .string("\(path)/"))
        case .object(let path): object.append("prefix", .string(path.text))
        }
        return .object(object)
      })
  }

  /// Reads a list of rules; nil if it is malformed. A rule with an unknown member or action invalidates the whole list,
  /// because it could be narrower than its known parts.
  init?(_ document: JSONValue) {
    guard case .array(let items) = document, items.count <= Self.ruleLimit else { return nil }
    var rules: [Rule] = []
    for item in items {
      guard case .object(let object) = item, case .array(let words)? = object["actions"] else { return nil }
      var actions: StorageActions = []
      for word in words {
        guard case .string(let text) = word, let action = StorageActions(word: text) else { return nil }
        actions.insert(action)
      }
      var place = Place.everywhere
      switch object["prefix"] {
      case nil: guard object.members.count == 1 else { return nil }
      case .string(let text)?:
        guard object.members.count == 2, let read = Place(prefix: text) else { return nil }
        place = read
      default: return nil
      }
      rules.append(Rule(actions, in: place))
    }
    self.init(rules)
  }
}

extension StoragePermissions.Place {
  /// Reads a prefix; nil if it is no path.
  fileprivate init?(prefix: String) {
    let isFolder = prefix.utf8.last == UInt8(ascii: "/")
    let text = isFolder ? String(Substring(prefix.utf8.dropLast())) : prefix
    // Why it is no path does not matter: the whole claim is refused.
    guard case .success(let path) = Result(catching: { () throws(StorageError) in try RemotePath(text) }) else {
      return nil
    }
    self = isFolder ? .folder(path) : .object(path)
  }
}

/// A storage with restricted permissions. Every call is checked before it reaches the underlying storage.
///
/// Forbidden calls throw `StorageError` with `forbidden`, whether or not the object exists. A listing leaves out
/// forbidden objects; a listing without any allowed object is refused.
public struct RestrictedStorage: StorageProvider {
  private let storage: any StorageProvider
  /// The permissions.
  public let permissions: StoragePermissions
  private let expires: Int64?
  private let clock: TokenClock

  /// Restricts a storage.
  ///
  /// - Parameters:
  ///   - storage: The storage.
  ///   - permissions: The permissions.
  ///   - expires: Until when, in milliseconds since 1970; nil for no end.
  ///   - clock: What time it is.
  public init(
    _ storage: any StorageProvider, allowing permissions: StoragePermissions, until expires: Int64? = nil,
    clock: TokenClock = .system
  ) {
    self.storage = storage
    self.permissions = permissions
    self.expires = expires
    self.clock = clock
  }

  /// The name of the underlying storage.
  public var name: String { storage.name }
  /// The capabilities of the underlying storage.
  public var capabilities: StorageCapabilities { storage.capabilities }

  private func requireTime(_ path: RemotePath?) throws(StorageError) {
    guard expires.map({ clock.now() < $0 }) ?? true else {
      throw StorageError(.unauthorized, "what was allowed here has ended; get a new token", path: path)
    }
  }

  private func require(_ actions: StorageActions, _ path: RemotePath) throws(StorageError) {
    try requireTime(path)
    let missing = actions.subtracting(permissions.allowed(path))
    guard missing.isEmpty else {
      throw StorageError(
        .forbidden, "this is not allowed here: \(missing); nothing was done. Ask for a token that allows it", path: path
      )
    }
  }

  /// Lists the allowed objects. A page can be shorter than requested, or empty, even if others follow.
  public func list(_ request: ListRequest) async throws -> ListPage {
    try requireTime(request.folder)
    let listing = permissions.listing(of: request.folder)
    guard listing != .nothing else {
      throw StorageError(
        .forbidden, "this is not allowed here: list; ask for a token that allows it", path: request.folder)
    }
    var page = try await storage.list(request)
    page.objects.removeAll { !permissions.allow(.list, $0.path) }
    // The number of unusable names would reveal forbidden objects.
    if listing == .some { page.unusableNames = 0 }
    return page
  }

  /// Needs the permission to read.
  public func stat(_ path: RemotePath) async throws -> StoredObject? {
    try require(.read, path)
    return try await storage.stat(path)
  }

  /// Needs the permission to read.
  public func get(_ path: RemotePath, _ request: GetRequest) async throws -> StorageDownload {
    try require(.read, path)
    return try await storage.get(path, request)
  }

  /// Needs the permission to write.
  public func put(
    _ contents: StorageContents, to path: RemotePath, _ condition: PutCondition
  ) async throws -> StoredObject {
    try require(.write, path)
    return try await storage.put(contents, to: path, condition)
  }

  /// Needs the permission to delete.
  public func delete(_ path: RemotePath) async throws {
    try require(.delete, path)
    try await storage.delete(path)
  }

  /// Moving needs all that copying and deleting would need.
  public func move(_ path: RemotePath, to newPath: RemotePath, replacing isReplacing: Bool) async throws {
    try require([.read, .delete], path)
    try require(.write, newPath)
    try await storage.move(path, to: newPath, replacing: isReplacing)
  }
}
