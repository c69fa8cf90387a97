import Buckia
import BuckiaByteStreams
import BuckiaSync

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The file that `buckia sync` reads: who, which database, which storage, and how.
struct SyncFile {
  let configuration: BuckiaConfiguration
  let options: SyncOptions

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
      text = String(decoding: try Self.bytes(of: file, path), as: UTF8.self)
    } catch let error as ByteStreamError { throw StorageError(error) }
    let folder = (path as String).folderOfPath
    let root = try SettingsNode(text, file: path, environment: environment)
    let reader = Reader(folder: folder, isPrivate: isPrivate)
    configuration = try reader.configuration(root, home)
    options = try reader.options(root["options"])
    try root.requireNothingElse()
  }

  /// How large such a file may be, in bytes.
  private static let sizeLimit = 1 << 20

  private static func bytes(of file: PosixFile, _ path: String) throws -> [UInt8] {
    guard file.initialByteCount <= sizeLimit else {
      throw StorageError(.invalidSetting, "\(path): it is too large for a file of settings")
    }
    return try [UInt8](unsafeUninitializedCapacity: Int(file.initialByteCount) + 1) { buffer, count in
      count = try file.read(into: UnsafeMutableRawBufferPointer(buffer), at: 0)
    }
  }

  private struct Reader {
    let folder: String
    let isPrivate: Bool

    func path(_ node: SettingsNode) throws -> String {
      let text = try node.text()
      if text.hasPrefix("/") { return text }
      if text.hasPrefix("~/"), let home = ProcessInfo.processInfo.environment["HOME"] { return home + text.dropFirst() }
      return folder.isEmpty || folder == "." ? text : "\(folder)/\(text)"
    }

    /// A password or a key. One that stands in the file itself must be nobody else's to read.
    func secret(_ node: SettingsNode) throws -> String {
      guard isPrivate || !node.isLiteral else {
        throw node.error(
          "others can read this file, and a secret stands in it; make it `${NAME}` and set that variable, or let nobody else read the file (chmod 600)"
        )
      }
      return try node.text()
    }

    func configuration(_ root: SettingsNode, _ home: BuckiaHome) throws -> BuckiaConfiguration {
      var folders = FolderStructureConfiguration(
        main: try path(root.required("folder")), other: try root["other-folder"].map { try path($0) })
      if let names = root["names"] {
        folders.backup = try names["backup"]?.text() ?? folders.backup
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
      enum Kind { case folder, s3, webDAV, bunny }
      let kind = try node.required("type").choice(
        ["folder": Kind.folder, "s3": .s3, "webdav": .webDAV, "bunny": .bunny])
      var account: StorageAccount
      switch kind {
      case .folder: account = StorageAccount(.localFolder(try path(node.required("path"))))
      case .s3:
        var configuration = S3Configuration(
          endpoint: try node.required("endpoint").text(), region: try node["region"]?.text() ?? "us-east-1",
          bucket: try node.required("bucket").text())
        configuration.style =
          try node["style"]?.choice(["path": .path, "virtual-host": .virtualHost]) ?? configuration.style
        configuration.transferLimit = try node["transfers"].map { Int(try $0.count()) } ?? configuration.transferLimit
        configuration.honoursConditions = try node["conditions"]?.flag() ?? true
        account = StorageAccount(
          .s3(configuration),
          authentication: .accessKey(
            S3Credentials(
              accessKey: try node.required("access-key").text(), secret: try secret(node.required("secret-key")),
              sessionToken: try node["session-token"].map { try secret($0) })))
      case .webDAV:
        account = StorageAccount(.webDAV(address: try node.required("address").text()))
        if let user = node["user"] {
          account.authentication = .password(
            user: try user.text(), password: try secret(node.required("password")))
        }
      case .bunny:
        let regions = Dictionary(
          uniqueKeysWithValues: BunnyConfiguration.Region.allCases.map { ($0 == .frankfurt ? "de" : $0.rawValue, $0) })
        account = StorageAccount(
          .bunny(zone: try node.required("zone").text(), region: try node["region"]?.choice(regions) ?? .frankfurt),
          authentication: .zonePassword(try secret(node.required("password"))))
      }
      if let http = node["http"] { account.http = try self.http(http) }
      try node.requireNothingElse()
      return account
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
      if let policy = node["on-conflict"] {
        options.apply.conflicts = ConflictPolicies(
          try policy.choice(Dictionary(uniqueKeysWithValues: ConflictPolicy.allCases.map { ($0.rawValue, $0) })))
      }
      if let schema = node["schema"] {
        options.apply.schema = try schema.choice(
          Dictionary(uniqueKeysWithValues: SchemaMode.allCases.map { ($0.rawValue, $0) }))
      }
      if let trust = node["trust"] {
        options.apply.trust = try trust.choice(["any": .any, "known": .known])
      }
      options.apply.snapshot = try node["snapshot"].map { try path($0) }
      options.backsUp = try node["backup"]?.flag() ?? true
      options.uploadsOriginals = try node["originals"]?.flag() ?? true
      options.uploadsReworked = try node["reworked"]?.flag() ?? true
      options.include = try node["include"]?.texts() ?? []
      options.exclude = try node["exclude"]?.texts() ?? []
      options.deletesOrphanedFiles = try node["delete-orphaned"]?.flag() ?? false
      options.concurrency = try node["concurrency"].map { Int(try $0.count()) }
      try node.requireNothingElse()
      return options
    }
  }
}

extension String {
  /// The folder that a path lies in; empty for the current one.
  fileprivate var folderOfPath: String {
    guard let slash = utf8.lastIndex(of: UInt8(ascii: "/")) else { return "" }
    return slash == startIndex ? "/" : String(self[..<slash])
  }
}
