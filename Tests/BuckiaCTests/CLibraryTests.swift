import Foundation
import TestSupport
import Testing

/// C programs that use the library like those of other people.
@Suite("The library for C", .disabled(if: CProgram.obstacle != nil, "\(CProgram.obstacle ?? "")"))
struct CLibraryTests {
  @Test(
    "Two people exchange changes, on connections opened by the program",
    arguments: CProgram.Linkage.available)
  func exchange(linkage: CProgram.Linkage) throws {
    let folder = try TemporaryFolder()
    let output = try CProgram.run("exchange", in: folder, linkage: linkage)
    #expect(output.contains("~ notes: title=Anna's oak"), "\(output)")
    #expect(output.contains("+ notes: id=4 title=Yew"), "\(output)")
    #expect(output.hasSuffix("done\n"))
  }

  @Test("The program that the article begins with applies a folder")
  func article() throws {
    let folder = try TemporaryFolder()
    try TestDatabases.run("CREATE TABLE note(id INTEGER PRIMARY KEY, text TEXT)", on: folder.file("notes.sqlite"))
    try folder.makeFolder("inbound")
    let output = try CProgram.run("notes", [folder.file("notes.sqlite"), folder.file("inbound")], in: folder)
    #expect(output == "0 files applied, 0 conflicts\n")
  }

  @Test("Wrong arguments are reported, failing callbacks stop a call, and each thread has its own error")
  func misuse() throws {
    let folder = try TemporaryFolder()
    #expect(try CProgram.run("misuse", in: folder) == "done\n")
  }

  @Test(
    "A connection of another copy of SQLite is refused, until that copy is passed",
    .disabled(if: LoadedSQLite.obstacle != nil, "\(LoadedSQLite.obstacle ?? "")"))
  func copies() throws {
    let folder = try TemporaryFolder()
    #expect(try CProgram.run("copies", in: folder) == "done\n")
  }

  @Test("The JSON documents equal those of the command")
  func sameDocuments() throws {
    let folder = try TemporaryFolder()
    let output = try CProgram.run("documents", in: folder)
    let work = folder.file("documents.work")
    let command = try "\(CProgram.products)/buckia"
    for (line, arguments) in zip(
      output.split(separator: "\n"),
      [
        ["log", "\(work)/other.db"], ["conflicts", "\(work)/other.db"],
        ["conflicts", "\(work)/other.db", "--table", "t", "--last", "1"], ["conflicts", "\(work)/other.db", "--rules"],
        ["verify", "\(work)/outbox"], ["undo", "\(work)/other.db", "--sender", "unsigned", "--dry-run"],
        ["resolve", "\(work)/other.db", "1", "--take", "incoming", "--dry-run"],
        ["init", "\(work)/other.db"],
      ])
    {
      let printed = try CProgram.run(command, arguments + ["--json"])
      #expect(try Self.object(String(line)) == Self.object(printed), "\(arguments)")
    }
    #expect(output.split(separator: "\n").count == 8, "\(output)")
  }

  /// A document without the values that differ between runs: ids of dry-run undos, and times.
  private static func object(_ text: String) throws -> NSDictionary {
    let document = try JSONSerialization.jsonObject(with: Data(text.utf8))
    let object = try #require(without(document) as? [String: Any], "\(text)")
    return object as NSDictionary
  }

  private static func without(_ value: Any) -> Any {
    if let list = value as? [Any] { return list.map(without) }
    guard var object = value as? [String: Any] else { return value }
    if object["diff"] != nil, object["omitted"] != nil { object["id"] = nil }
    object["seconds"] = nil
    return object.mapValues(without)
  }
}
