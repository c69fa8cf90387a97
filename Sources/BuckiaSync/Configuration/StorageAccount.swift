import BuckiaStorage

/// Which storage.
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

/// Who asks a storage. Secrets are never printed.
public enum AuthenticationConfiguration: Sendable, CustomStringConvertible, CustomReflectable {
  /// Nobody in particular.
  case none
  /// A user's name and password, for WebDAV.
  case password(user: String, password: String)
  /// An access key and its secret, for S3.
  case accessKey(S3Credentials)
  /// The password of a storage zone, for Bunny.net.
  case zonePassword(String)
  /// A bearer token that is renewed before it expires, for WebDAV: of an OAuth server, say.
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
  /// Which storage.
  public var type: StorageProviderType
  /// Who asks.
  public var authentication: AuthenticationConfiguration
  /// How the server is reached.
  public var http: HTTPSettings
  /// What may be done with the storage from here, whatever the credentials would allow; nil for everything.
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

  /// Makes what works on the storage. Nothing is sent yet.
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
