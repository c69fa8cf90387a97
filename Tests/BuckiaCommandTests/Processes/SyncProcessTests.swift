import Foundation
import TestSupport
import Testing

@Suite("buckia sync in several processes")
struct SyncProcessTests {
  private let bench: Workbench

  init() throws {
    bench = try Workbench()
    try TestDatabases.run("CREATE TABLE note(id INTEGER PRIMARY KEY, text TEXT)", on: bench.path("before.sqlite"))
    try FileManager.default.copyItem(atPath: bench.path("before.sqlite"), toPath: bench.path("after.sqlite"))
    // Large enough to be written in several steps.
    try TestDatabases.run(
      "INSERT INTO note VALUES (1, hex(randomblob(1000000)))", on: bench.path("after.sqlite"))
  }

  private func home(_ name: String) -> [String: String] { ["BUCKIA_HOME": bench.path("\(name)'s home")] }

  /// Settings of a person who sends to Ben.
  private func prepare(_ name: String) throws {
    try FileManager.default.copyItem(atPath: bench.path("before.sqlite"), toPath: bench.path("\(name).sqlite"))
    let settings = """
      user: \(name)
      database: \(name).sqlite
      folder: \(name)'s files
      storage: { type: folder, path: storage }
      deliver:
        - { from: \(name)'s outbox, to: ben }
      """
    try Data(settings.utf8).write(to: URL(fileURLWithPath: bench.path("\(name).yaml")))
    try FileManager.default.createDirectory(
      atPath: bench.path("\(name)'s outbox"), withIntermediateDirectories: true)
  }

  /// Writes a diff to a person's outbox.
  private func write(_ name: String) throws {
    let outcome = try bench.buckia(
      ["diff", "before.sqlite", "after.sqlite", "-o", "\(name)'s outbox"], environment: home(name))
    #expect(outcome.status == 0, "\(outcome.diagnostics)")
  }

  private func inbound() throws -> [String] {
    let folder = "storage/ben/inbound"
    return try FileManager.default.fileExists(atPath: bench.path(folder)) ? bench.names(in: folder) : []
  }

  /// Waits for a condition, for two minutes at most.
  private func wait(for what: String, until isTrue: () throws -> Bool) throws {
    let end = Date(timeIntervalSinceNow: 120)
    while try !isTrue() {
      try #require(Date() < end, "there is no \(what)")
      usleep(20_000)
    }
  }

  @Test(
    "sync --watch runs round after round, and leaves no lock when it is interrupted", arguments: [SIGINT, SIGTERM])
  func watching(signal: Int32) throws {
    try prepare("anna")
    let command = try RunningCommand(
      ["sync", "--config", "anna.yaml", "--watch", "--every", "1"], on: bench, environment: home("anna"))
    try wait(for: "first round") {
      FileManager.default.fileExists(atPath: bench.path("storage/anna/backups"))
    }
    for number in 1...2 {
      try write("anna")
      try wait(for: "round that delivers diff \(number)") { try inbound().count == number }
    }
    #expect(command.isRunning)
    let reason = command.interrupt(by: signal)
    #expect(reason == signal || reason == nil)
    let next = try bench.buckia(["sync", "--config", "anna.yaml"], environment: home("anna"))
    #expect(next.status == 0, "\(next.diagnostics)")
    #expect(try bench.names(in: "anna's outbox").isEmpty)
  }

  @Test("When two processes deliver to the same folder at the same time, each file appears there complete")
  func delivering() throws {
    var sent: [String: Data] = [:]
    for name in ["anna", "carl"] {
      try prepare(name)
      for _ in 1...4 { try write(name) }
      for file in try bench.names(in: "\(name)'s outbox") {
        sent[file] = try Data(contentsOf: URL(fileURLWithPath: bench.path("\(name)'s outbox/\(file)")))
      }
    }
    #expect(sent.count == 8)
    let commands = try ["anna", "carl"].map {
      try RunningCommand(["sync", "--config", "\($0).yaml"], on: bench, environment: home($0))
    }
    func expectWhole() throws {
      for file in try inbound() {
        let bytes = try Data(contentsOf: URL(fileURLWithPath: bench.path("storage/ben/inbound/\(file)")))
        #expect(bytes == sent[file], "\(file) has \(bytes.count) bytes")
      }
    }
    while commands.contains(where: \.isRunning) {
      try expectWhole()
      usleep(500)
    }
    for command in commands {
      let outcome = try command.outcome()
      #expect(outcome.status == 0, "\(outcome.output) \(outcome.diagnostics)")
    }
    try expectWhole()
    #expect(try inbound() == sent.keys.sorted())
    for name in ["anna", "carl"] { #expect(try bench.names(in: "\(name)'s outbox").isEmpty) }
  }
}
