import Buckia
import BuckiaSync
import Foundation
import TestSupport
import Testing

@testable import BuckiaCommand

@Suite("Files of settings for sync")
struct SyncFileTests {
  private let folder: TemporaryFolder
  private let home: BuckiaHome

  init() throws {
    folder = try TemporaryFolder()
    home = BuckiaHome(path: folder.file("home"))
  }

  /// Values for all variables that the documents name.
  private static let environment = [
    "BUCKIA_SECRET_KEY", "BUCKIA_APPLICATION_KEY", "BUCKIA_ZONE_PASSWORD", "BUCKIA_APP_PASSWORD", "BUCKIA_TOKEN", "KEY",
    "PASSWORD", "ZONE_PASSWORD",
  ].reduce(into: [:]) { $0[$1] = "word" }

  private func read(_ text: String) throws -> SyncFile {
    try folder.write(Array(text.utf8), to: "buckia.yaml")
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: folder.file("buckia.yaml"))
    return try SyncFile(folder.file("buckia.yaml"), home: home, environment: Self.environment)
  }

  /// The YAML blocks of an article.
  private static func blocks(of article: String) throws -> [String] {
    let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent()
    let text = try String(
      contentsOf: root.appendingPathComponent("Sources/Buckia/Buckia.docc/\(article).md"), encoding: .utf8)
    return text.components(separatedBy: "```yaml\n").dropFirst().compactMap { $0.components(separatedBy: "```").first }
  }

  @Test("Each settings file in the articles can be read, and there is one for each storage")
  func articles() throws {
    let complete = try Self.blocks(of: "SyncSettings")
    var kinds: Set<String> = []
    for text in try complete + Self.blocks(of: "Syncing") {
      let file = try read(text)
      #expect(file.configuration.database.path == folder.file("notes.sqlite"))
      // Everything that can be checked without a server is valid, except certificates that are not here.
      if !text.contains("authorities") { _ = try file.configuration.storage.provider() }
    }
    for text in complete {
      kinds.formUnion(text.matches(of: /type: ([a-z0-9]+)/).map { String($0.output.1) })
    }
    #expect(kinds == ["folder", "s3", "b2", "bunny", "webdav"])
  }

  private func storage(_ settings: String) throws -> StorageAccount {
    try read("user: a\ndatabase: d\nfolder: f\nstorage: \(settings)").configuration.storage
  }

  @Test("Settings exist for B2, bearer tokens, sign-ins, a Bunny endpoint and permissions")
  func settings() throws {
    let b2 = try storage("{ type: b2, region: us-west-004, bucket: b, key-id: k, application-key: x }")
    guard case .s3(let bucket, let credentials) = b2.type else {
      Issue.record("\(b2)")
      return
    }
    #expect(bucket.endpoint == "https://s3.us-west-004.backblazeb2.com")
    #expect(credentials == S3Credentials(accessKey: "k", secret: "x"))
    let bunny = try storage("{ type: bunny, zone: z, endpoint: 'https://storage.example', password: x }")
    #expect(try bunny.provider().name == "https://storage.example/z")
    for way in ["token: x", "sign-in: { issuer: 'https://login.example', client: c }"] {
      guard case .webDAVWithToken = try storage("{ type: webdav, address: 'https://dav.example', \(way) }").type else {
        Issue.record("\(way)")
        return
      }
    }
    let permissions = try storage("{ type: folder, path: p, permissions: [{ allow: [read, write], in: anna }] }")
      .permissions
    #expect(try permissions?.allow([.read, .write], RemotePath("anna/x")) == true)
    #expect(try permissions?.allow(.delete, RemotePath("anna/x")) == false)
    #expect(try permissions?.allow(.read, RemotePath("ben/x")) == false)
    let limited = try read(
      "user: a\ndatabase: d\nfolder: f\nstorage: { type: folder, path: p }\noptions: { sender-limit: 2M, download-limit: 3G, memory: 64 }"
    ).options
    #expect(limited.apply.limits.senderBytes == 2 << 20)
    #expect(limited.downloadBytes == 3 << 30)
    #expect(limited.apply.memoryLimit == 64 << 20)
  }

  @Test("Ignored columns and columns that match rows are written as for apply")
  func columns() throws {
    let start = "user: a\ndatabase: d\nfolder: f\nstorage: { type: folder, path: p }\noptions:"
    let options = try read("\(start) { ignore: [note.seen, note.read], match: ['tag(name, kind)'] }").options.apply
    #expect(options.ignoredColumns == ["note": ["seen", "read"]])
    #expect(options.matches == ["tag": ["name", "kind"]])
    let policies = try read("\(start) { on-conflict: [latest, tag=abort, note.text=take-incoming] }").options.apply
    #expect(
      policies.conflicts == [.otherwise: .latest, .table("tag"): .abort, .column("text", of: "note"): .takeIncoming])
    #expect(try read("\(start) { on-conflict: abort }").options.apply.conflicts == .abort)
    #expect(throws: StorageError.self) { try read("\(start) { on-conflict: [note=newest] }") }
    #expect(throws: StorageError.self) { try read("\(start) { ignore: [note] }") }
  }

  @Test(
    "Contradictory settings are reported",
    arguments: [
      ("{ type: webdav, address: 'https://d.example', user: a, password: b, token: c }", "user and token"),
      ("{ type: folder, path: p, permissions: [{ allow: [fly] }] }", "it is one of delete, list, read, write"),
      ("{ type: folder, path: p, permissions: [{ allow: [read], in: ../x }] }", "leads to another folder"),
      (
        "{ type: webdav, address: 'https://d.example', sign-in: { issuer: 'http://login.example', client: c } }",
        "https://"
      ),
      ("{ type: b2, bucket: b, key-id: k, application-key: x }", "`region` is missing"),
    ])
  func contradictions(settings: String, told: String) throws {
    let error = try #require(throws: (any Error).self) { try storage(settings) }
    #expect("\(error)".contains(told), "\(error)")
  }
}
