import Buckia
import Foundation
import ServerTestSupport
import TestSupport
import Testing

@Suite("buckia sync")
struct SyncCommandTests {
  private let bench: Workbench

  init() throws {
    bench = try Workbench()
    try TestDatabases.run("CREATE TABLE note(id INTEGER PRIMARY KEY, text TEXT)", on: bench.path("notes.sqlite"))
    try write(
      """
      user: anna
      database: notes.sqlite
      folder: files
      storage: { type: folder, path: storage }
      deliver:
        - { from: outbox, to: ben }
      """)
    try FileManager.default.createDirectory(atPath: bench.path("outbox"), withIntermediateDirectories: true)
  }

  private func write(_ text: String, permissions: Int = 0o600) throws {
    try Data(text.utf8).write(to: URL(fileURLWithPath: bench.path("buckia.yaml")))
    try FileManager.default.setAttributes([.posixPermissions: permissions], ofItemAtPath: bench.path("buckia.yaml"))
  }

  private func sync(_ arguments: String..., environment: [String: String] = [:]) throws -> Workbench.Outcome {
    var environment = environment
    environment["BUCKIA_HOME"] = bench.path("home")
    return try bench.buckia(["sync"] + arguments, environment: environment)
  }

  @Test("A round reports what it did, and the next has nothing to do")
  func round() throws {
    let plan = try sync("--dry-run")
    #expect(plan.status == 0)
    #expect(plan.output.contains("would be made"))
    #expect(!FileManager.default.fileExists(atPath: bench.path("storage")))
    let first = try sync()
    #expect(first.status == 0, "\(first.diagnostics)")
    #expect(first.output.contains("uploaded"))
    #expect(FileManager.default.fileExists(atPath: bench.path("storage/anna/backups")))
    let second = try sync()
    #expect(second.output.hasPrefix("Nothing to do at "))
    let json = try sync("--json").json
    #expect(json["version"] as? Int == 1)
    #expect((json["uploaded"] as? [Any])?.isEmpty == true)
    #expect((json["failures"] as? [Any])?.isEmpty == true)
  }

  @Test("The recipient gets what the sender sends, and a partial failure sets the exit code")
  func exchange() throws {
    try FileManager.default.copyItem(atPath: bench.path("notes.sqlite"), toPath: bench.path("before.sqlite"))
    try TestDatabases.run("INSERT INTO note VALUES (1,'x')", on: bench.path("notes.sqlite"))
    let home = ["BUCKIA_HOME": bench.path("home")]
    #expect(try bench.buckia(["diff", "before.sqlite", "notes.sqlite", "-o", "outbox"], environment: home).status == 0)
    #expect(try (sync("--json").json["delivered"] as? [Any])?.count == 1)
    try write("{ user: ben, database: before.sqlite, folder: files, storage: { type: folder, path: storage } }")
    let received = try bench.buckia(["sync", "--json"], environment: ["BUCKIA_HOME": bench.path("ben's home")]).json
    #expect((received["dropped"] as? [Any])?.count == 1)
    #expect(try TestDatabases.rows("SELECT count(*) FROM note", on: bench.path("before.sqlite")) == ["1"])
    let bad = bench.path("storage/ben/inbound/3MOszSZz3uTLnb7JQCqVqYrLuuY.bdiff")
    try Data("no diff".utf8).write(to: URL(fileURLWithPath: bad))
    #expect(try bench.buckia(["sync"], environment: ["BUCKIA_HOME": bench.path("ben's home")]).status == 1)
  }

