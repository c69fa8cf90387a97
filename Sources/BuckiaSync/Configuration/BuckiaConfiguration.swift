import Buckia
import BuckiaStorage

/// What a client works with: whose data, where it is here, and where it goes.
public struct BuckiaConfiguration: Sendable {
  /// The person's folder in the storage: one part of a path, such as `7f3a91`.
  public var userID: String
  /// The local database, with the home of the person: identity, contacts, and what was sent where.
  public var database: DatabaseManager
  /// Where the person's files are on this device.
  public var folders: FolderStructureConfiguration
  /// The storage.
  public var storage: StorageAccount
  /// Takes the place of the storage in a round in which that cannot be reached; nil for none.
  public var fallback: StorageAccount?
  /// Get what the storage gets, too: the backup and the media. One that cannot be reached is reported, and stops nothing.
  public var mirrors: [StorageAccount] = []
  /// Whether the person has several devices with this folder in the storage: then a diff stays in the inbound folder until all have applied it.
  public var hasSeveralDevices = false
  /// Where diffs for others go.
  public var deliveries: [Delivery] = []

  /// Diffs for one person.
  public struct Delivery: Sendable {
    /// The folder of this device in which `share` and `diff` leave files for them.
    public var folder: String
    /// Their folder in the storage.
    public var userID: String
    /// Their storage; nil for one's own.
    public var storage: StorageAccount?

    /// Describes a way.
    public init(from folder: String, to userID: String, storage: StorageAccount? = nil) {
      self.folder = folder
      self.userID = userID
      self.storage = storage
    }
  }

  /// Describes what a client works with.
  public init(
    userID: String, database: DatabaseManager, folders: FolderStructureConfiguration, storage: StorageAccount
  ) {
    self.userID = userID
    self.database = database
    self.folders = folders
    self.storage = storage
  }
}
