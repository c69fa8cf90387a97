@testable import Buckia
import BuckiaBytes
import Foundation
import TestSupport
import Testing

@Suite struct TemporaryDatabaseTests {
  @Test func `the temporary copy of a killed process is deleted by the next one, and no other file is`() throws {
    let folder = try TemporaryFolder()
    let path = try TestDatabases.run("CREATE TABLE t(a)", on: folder.file("notes.sqlite"))
    let living = try TemporaryDatabase(in: folder.path, permissions: 0o600)
    let dead = [".buckia-diff.tmp", ".buckia-dead.tmp", ".buckia-dead.tmp-journal", ".buckia-dead.tmp-lock"]
    let others = [".buckia-dead.sqlite", "buckia-dead.tmp", "buckia-dead.tmp-lock"]
    for name in dead + others { try Data().write(to: URL(fileURLWithPath: folder.file(name))) }
    try DatabaseManager(path).snapshot(to: folder.file("shared.sqlite"))
    let expected = others + [FileSystem.name(of: living.path), FileSystem.name(of: living.path) + "-lock"]
    #expect(try FolderNames.all(in: folder.path).sorted() == (expected + ["notes.sqlite", "shared.sqlite"]).sorted())
  }

  @Test func `a copy that gets no name is deleted with its lock`() throws {
    let folder = try TemporaryFolder()
    do { _ = try TemporaryDatabase(in: folder.path, permissions: 0o600) }
    #expect(try FolderNames.all(in: folder.path).isEmpty)
  }
}