  @Test(
    "An error in the file is reported with its line",
    arguments: [
      ("", "no settings"), ("- a", "no settings"), ("user: [", "line"), ("user: anna\nuser: ben", "twice"),
      ("user: anna", "`folder` is missing"),
      (
        "user: a\nfolder: f\ndatabase: d\nstorage: { type: folder, path: s }\ntypo: 1",
        "line 5: there is no setting `typo`"
      ),
      (
        "user: a\nfolder: f\ndatabase: d\nstorage:\n  type: ftp",
        "`storage.type`: it is one of b2, bunny, folder, s3, webdav"
      ),
      ("user: a\nfolder: f\ndatabase: typo.sqlite\nstorage: { type: folder, path: s }", "typo.sqlite"),
      (
        "user: a\nfolder: f\ndatabase: notes.sqlite\nstorage: { type: webdav, address: 'https://d.example', http: { authorities: [typo.pem] } }",
        "typo.pem"
      ),
      ("user: a/b\nfolder: f\ndatabase: d\nstorage: { type: folder, path: s }", "it has a slash"),
      ("user: ../x\nfolder: f\ndatabase: d\nstorage: { type: folder, path: s }", "leads to another folder"),
      (
        "user: a\nfolder: f\ndatabase: d\nstorage: { type: folder, path: s }\noptions: { backup: maybe }",
        "`true` or `false`"
      ),
      (
        "user: a\nfolder: f\ndatabase: d\nstorage: { type: bunny, zone: z, password: '${NO_SUCH_VARIABLE}' }",
        "no variable NO_SUCH_VARIABLE"
      ),
    ])
  func mistakes(text: String, expected: String) throws {
    try write(text)
    let outcome = try sync()
    #expect(outcome.status == 1)
    #expect(
      outcome.diagnostics.replacing("\n", with: " ").replacing("  ", with: " ").contains(expected),
      "\(outcome.diagnostics)")
  }

  @Test("Secrets are never printed, and a file that others can read must not contain any")
  func secrets() throws {
    let settings = """
      user: anna
      database: notes.sqlite
      folder: files
      storage:
        type: s3
        endpoint: http://127.0.0.1:1
        bucket: b
        access-key: AKIDEXAMPLE
        secret-key: SECRET
        http: { connect-timeout: 1, attempts: 1 }
      """
    try write(settings.replacing("SECRET", with: "correct-horse"), permissions: 0o644)
    let open = try sync()
    #expect(open.status == 1)
    #expect(open.diagnostics.contains("chmod 600"))
    try write(settings.replacing("SECRET", with: "${KEY}"), permissions: 0o644)
    for arguments in [[], ["--json"], ["--full"]] {
      let outcome = try bench.buckia(
        ["sync"] + arguments, environment: ["KEY": "correct-horse", "BUCKIA_HOME": bench.path("home")])
      #expect(outcome.status == 1)
      #expect(!outcome.output.contains("correct-horse"))
      #expect(!outcome.diagnostics.contains("correct-horse"))
      #expect((outcome.output + outcome.diagnostics).contains("127.0.0.1:1"))
    }
  }

  /// A storage whose server receives a secret and sends it back.
  enum EchoingStorage: String, CaseIterable, Sendable {
    case webdav, s3

    /// The settings; the environment has the secret.
    func settings(_ address: String) -> String {
      switch self {
      case .webdav: "type: webdav\n  address: \(address)/dav\n  user: anna\n  password: ${KEY}"
      case .s3:
        """
        type: s3
          endpoint: \(address)
          bucket: b
          access-key: AKIDEXAMPLE
          secret-key: ${KEY}
          session-token: ${KEY}
        """
      }
    }
  }

  @Test(
    "A password or session token that the server sends back is never printed",
    arguments: EchoingStorage.allCases, [401, 403, 503])
  func echoedSecrets(storage: EchoingStorage, status: Int) async throws {
    let secret = "correcthorse7"
    let inHeader = Data("anna:\(secret)".utf8).base64EncodedString()
    let server = try await FaultServer { request in
      let fields = ["X-Amz-Security-Token", "Authorization"].compactMap { request.header($0) }.joined(separator: " ")
      let said = "\(secret) \(fields) is wrong"
      return .answer(
        status, body: Array("<Error><Code>AccessDenied</Code><Message>\(said)</Message></Error>".utf8))
    }
    try write(
      """
      user: anna
      database: notes.sqlite
      folder: files
      storage:
        \(storage.settings(server.address))
        http: { attempts: 1, proxy: none }
      """)
    for arguments in [[], ["--json"], ["--full"]] {
      server.forgetRequests()
      let outcome = try bench.buckia(
        ["sync"] + arguments, environment: ["KEY": secret, "BUCKIA_HOME": bench.path("home")])
      #expect(outcome.status == 1)
      #expect(!server.requests.isEmpty, "\(outcome.diagnostics)")
      for text in [outcome.output, outcome.diagnostics] {
        #expect(!text.contains(secret), "\(text)")
        #expect(!text.contains(inHeader), "\(text)")
      }
      #expect((outcome.output + outcome.diagnostics).contains("\(status)"))
    }
  }

  @Test("The password of a storage zone is never printed when its server cannot be reached")
  func zonePassword() async throws {
    let proxy = try await FaultServer { _ in .answer(502, body: Array("correcthorse7".utf8)) }
    try write(
      """
      user: anna
      database: notes.sqlite
      folder: files
      storage:
        type: bunny
        zone: anna
        password: ${KEY}
        http: { attempts: 1, proxy: "127.0.0.1:\(proxy.port)" }
      """)
    for arguments in [[], ["--json"], ["--full"]] {
      let outcome = try bench.buckia(
        ["sync"] + arguments, environment: ["KEY": "correcthorse7", "BUCKIA_HOME": bench.path("home")])
      #expect(outcome.status == 1)
      #expect(!outcome.output.contains("correcthorse7"))
      #expect(!outcome.diagnostics.contains("correcthorse7"))
      #expect((outcome.output + outcome.diagnostics).contains("storage.bunnycdn.com"))
    }
    #expect(proxy.requests.allSatisfy { $0.method == "CONNECT" && $0.header("AccessKey") == nil })
  }

  @Test("Killed at any point, sync continues where it stopped, and nothing is lost or applied twice")
  func killed() throws {
    let home = ["BUCKIA_HOME": bench.path("home")]
    var before = "before.sqlite"
    try FileManager.default.copyItem(atPath: bench.path("notes.sqlite"), toPath: bench.path(before))
    try FileManager.default.copyItem(atPath: bench.path("notes.sqlite"), toPath: bench.path("ben.sqlite"))
    for number in 1...6 {
      try TestDatabases.run(
        "INSERT INTO note VALUES (\(number), hex(randomblob(20000)))", on: bench.path("notes.sqlite"))
      #expect(try bench.buckia(["diff", before, "notes.sqlite", "-o", "outbox"], environment: home).status == 0)
      before = "before \(number).sqlite"
      try FileManager.default.copyItem(atPath: bench.path("notes.sqlite"), toPath: bench.path(before))
    }
    try FileManager.default.createDirectory(
      atPath: bench.path("files/ben/originals"), withIntermediateDirectories: true)
    try Data(repeating: 7, count: 300_000).write(to: URL(fileURLWithPath: bench.path("files/ben/originals/film.mp4")))
    let settings = "user: ben\ndatabase: ben.sqlite\nfolder: files\nstorage: { type: folder, path: storage }\n"
    try Data(settings.utf8).write(to: URL(fileURLWithPath: bench.path("ben.yaml")))
    for milliseconds in [3, 8, 14, 21, 30, 45, 70, 100] {
      for (config, home) in [("buckia.yaml", "home"), ("ben.yaml", "ben's home")] {
        try bench.killed(
          ["sync", "--config", config], environment: ["BUCKIA_HOME": bench.path(home)], after: milliseconds)
      }
    }
    #expect(try sync().status == 0)
    for _ in 0..<2 {
      let outcome = try bench.buckia(
        ["sync", "--config", "ben.yaml"], environment: ["BUCKIA_HOME": bench.path("ben's home")])
      #expect(outcome.status == 0, "\(outcome.diagnostics)")
    }
    let rows = "SELECT id, text FROM note ORDER BY id"
    #expect(
      try TestDatabases.rows(rows, on: bench.path("ben.sqlite"))
        == TestDatabases.rows(rows, on: bench.path("notes.sqlite")))
    #expect(try bench.names(in: "storage/ben/inbound").isEmpty)
    #expect(try bench.names(in: "outbox").isEmpty)
    #expect(try bench.names(in: "storage/ben/originals") == ["film.mp4"])
    let applied = try TestDatabases.rows(
      "SELECT count(*) FROM buckia_ledger WHERE state = 'applied'", on: bench.path("ben.sqlite"))
    #expect(applied == ["6"])
  }

  @Test("An emptied folder counts as not mounted until a person adopts it")
  func emptied() throws {
    #expect(try sync().status == 0)
    try FileManager.default.removeItem(atPath: bench.path("storage"))
    let outcome = try sync()
    #expect(outcome.status == 1)
    #expect(outcome.diagnostics.contains("--adopt-folders"))
    #expect(!FileManager.default.fileExists(atPath: bench.path("storage")))
    #expect(try sync("--adopt-folders", "--check").status == 0)
    #expect(FileManager.default.fileExists(atPath: bench.path("storage/anna/backups")))
    #expect(try sync("--adopt-folders", "--dry-run").status == 64)
  }

  @Test("An unknown device cannot be forgotten")
  func unknownDevice() throws {
    let outcome = try sync("--forget-device", "7f3a")
    #expect(outcome.status == 1)
    #expect(outcome.diagnostics.contains("no such device"))
  }

  @Test("A missing file is named")
  func missing() throws {
    let outcome = try sync("--config", "none.yaml")
    #expect(outcome.status == 1)
    #expect(outcome.diagnostics.contains("none.yaml"))
  }

  @Test(
    "A refused or held file is named with the reason, in text and JSON, and applied by the suggested command"
  )
  func unfinished() throws {
    let home = ["BUCKIA_HOME": bench.path("sender's home")]
    try FileManager.default.copyItem(atPath: bench.path("notes.sqlite"), toPath: bench.path("before.sqlite"))
    try FileManager.default.copyItem(atPath: bench.path("notes.sqlite"), toPath: bench.path("bomb.sqlite"))
    try TestDatabases.run("INSERT INTO note VALUES (1, zeroblob(70000000))", on: bench.path("bomb.sqlite"))
    let inbound = "storage/anna/inbound"
    let made = try bench.buckia(["diff", "before.sqlite", "bomb.sqlite", "-o", inbound, "--json"], environment: home)
    let id = try #require(try made.json["id"] as? String)
    let bad = "3MOszSZz3uTLnb7JQCqVqYrLuuY.bdiff"
    try Data("no diff".utf8).write(to: URL(fileURLWithPath: bench.path("\(inbound)/\(bad)")))
    let text = try sync()
    #expect(text.status == 1)
    let said = text.output.split { $0.isWhitespace }.joined(separator: " ")
    #expect(said.contains("rejected: \(bad): "), "\(said)")
    #expect(said.contains("held: \(id).bdiff: "), "\(said)")
    #expect(said.contains("buckia sync --allow \(id)"), "\(said)")
    try FileManager.default.removeItem(atPath: bench.path("\(inbound)/\(bad)"))
    try FileManager.default.removeItem(atPath: bench.path("files/anna/inbound/\(bad)"))
    let outcome = try sync("--json")
    #expect(outcome.status == 2)
    let held = try #require(try outcome.json["held"] as? [[String: Any]])
    #expect(held.map { $0["id"] as? String } == [id])
    #expect(held.first?["command"] as? String == "buckia sync --allow \(id)")
    let applied = try #require(try outcome.json["applied"] as? [[String: Any]])
    #expect(applied.first?["code"] as? String == "overLimit")
    #expect(try sync("--allow", "x").status == 64)
    #expect(try sync("--allow", id).status == 0)
    #expect(try TestDatabases.rows("SELECT count(*) FROM note", on: bench.path("notes.sqlite")) == ["1"])
    #expect(try bench.names(in: inbound).isEmpty)
  }

  @Test("A diff that waits for its predecessor is named with the reason")
  func waiting() throws {
    try FileManager.default.copyItem(atPath: bench.path("notes.sqlite"), toPath: bench.path("sender.sqlite"))
    let sender = DatabaseManager(
      bench.path("sender.sqlite"), home: BuckiaHome(path: bench.path("sender's home")))
    let scope = ShareScope(name: "notes") { SharedTable("note") }
    var options = ShareOptions()
    options.isUnencrypted = true
    for (number, folder) in ["late", "storage/anna/inbound"].enumerated() {
      try TestDatabases.run("INSERT INTO note VALUES (\(number),'x')", on: sender.path)
      _ = try sender.share(
        scope, to: [ShareRecipient("anna")], output: .folder(bench.path(folder)), options: options)
    }
    let file = try #require(try bench.names(in: "storage/anna/inbound").first)
    let text = try sync()
    #expect(text.status == 2)
    let said = text.output.split { $0.isWhitespace }.joined(separator: " ")
    #expect(said.contains("waiting: \(file): "), "\(said)")
    let applied = try #require(try sync("--json").json["applied"] as? [[String: Any]])
    #expect(applied.first?["state"] as? String == "waiting")
    #expect(applied.first?["reason"] as? String != nil)
  }

  @Test("With --watch a round begins after a local edit", .timeLimit(.minutes(5)))
  func watch() throws {
    let process = Process()
    process.executableURL = try Workbench.binary
    process.arguments = ["sync", "--watch", "--every", "86400"]
    process.currentDirectoryURL = bench.folder
    process.environment = ProcessInfo.processInfo.environment.merging(["BUCKIA_HOME": bench.path("home")]) { $1 }
    let output = Pipe()
    process.standardOutput = output
    try process.run()
    defer { process.terminate() }
    /// Reads until a number of rounds have uploaded something.
    var told = ""
    func rounds(_ count: Int) throws {
      while told.components(separatedBy: "uploaded").count <= count {
        let bytes = output.fileHandleForReading.availableData
        try #require(!bytes.isEmpty, "\(told)")
        told += String(decoding: bytes, as: UTF8.self)
      }
    }
    try rounds(1)
    try TestDatabases.run("INSERT INTO note VALUES (1,'x')", on: bench.path("notes.sqlite"))
    try rounds(2)
    try Data([1]).write(to: URL(fileURLWithPath: bench.path("files/anna/originals/film.mp4")))
    try rounds(3)
    #expect(told.components(separatedBy: "backup").count == 3, "\(told)")
  }

  @Test("A person signs in with a code, and the token is kept and reused")
  func signIn() async throws {
    let server = try await FaultServer { request in
      func json(_ text: String) -> FaultServer.Behaviour {
        .answer(200, headers: [("Content-Type", "application/json")], body: Array(text.utf8))
      }
      let base = "http://\(request.header("Host") ?? "")"
      switch (request.method, request.target) {
      case (_, "/.well-known/openid-configuration"):
        return json(
          #"{"issuer":"\#(base)","authorization_endpoint":"\#(base)/a","token_endpoint":"\#(base)/token","jwks_uri":"\#(base)/k","#
            + #""device_authorization_endpoint":"\#(base)/device"}"#)
      case (_, "/device"):
        return json(
          #"{"device_code":"d","user_code":"WDJB-MJHT","verification_uri":"\#(base)/open","expires_in":600,"interval":1}"#
        )
      case (_, "/token"):
        return json(#"{"access_token":"correcthorse7","token_type":"Bearer","expires_in":3600}"#)
      case ("PROPFIND", _), ("GET", _), ("PUT", _), ("MKCOL", _), ("DELETE", _):
        guard request.header("Authorization") == "Bearer correcthorse7" else { return .answer(401) }
        return .answer(request.method == "PROPFIND" ? 404 : request.method == "GET" ? 404 : 201)
      default: return .answer(405)
      }
    }
    try write(
      """
      user: anna
      database: notes.sqlite
      folder: files
      storage:
        type: webdav
        address: \(server.address)/dav
        sign-in: { issuer: "\(server.address)", client: buckia, scopes: [files] }
        http: { attempts: 1, proxy: none }
      options: { backup: false }
      """)
    let before = try sync()
    #expect(before.status == 1)
    #expect(before.diagnostics.contains("buckia sync --sign-in"), "\(before.diagnostics)")
    let signedIn = try sync("--sign-in")
    #expect(signedIn.status == 0, "\(signedIn.diagnostics)")
    #expect(signedIn.diagnostics.contains("WDJB-MJHT") && signedIn.diagnostics.contains("/open"))
    #expect(try sync().status == 0)
    #expect(!(signedIn.output + signedIn.diagnostics).contains("correcthorse7"))
    let kept = bench.path("home/sync/tokens.json")
    let attributes = try FileManager.default.attributesOfItem(atPath: kept)
    #expect((attributes[.posixPermissions] as? Int).map { $0 & 0o077 } == 0)
  }
}
