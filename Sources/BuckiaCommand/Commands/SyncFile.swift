import Buckia
import BuckiaSync

/// The settings file of `buckia sync`: the person, the database, the storage, and the options.
struct SyncFile {
  let configuration: BuckiaConfiguration
  let options: SyncOptions
  /// The servers for signing in, with the stores of their tokens.
  let signIns: [ServerSignIn]

  /// Reads a file. Paths in it are from its folder on.
  ///
  /// - Parameters:
  ///   - path: The file.
  ///   - home: What belongs to the person.
  ///   - environment: The variables that `${NAME}` stands for.
  /// - Throws: `StorageError` when it cannot be read, or something in it is not in order; nothing secret is in the message.
  init(_ path: String, home: BuckiaHome, environment: [String: String]) throws {
    let text: String
    let isPrivate: Bool
    do {
      let file = try PosixFile(reading: path)
      isPrivate = try file.privacy() == .isPrivate
      guard let bytes = try file.contents(limit: Self.sizeLimit) else {
        throw StorageError(.invalidSetting, "\(path): it is too large for a file of settings")
      }
      text = String(decoding: bytes, as: UTF8.self)
    } catch let error as ByteStreamError { throw StorageError(error) }
    let folder = path.folderOfPath
    let root = try SettingsNode(text, file: path, environment: environment)
    let reader = Reader(folder: folder, isPrivate: isPrivate, home: home)
    configuration = try reader.configuration(root)
    options = try reader.options(root["options"])
    signIns = reader.signIns
    try root.requireNothingElse()
  }

  /// How large such a file may be, in bytes.
  private static let sizeLimit = 1 << 20

  private final class Reader {
    private let folder: String
    private let isPrivate: Bool
    private let home: BuckiaHome
    private(set) var signIns: [ServerSignIn] = []

    init(folder: String, isPrivate: Bool, home: BuckiaHome) {
      self.folder = folder
      self.isPrivate = isPrivate
      self.home = home
    }

    func path(_ node: SettingsNode) throws -> String {
      let text = try node.text()
      if text.hasPrefix("/") { return text }
      if text.hasPrefix("~/"), let home = ProcessInfo.processInfo.environment["HOME"] { return home + text.dropFirst() }
      return folder.isEmpty || folder == "." ? text : "\(folder)/\(text)"
    }

    /// A password or a key. A file that contains one must not be readable by others.
    func secret(_ node: SettingsNode) throws -> String {
      guard isPrivate || !node.isLiteral else {
        throw node.error(
          "others can read this file, and a secret stands in it; make it `${NAME}` and set that variable, or make the file readable only for you (chmod 600)"
        )
      }
      return try node.text()
    }

    func configuration(_ root: SettingsNode) throws -> BuckiaConfiguration {
      var folders = FolderStructureConfiguration(
        main: try path(root.required("folder")), other: try root["other-folder"].map { try path($0) })
      if let names = root["names"] {
        folders.backups = try names["backups"]?.text() ?? folders.backups
        folders.originals = try names["originals"]?.text() ?? folders.originals
        folders.reworked = try names["reworked"]?.text() ?? folders.reworked
        folders.inbound = try names["inbound"]?.text() ?? folders.inbound
        try names.requireNothingElse()
      }
      var configuration = BuckiaConfiguration(
        userID: try root.required("user").text(),
        database: DatabaseManager(try path(root.required("database")), home: home),
        folders: folders, storage: try account(root.required("storage")))
      configuration.fallback = try root["fallback"].map { try account($0) }
      configuration.mirrors = try root["mirrors"]?.list().map { try account($0) } ?? []
      configuration.hasSeveralDevices = try root["several-devices"]?.flag() ?? false
      configuration.deliveries =
        try root["deliver"]?.list().map { node in
          let delivery = BuckiaConfiguration.Delivery(
            from: try path(node.required("from")), to: try node.required("to").text(),
            storage: try node["storage"].map { try account($0) })
          try node.requireNothingElse()
          return delivery
        } ?? []
      return configuration
    }

    func account(_ node: SettingsNode) throws -> StorageAccount {
      let type = try node.required("type").choice(
        ["folder": folder, "s3": s3, "b2": b2, "webdav": webDAV, "bunny": bunny])
      let http = try node["http"].map { try self.http($0) } ?? HTTPSettings()
      var account = StorageAccount(try type(node, http), http: http)
      account.permissions = try node["permissions"].map { try permissions($0) }
      try node.requireNothingElse()
      return account
    }

    private func folder(_ node: SettingsNode, _ http: HTTPSettings) throws -> StorageProviderType {
      .localFolder(try path(node.required("path")))
    }

