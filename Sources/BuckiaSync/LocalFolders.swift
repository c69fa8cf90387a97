import Buckia
import BuckiaStorage

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension BuckiaConfiguration {
  /// The state of the database and of the folders that are edited on this device, by the file system.
  func localState(in folders: LocalFolders) async throws -> String {
    let paths =
      [database.path, "\(database.path)-wal", folders.originals, folders.reworked] + deliveries.map(\.folder)
    return try await runBlocking {
      try paths.map { try FileIdentity.current(at: $0)?.text ?? "-" }.joined(separator: " ")
    }
  }
}

/// A person's folder on this device: made, found and moved between its two places.
public struct LocalFolders: Sendable, Equatable {
  /// The names of its parts, and its possible places.
  public let structure: FolderStructureConfiguration
  /// The person's folder in the storage, which has the same name here.
  public let userID: String
  /// The place.
  public private(set) var place: FolderStructureConfiguration.Place

  /// Finds the folder, or creates it at the first place.
  ///
  /// - Parameters:
  ///   - structure: The names of its parts, and its possible places.
  ///   - userID: Its name: one part of a path.
  ///   - preferred: The last place; nil if unknown.
  /// - Throws: `StorageError`: `invalidSetting` for a name that is no part of a path, `notFound` when it is on a volume that is not there, `conflict` when there is one at both places and it is not known which
  ///   counts, `unwritable` when it cannot be made.
  public init(
    _ structure: FolderStructureConfiguration, userID: String,
    preferring preferred: FolderStructureConfiguration.Place? = nil
  ) throws(StorageError) {
    try self.init(finding: structure, userID: userID, preferring: preferred)
    try make()
  }

  /// Finds the folder without creating it.
  init(
    finding structure: FolderStructureConfiguration, userID: String,
    preferring preferred: FolderStructureConfiguration.Place?
  ) throws(StorageError) {
    guard try RemotePath(userID).segments.count == 1 else {
      throw StorageError(.invalidSetting, "\"\(userID)\" is no name for a person's folder: it has a slash")
    }
    for name in [structure.backups, structure.originals, structure.reworked, structure.inbound] {
      guard try RemotePath(name).segments.count == 1 else {
        throw StorageError(.invalidSetting, "\"\(name)\" is no name for a part of a person's folder: it has a slash")
      }
    }
    self.structure = structure
    self.userID = userID
    let found = FolderStructureConfiguration.Place.allCases.filter { place in
      structure.path(of: place).map { Self.isFolder("\($0)/\(userID)") } ?? false
    }
    if found.count == 2 {
      guard let preferred else {
        throw StorageError(
          .conflict,
          "there is a folder \(userID) in \(structure.main) and in \(structure.other ?? ""); move what is in one of them to the other, and remove it"
        )
      }
      place = preferred
    } else {
      place = found.first ?? (structure.path(of: preferred ?? .main) == nil ? .main : preferred ?? .main)
      if found.isEmpty, place == .other, let volume = structure.other, !Self.isFolder(volume) {
        throw StorageError(
          .notFound, "\(userID) is in \(volume), which is not there; connect that volume, and try again")
      }
    }
  }

  /// The person's folder.
  public var path: String { "\(structure.path(of: place) ?? structure.main)/\(userID)" }
  /// Original recordings.
  public var originals: String { "\(path)/\(structure.originals)" }
  /// Smaller versions.
  public var reworked: String { "\(path)/\(structure.reworked)" }
  /// Diff files from others that have been downloaded.
  public var inbound: String { "\(path)/\(structure.inbound)" }

  private static func isFolder(_ path: String) -> Bool {
    var isFolder = false
    return FileManager.default.fileExists(atPath: path, isDirectory: &isFolder) && isFolder
  }

  func make() throws(StorageError) {
    for folder in [originals, reworked, inbound] { try LocalFolder.makeFolder(folder) }
  }

  /// Moves the folder with all that is in it to the other place.
  ///
  /// If the places are on different volumes, the folder is copied first, and the original is removed after that. A stop
  /// in between leaves the original.
  ///
  /// - Throws: `StorageError`: `invalidSetting` where there is no such place, `alreadyExists` when it has a folder of that name, `unwritable`.
  public mutating func move(to place: FolderStructureConfiguration.Place) throws(StorageError) {
    guard place != self.place else { return }
    guard let parent = structure.path(of: place) else {
      throw StorageError(.invalidSetting, "there is no other place for the folder; name one in the settings")
    }
    let target = "\(parent)/\(userID)"
    guard !FileManager.default.fileExists(atPath: target) else {
      throw StorageError(.alreadyExists, "\(target) is there already, and is not replaced")
    }
    do {
      try FileManager.default.createDirectory(atPath: parent, withIntermediateDirectories: true)
      // Across volumes this copies everything before it removes anything.
      try FileManager.default.moveItem(atPath: path, toPath: target)
    } catch {
      throw StorageError(.unwritable, "\(path) cannot be moved to \(target): \(error)", cause: error)
    }
    self.place = place
  }
}

/// The names of the parts of a person's folder, and its two possible places on this device.
///
/// ```
/// <user-id>/backups/          states of the local database, in the storage only
/// <user-id>/originals/        original recordings
/// <user-id>/reworked/         smaller versions for viewing
/// <user-id>/inbound/          diff files from others
/// ```
public struct FolderStructureConfiguration: Sendable, Equatable {
  /// One of the two places.
  public enum Place: String, Sendable, CaseIterable {
    /// The app's own folder.
    case main
    /// Another one: a larger volume, or a folder that the person can look into.
    case other
  }

  /// The folder of this device that holds the person's folder.
  public var main: String
  /// The other place; nil if there is none.
  public var other: String?
  /// The name of the folder of backups in the storage.
  public var backups = "backups"
  /// The name of the folder for original recordings.
  public var originals = "originals"
  /// The name of the folder for smaller versions.
  public var reworked = "reworked"
  /// The name of the folder for diff files from others.
  public var inbound = "inbound"

  /// Names the places.
  public init(main: String, other: String? = nil) {
    self.main = main
    self.other = other
  }

  func path(of place: Place) -> String? { place == .main ? main : other }
}
