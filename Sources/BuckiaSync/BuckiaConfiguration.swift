import Buckia
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

/// The type of a storage.
public enum StorageProviderType: Sendable {
  /// A folder of this machine.
  case localFolder(String)
  /// A bucket of a server that speaks S3's protocol: AWS, B2, R2, MinIO and others.
  case s3(S3Configuration)
  /// A folder of a WebDAV server, such as Nextcloud. Its credentials come from the authentication.
  case webDAV(address: String)
  /// A storage zone of Bunny.net. Its password comes from the authentication.
  ///
  /// The endpoint is for a zone at another address than that of its region.
  case bunny(zone: String, region: BunnyConfiguration.Region, endpoint: String? = nil)
  /// A provider of the app's own.
  case custom(any StorageProvider)
}

/// The credentials for a storage. Secrets are never printed.
public enum AuthenticationConfiguration: Sendable, CustomStringConvertible, CustomReflectable {
  /// No authentication.
  case none
  /// A user's name and password, for WebDAV.
  case password(user: String, password: String)
  /// An access key and its secret, for S3.
  case accessKey(S3Credentials)
  /// The password of a storage zone, for Bunny.net.
  case zonePassword(String)
  /// A bearer token for WebDAV, such as of an OAuth server, which is renewed before it expires.
  case bearer(TokenManager, TokenContext)

  /// What kind of credentials.
  public var description: String {
    switch self {
    case .none: "no credentials"
    case .password(let user, _): "user \(user)"
    case .accessKey(let credentials): credentials.description
    case .zonePassword: "the password of a storage zone"
    case .bearer(_, let context): "a bearer token for \(context)"
    }
  }

  /// What `dump` shows: nothing secret.
  public var customMirror: Mirror { Mirror(self, children: ["kind": description]) }
}

/// One storage, and how it is reached.
public struct StorageAccount: Sendable {
  /// The type of the storage.
  public var type: StorageProviderType
  /// The credentials.
  public var authentication: AuthenticationConfiguration
  /// How the server is reached.
  public var http: HTTPSettings
  /// The permissions on this device, which can be narrower than those of the credentials; nil for everything.
  public var permissions: StoragePermissions?

  /// Takes a storage.
  public init(
    _ type: StorageProviderType, authentication: AuthenticationConfiguration = .none,
    http: HTTPSettings = HTTPSettings()
  ) {
    self.type = type
    self.authentication = authentication
    self.http = http
  }

  /// Creates the provider of the storage. Nothing is sent yet.
  ///
  /// - Parameter transport: What brings requests to servers; nil for one of its own.
  /// - Throws: `StorageError` with `invalidSetting` when the settings contradict each other.
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
    case .localFolder(let path):
      guard case .none = authentication else { throw mismatch("a folder of this machine takes no credentials") }
      return LocalFolder(path)
    case .custom(let provider): return provider
    case .s3(let configuration):
      guard case .accessKey(let credentials) = authentication else {
        throw mismatch("a bucket wants an access key and its secret")
      }
      return try S3Bucket(
        configuration, credentials: credentials, transport: connection(), retries: http.retries)
    case .webDAV(let address):
      var configuration = WebDAVConfiguration(address: address)
      switch authentication {
      case .none: break
      case .password(let user, let password):
        configuration.credentials = WebDAVCredentials(user: user, password: password)
      case .bearer(let tokens, let context):
        return try WebDAVFolder(
          configuration, BearerAuthorization(tokens, for: context), transport: connection(), retries: http.retries)
      default: throw mismatch("a WebDAV server wants a user's name and a password, or a bearer token")
      }
      return try WebDAVFolder(configuration, transport: connection(), retries: http.retries)
    case .bunny(let zone, let region, let endpoint):
      guard case .zonePassword(let password) = authentication else {
        throw mismatch("a storage zone wants its password")
      }
      var configuration = BunnyConfiguration(zone: zone, region: region, accessKey: password)
      if let endpoint { configuration.endpoint = endpoint }
      return try BunnyStorage(configuration, transport: connection(), retries: http.retries)
    }
  }

  private func mismatch(_ wish: String) -> StorageError {
    StorageError(.invalidSetting, "\(wish), and the settings have \(authentication)")
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