    private func s3(_ node: SettingsNode, _ http: HTTPSettings) throws -> StorageProviderType {
      var configuration = S3Configuration(
        endpoint: try node.required("endpoint").text(), region: try node["region"]?.text() ?? "us-east-1",
        bucket: try node.required("bucket").text())
      configuration.style =
        try node["style"]?.choice(["path": .path, "virtual-host": .virtualHost]) ?? configuration.style
      configuration.transferLimit = try node["transfers"].map { Int(try $0.count()) } ?? configuration.transferLimit
      configuration.honoursConditions = try node["conditions"]?.flag() ?? true
      return .s3(
        configuration,
        S3Credentials(
          accessKey: try node.required("access-key").text(), secret: try secret(node.required("secret-key")),
          sessionToken: try node["session-token"].map { try secret($0) }))
    }

    private func b2(_ node: SettingsNode, _ http: HTTPSettings) throws -> StorageProviderType {
      let region = try node.required("region").text()
      var configuration = S3Configuration(
        endpoint: try node["endpoint"]?.text() ?? "https://s3.\(region).backblazeb2.com", region: region,
        bucket: try node.required("bucket").text())
      configuration.transferLimit = try node["transfers"].map { Int(try $0.count()) } ?? configuration.transferLimit
      return .s3(
        configuration,
        S3Credentials(
          accessKey: try node.required("key-id").text(), secret: try secret(node.required("application-key"))))
    }

    private func bunny(_ node: SettingsNode, _ http: HTTPSettings) throws -> StorageProviderType {
      let regions = Dictionary(
        uniqueKeysWithValues: BunnyConfiguration.Region.allCases.map { ($0 == .frankfurt ? "de" : $0.rawValue, $0) })
      var configuration = BunnyConfiguration(
        zone: try node.required("zone").text(), region: try node["region"]?.choice(regions) ?? .frankfurt,
        accessKey: try secret(node.required("password")))
      if let endpoint = try node["endpoint"]?.text() { configuration.endpoint = endpoint }
      return .bunny(configuration)
    }

    /// The permissions for a storage: a list of actions, each list with its folder.
    private func permissions(_ node: SettingsNode) throws -> StoragePermissions {
      let actions: [String: StorageActions] = ["list": .list, "read": .read, "write": .write, "delete": .delete]
      return StoragePermissions(
        try node.list().map { rule in
          let allowed = try rule.required("allow").list().reduce(StorageActions()) { $0.union(try $1.choice(actions)) }
          let place = try rule["in"].map { StoragePermissions.Place.folder(try RemotePath($0.text())) }
          try rule.requireNothingElse()
          return StoragePermissions.Rule(allowed, in: place ?? .everywhere)
        })
    }

    /// A WebDAV server with a password, a token that stands here, or one that a sign-in brings and renews.
    private func webDAV(_ node: SettingsNode, _ http: HTTPSettings) throws -> StorageProviderType {
      let address = try node.required("address").text()
      let ways = ["user", "token", "sign-in"].filter { node[$0] != nil }
      guard ways.count < 2 else { throw node.error("it has \(ways.joined(separator: " and ")); one of them is wanted") }
      if let user = node["user"] {
        let password = try secret(node.required("password"))
        return .webDAV(address: address, WebDAVCredentials(user: try user.text(), password: password))
      }
      if let token = node["token"] {
        let store = MemoryTokenStore([.storage: AccessToken(SecretText(try secret(token)))])
        return .webDAVWithToken(address: address, TokenManager(store: store), .storage)
      }
      guard let signIn = node["sign-in"] else { return .webDAV(address: address) }
      var configuration = OAuthConfiguration(
        issuer: try signIn.required("issuer").text(), clientID: try signIn.required("client").text())
      configuration.clientSecret = try signIn["client-secret"].map { SecretText(try secret($0)) }
      configuration.scopes = try signIn["scopes"]?.texts() ?? configuration.scopes
      configuration.resource = try signIn["resource"]?.text()
      try signIn.requireNothingElse()
      let server = try ServerSignIn(configuration, http, home: home)
      signIns.append(server)
      return .webDAVWithToken(address: address, server.tokens, server.context)
    }

