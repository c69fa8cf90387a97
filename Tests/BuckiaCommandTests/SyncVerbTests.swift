import Foundation
import TestSupport
import Testing

@Suite("buckia sync")
struct SyncVerbTests {
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

  @Test("A round is told, and the next has nothing to do")
  func round() throws {
    let plan = try sync("--dry-run")
    #expect(plan.status == 0)
    #expect(plan.output.contains("would be made"))
    #expect(!FileManager.default.fileExists(atPath: bench.path("storage")))
    let first = try sync()
    #expect(first.status == 0, "\(first.diagnostics)")
    #expect(first.output.contains("uploaded"))
    #expect(FileManager.default.fileExists(atPath: bench.path("storage/anna/backup.sqlite")))
    let second = try sync()
    #expect(second.output.hasPrefix("Nothing to do at "))
    let json = try sync("--json").json
    #expect(json["version"] as? Int == 1)
    #expect((json["uploaded"] as? [Any])?.isEmpty == true)
    #expect((json["failures"] as? [Any])?.isEmpty == true)
  }

  @Test("What one sends the other gets, and a failure of a part is told by the exit code")
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
    "What is wrong with the file is said, with its line",
    arguments: [
      ("", "no settings"), ("- a", "no settings"), ("user: [", "line"), ("user: anna\nuser: ben", "twice"),
      ("user: anna", "`folder` is missing"),
      (
        "user: a\nfolder: f\ndatabase: d\nstorage: { type: folder, path: s }\ntypo: 1",
        "line 5: there is no setting `typo`"
      ),
      (
        "user: a\nfolder: f\ndatabase: d\nstorage:\n  type: ftp",
        "`storage.type`: it is one of bunny, folder, s3, webdav"
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

  @Test("Secrets are printed nowhere, and a file that others can read holds none")
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

  @Test("A file that is not there is named")
  func missing() throws {
    let outcome = try sync("--config", "none.yaml")
    #expect(outcome.status == 1)
    #expect(outcome.diagnostics.contains("none.yaml"))
  }
}
