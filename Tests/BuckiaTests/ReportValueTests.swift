import Buckia
import Foundation
import TestSupport
import Testing

/// Values that apps keep in sets, write as JSON, and list.
@Suite struct ReportValueTests {
  /// Writes a value as JSON and reads it again.
  private func copy<Value: Codable & Hashable>(of value: Value) throws -> Value {
    let copy = try JSONDecoder().decode(Value.self, from: JSONEncoder().encode(value))
    #expect(Set([value]).contains(copy), "\(value)")
    return copy
  }

  @Test func `reports, conflicts, entries and contacts are hashable, and survive a JSON round trip`() throws {
    let exchange = try Exchange(
      """
      CREATE TABLE notes(id INTEGER PRIMARY KEY, a, b, c, d);
      INSERT INTO notes VALUES (1, 0, 0, 0, 0), (2, 0, 0, 0, 0);
      """)
    try TestDatabases.run("UPDATE notes SET a = 1.0, b = NULL, c = x'00ff', d = '9'", on: exchange.mine)
    let sent = try exchange.send("UPDATE notes SET a = 9e999, b = -5, c = '1', d = 'x' WHERE id = 1")
    let applied = try exchange.apply()
    try exchange.send("DELETE FROM notes WHERE id = 2")
    try exchange.apply()
    _ = try copy(of: sent)
    let report = try copy(of: applied)
    #expect(report.diffs.map(\.conflicts) == [1])
    let conflicts = try exchange.database.conflicts()
    #expect(conflicts.count == 2)
    #expect(try copy(of: conflicts) == conflicts)
    #expect(try copy(of: conflicts)[0].local?.map(\.value) == [1, 1.0, .null, .blob([0, 255]), "9"])
    try exchange.database.resolve([conflicts[0].id], taking: .incoming, options: ResolveOptions(remembers: true))
    _ = try copy(of: exchange.database.conflicts())
    let entries = try exchange.database.log()
    #expect(try copy(of: entries) == entries)
    #expect(Set(entries.map(\.id)).count == entries.count && entries.count == 2)
    _ = try copy(of: exchange.database.status())
    _ = try copy(of: exchange.database.examine())
    let scope = ShareScope(name: "s") {
      SharedTable("notes").where("id = :id", ["id": 1]).omitting("d").rewriting("a", to: 0.5).matching("b")
    }
    #expect(try copy(of: scope) == scope)
    let anna = try BuckiaHome(path: exchange.folder.file("home of Anna")).makeIdentity(named: "Anna")
    #expect(try copy(of: anna.card) == anna.card)
    let merged = try DatabaseManager(exchange.mine).merge(
      exchange.base, since: nil, into: exchange.folder.file("out.sqlite"))
    #expect(try copy(of: merged) == merged)
  }

  @Test func `the reports of rebasing and inviting survive a JSON round trip`() throws {
    let exchange = try Exchange("CREATE TABLE notes(id INTEGER PRIMARY KEY, a); INSERT INTO notes VALUES (1, 0)")
    let paths = try ["1", "x'ff'"].map { value in
      let (now, file) = (exchange.folder.file("now \(value)"), exchange.folder.file("\(value.count).bdiff"))
      try FileManager.default.copyItem(atPath: exchange.base, toPath: now)
      try TestDatabases.run("UPDATE notes SET a = \(value)", on: now)
      try DatabaseManager(now).createDatabaseDiff(since: exchange.base, output: .path(file))
      return file
    }
    let rebased = try RewrittenChanges(rebasing: paths[0], onto: [paths[1]])
    let report = try rebased.write(to: .path(exchange.folder.file("rebased.bdiff")), home: .standard)
    #expect(report.rebase?.conflictCount == 1)
    #expect(try copy(of: report) == report)
    let anna = BuckiaHome(path: exchange.folder.file("home of Anna"))
    try anna.makeIdentity(named: "Anna")
    let invited = try DatabaseManager(exchange.mine, home: anna).invite(
      ShareScope { SharedTable("notes") }, as: anna.identity())
    #expect(try copy(of: invited) == invited)
    #expect(throws: (any Error).self) { try JSONDecoder().decode(Invitation.self, from: Data("\"x\"".utf8)) }
  }
}