    func http(_ node: SettingsNode) throws -> HTTPSettings {
      var settings = HTTPSettings()
      settings.connectSeconds = try node["connect-timeout"]?.seconds() ?? settings.connectSeconds
      settings.idleSeconds = try node["idle-timeout"]?.seconds() ?? settings.idleSeconds
      settings.additionalAuthorities = try node["authorities"]?.list().map { try path($0) } ?? []
      settings.pinnedKeys = try node["pinned-keys"]?.texts() ?? []
      settings.bytesPerSecond = try node["bytes-per-second"]?.count()
      settings.retries.attempts = try node["attempts"].map { Int(try $0.count()) } ?? settings.retries.attempts
      if let proxy = node["proxy"] {
        let text = try proxy.text()
        let parts = text.split(separator: ":")
        if text == "none" {
          settings.proxy = .none
        } else if text == "environment" {
          settings.proxy = .environment
        } else if parts.count == 2, let port = Int(parts[1]) {
          settings.proxy = .server(host: String(parts[0]), port: port)
        } else {
          throw proxy.error("it is `none`, `environment`, or a host and a port, such as proxy.example:3128")
        }
      }
      try node.requireNothingElse()
      return settings
    }

    func options(_ node: SettingsNode?) throws -> SyncOptions {
      var options = SyncOptions()
      guard let node else { return options }
      if let policies = node["on-conflict"] {
        options.apply.conflicts = ConflictPolicies(
          try policies.arguments(PolicyChoice.self, "POLICY, TABLE=POLICY or TABLE.COLUMN=POLICY"))
      }
      let ignored = try node["ignore"]?.arguments(ColumnChoice.self, "TABLE.COLUMN") ?? []
      options.apply.ignoredColumns = ignored.reduce(into: [:]) { $0[$1.table, default: []].append($1.column) }
      let matches = try node["match"]?.arguments(MatchChoice.self, "TABLE(COLUMNS)") ?? []
      options.apply.matches = matches.reduce(into: [:]) { $0[$1.table] = $1.columns }
      options.apply.schema = try node["schema"]?.choice(SchemaMode.self) ?? options.apply.schema
      options.apply.trust = try node["trust"]?.choice(TrustMode.self) ?? options.apply.trust
      options.apply.snapshot = try node["snapshot"].map { try path($0) }
      options.apply.memoryLimit = try node["memory"].map { Int(try $0.size()) } ?? options.apply.memoryLimit
      options.apply.limits.senderBytes = try node["sender-limit"]?.size() ?? options.apply.limits.senderBytes
      options.downloadBytes = try node["download-limit"]?.size() ?? options.downloadBytes
      options.backsUp = try node["backup"]?.flag() ?? true
      let recipients = Recipients(in: home)
      options.backupRecipients = try node["backup-to"]?.texts().map { try recipients.key($0) } ?? []
      if let rules = try node["backup-keep"]?.text() {
        options.backupRetention = rules == "all" ? nil : try RetentionPolicy(rules)
      }
      options.backupDrillDays = try node["backup-drill"].map { Int(try $0.count()) }
      options.uploadsOriginals = try node["originals"]?.flag() ?? true
      options.uploadsReworked = try node["reworked"]?.flag() ?? true
      options.include = try node["include"]?.texts() ?? []
      options.exclude = try node["exclude"]?.texts() ?? []
      options.fetches = try node["fetch"]?.texts() ?? []
      options.deletesOrphanedFiles = try node["delete-orphaned"]?.flag() ?? false
      options.concurrency = try node["concurrency"].map { Int(try $0.count()) }
      try node.requireNothingElse()
      return options
    }
  }
}

/// A server at which the person signs in for a storage.
struct ServerSignIn {
  private let issuer: String
  private let client: OAuthClient
  /// What keeps and renews the tokens, in a file of the person's home.
  let tokens: TokenManager
  /// The context of the tokens.
  let context: TokenContext

  init(_ configuration: OAuthConfiguration, _ http: HTTPSettings, home: BuckiaHome) throws {
    client = try OAuthClient(configuration, transport: AsyncHTTPTransport(http))
    context = TokenContext(rawValue: "\(configuration.clientID) at \(configuration.issuer)")
    tokens = TokenManager(store: FileTokenStore(path: try home.tokensPath()))
    issuer = configuration.issuer
  }

  /// Lets the tokens be renewed; to be called before a round.
  func prepare() async { await tokens.setSources([client.source], for: context) }

  /// Signs the person in: with a code that they type on any device, or with the browser of this one.
  ///
  /// - Parameter show: Shows instructions.
  func run(_ show: @escaping @Sendable (String) -> Void) throws {
    let (client, tokens, context, issuer) = (client, tokens, context, issuer)
    try waitForTask {
      let found: SignIn
      do {
        let begun = try await client.beginDeviceSignIn()
        show("To sign in at \(issuer), open \(begun.address) and enter the code \(begun.code).")
        found = try await client.finish(begun)
      } catch let error as StorageError where error.code == .unsupported {
        found = try await client.signIn { show("To sign in at \(issuer), open \($0)") }
      }
      try await tokens.save(found.token, for: context)
    }
  }
}
