import Buckia
import BuckiaBackup
import BuckiaStorage

/// The configuration of a client: the database, the local folders, and the storages.
public struct BuckiaConfiguration: Sendable {
  /// The person's folder in the storage: one part of a path, such as `7f3a91`.
  public var userID: String
  /// The local database, with the home of the person: identity, contacts, and the list of sent files.
  public var database: DatabaseManager
  /// The folders of the person on this device.
  public var folders: FolderStructureConfiguration
  /// The storage.
  public var storage: StorageAccount
  /// The storage to use in a round in which the first cannot be reached; nil for none.
  public var fallback: StorageAccount?
  /// Further storages for the backup and the media. One that cannot be reached is reported, and stops nothing.
  public var mirrors: [StorageAccount] = []
  /// True if the person has several devices with this folder in the storage: then a diff stays in the inbound folder until all have applied it.
  public var hasSeveralDevices = false
  /// The destinations of diffs for others.
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

  /// Creates a configuration.
  public init(
    userID: String, database: DatabaseManager, folders: FolderStructureConfiguration, storage: StorageAccount
  ) {
    self.userID = userID
    self.database = database
    self.folders = folders
    self.storage = storage
  }
}

/// The type of a storage, and the credentials for it.
public enum StorageProviderType: Sendable {
  /// A folder of this machine.
  case localFolder(String)
  /// A bucket of a server that speaks S3's protocol: AWS, B2, R2, MinIO and others.
  case s3(S3Configuration, S3Credentials)
  /// A folder of a WebDAV server, such as Nextcloud. Without credentials it is anybody's.
  case webDAV(address: String, WebDAVCredentials? = nil)
  /// A folder of a WebDAV server that takes bearer tokens, such as of an OAuth server. They are renewed before they expire.
  case webDAVWithToken(address: String, TokenManager, TokenContext)
  /// A storage zone of Bunny.net.
  case bunny(BunnyConfiguration)
  /// A provider of the app's own.
  case custom(any StorageProvider)
}

/// One storage, and how it is reached.
public struct StorageAccount: Sendable {
  /// The type of the storage.
  public var type: StorageProviderType
  /// How the server is reached.
  public var http: HTTPSettings
  /// The permissions on this device, which can be narrower than those of the credentials; nil for everything.
  public var permissions: StoragePermissions?

  /// Takes a storage.
  public init(_ type: StorageProviderType, http: HTTPSettings = HTTPSettings()) {
    self.type = type
    self.http = http
  }

  /// Creates the provider of the storage. Nothing is sent yet.
  ///
  /// - Parameter transport: What brings requests to servers; nil for one of its own.
  /// - Throws: `StorageError` with `invalidSetting` when a setting is not in order.
  public func provider(transport: (any HTTPTransport)? = nil) throws(StorageError) -> any StorageProvider {
    let provider = try unrestricted(transport)
    guard let permissions else { return provider }
    return RestrictedStorage(provider, allowing: permissions)
  }

  private func unrestricted(_ transport: (any HTTPTransport)?) throws(StorageError) -> any StorageProvider {
    func connection() throws(StorageError) -> any HTTPTransport {
      if let transport { return transport }
      return try AsyncHTTPTransport(http)
    }
    switch type {
    case .localFolder(let path): return LocalFolder(path)
    case .custom(let provider): return provider
    case .s3(let configuration, let credentials):
      return try S3Bucket(configuration, credentials: credentials, transport: connection(), retries: http.retries)
    case .webDAV(let address, let credentials):
      return try WebDAVFolder(
        WebDAVConfiguration(address: address, credentials: credentials), transport: connection(), retries: http.retries)
    case .webDAVWithToken(let address, let tokens, let context):
      return try WebDAVFolder(
        WebDAVConfiguration(address: address), BearerAuthorization(tokens, for: context), transport: connection(),
        retries: http.retries)
    case .bunny(let configuration):
      return try BunnyStorage(configuration, transport: connection(), retries: http.retries)
    }
  }
}

/// How a round of sync works.
public struct SyncOptions: Sendable {
  /// The options for applying. The round decides which files are removed, regardless of these.
  public var apply = ApplyOptions()
  /// The most bytes of unapplied diffs on this device, because their senders are known only after the download. Diffs
  /// that do not fit stay in the storage until there is room, or a person approves them.
  public var downloadBytes: Int64 = 4 << 30
  /// The ids of diffs that a person lets through, however much they bring.
  public var allowed: Set<KSUID> = []
  /// True to back up the database. Applied diffs are removed from the inbound folder of the storage only after a
  /// backup, or at once if there is none.
  public var backsUp = true
  /// The keys that open the backups; empty for those of the last backup, if there are any.
  public var backupRecipients: [AgeRecipient] = []
  /// The backups that are kept, which is seen to once a day; nil for all.
  public var backupRetention: RetentionPolicy? = .usual
  /// The days after which a new backup is restored to a temporary file for a check, counted from the last good check; 0
  /// for each backup, nil for never. The whole backup is downloaded for it.
  public var backupDrillDays: Int?
  /// True if original recordings are uploaded.
  public var uploadsOriginals = true
  /// True if smaller versions are uploaded.
  public var uploadsReworked = true
  /// Patterns for the paths of media in their folder; empty for all. `*` stands for anything in a name, `**` across
  /// folders, `?` for one character.
  public var include: [String] = []
  /// No media whose path matches one of these patterns.
  public var exclude: [String] = []
  /// Patterns for the paths, in the person's folder, of media that are fetched from the storage if they are missing
  /// here: `reworked/**`. Empty for none.
  public var fetches: [String] = []
  /// True to fetch also files that this device had before, which otherwise count as removed by a person.
  public var fetchesRemoved = false
  /// True to delete media from the storage and its mirrors that this device has uploaded and no longer has.
  public var deletesOrphanedFiles = false
  /// The number of simultaneous transfers; nil for as many as the storage supports.
  public var concurrency: Int?
  /// True to only report the planned work.
  public var isDryRun = false
  /// True to check that uploaded files are still in the storage, instead of relying on the index.
  public var looksThroughStorage = false

  /// Makes options with the defaults.
  public init() {}
}
