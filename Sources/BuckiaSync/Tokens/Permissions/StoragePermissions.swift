import BuckiaStorage

/// What somebody may do in a storage, folder by folder. What no rule allows is forbidden.
///
/// ```swift
/// // Read everything, and write into one folder.
/// let permissions = StoragePermissions.reading.adding(.write, in: try RemotePath("7f3a/inbound"))
/// permissions.allow(.write, try RemotePath("7f3a/inbound/1.bdiff"))    // true
/// permissions.allow(.write, try RemotePath("7f3a/backup.sqlite"))      // false
/// ```
///
/// ``RestrictedStorage`` enforces them; a ``TokenFactory`` makes tokens that carry them.
public struct StoragePermissions: Sendable, Hashable, CustomStringConvertible {
  /// What is allowed in one place.
  public struct Rule: Sendable, Hashable, CustomStringConvertible {
    /// The place.
    public let place: Place
    /// What is allowed there.
    public let actions: StorageActions

    /// Makes a rule.
    public init(_ actions: StorageActions, in place: Place) {
      self.actions = actions
      self.place = place
    }

    /// What is allowed and where, for people.
    public var description: String { "\(actions) in \(place)" }
  }

  /// Where a rule holds.
  public enum Place: Sendable, Hashable, CustomStringConvertible {
    /// Everywhere.
    case everywhere
    /// In a folder and the folders in it. The name of the folder itself is no object of it.
    case folder(RemotePath)
    /// For one object.
    case object(RemotePath)

    /// Whether an object is in the place.
    public func contains(_ path: RemotePath) -> Bool {
      switch self {
      case .everywhere: true
      case .folder(let folder): path.isIn(folder)
      case .object(let object): path == object
      }
    }

    /// Whether all objects of a folder are in the place; of the whole storage, for nil.
    func covers(folder: RemotePath?) -> Bool {
      switch (self, folder) {
      case (.everywhere, _): true
      case (.folder(let own), let folder?): folder == own || folder.isIn(own)
      case (.folder, nil), (.object, _): false
      }
    }

    /// Whether some object of a folder may be in the place.
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

  /// The rules. Each adds to what the others allow.
  public let rules: [Rule]

  /// Takes rules. Those that allow nothing are left out.
  public init(_ rules: [Rule]) { self.rules = rules.filter { !$0.actions.isEmpty } }

  /// Nothing.
  public static let none = Self([])
  /// Everything, everywhere.
  public static let full = Self([Rule(.all, in: .everywhere)])
  /// To read and list everything.
  public static let reading = Self([Rule([.read, .list], in: .everywhere)])

  /// To read everything, and to write into a folder: what somebody needs who sends diffs and takes those of others.
  public static func readingAll(writing folder: RemotePath) -> Self { reading.adding(.write, in: folder) }

  /// These permissions and more.
  ///
  /// - Parameters:
  ///   - actions: What else is allowed.
  ///   - folder: Where; nil for everywhere.
  public func adding(_ actions: StorageActions, in folder: RemotePath?) -> Self {
    Self(rules + [Rule(actions, in: folder.map { .folder($0) } ?? .everywhere)])
  }

  /// These permissions and more.
  public func adding(_ actions: StorageActions, to object: RemotePath) -> Self {
    Self(rules + [Rule(actions, in: .object(object))])
  }

  // MARK: Asking

  /// Whether all of the actions are allowed for an object. Several rules may allow one each.
  public func allow(_ actions: StorageActions, _ path: RemotePath) -> Bool {
    allowed(path).isSuperset(of: actions)
  }

  /// What is allowed for an object.
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

  /// Whether others allow at least as much: whoever has these permissions could hand those on.
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
  /// Whether all objects of another place are in this one.
  fileprivate func covers(_ other: Self) -> Bool {
    switch other {
    case .everywhere: covers(folder: nil)
    case .folder(let folder): covers(folder: folder)
    case .object(let object): contains(object)
    }
  }
}
