import BuckiaBytes
import SQLiteConnections
import TestSupport
import Testing

@Suite("SQLite's own file handles")
struct SQLiteFileHandleTests {
  private static func bytes(of handle: SQLiteFileHandle) throws -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: Int(try handle.byteCount()))
    let count = try bytes.withUnsafeMutableBytes { buffer throws(SQLiteError) in try handle.read(into: buffer, at: 0) }
    #expect(count == bytes.count)
    return bytes
  }

  @Test("A file can be opened twice, and both handles read its bytes")
  func another() throws {
    let folder = try TemporaryFolder()
    let path = try TestDatabases.run("CREATE TABLE t(a)", on: folder.file("file:database?mode=memory"))
    let connection = try SQLiteConnection(opening: path, as: .readOnly)
    let file = SQLiteFileHandle(.database, of: connection)
    let handle = try #require(file)
    let second = try #require(handle.another())
    #expect(try Self.bytes(of: second) == fileBytes(path))
    #expect(try Self.bytes(of: handle) == fileBytes(path))
  }

  @Test("A file that is no longer at its path is not opened again", arguments: [false, true])
  func movedFile(isReplaced: Bool) throws {
    let folder = try TemporaryFolder()
    let path = try TestDatabases.run("CREATE TABLE t(a)", on: folder.file("database"))
    let connection = try SQLiteConnection(opening: path, as: .readOnly)
    let file = SQLiteFileHandle(.database, of: connection)
    let handle = try #require(file)
    let code = rename(path, folder.file("elsewhere"))
    try #require(code == 0)
    if isReplaced { try TestDatabases.run("CREATE TABLE t(a)", on: path) }
    #expect(handle.another() == nil)
    // The first handle stays open.
    #expect(try Self.bytes(of: handle) == fileBytes(folder.file("elsewhere")))
  }

  @Test("A database in memory has no file")
  func memory() throws {
    let connection = try SQLiteConnection(opening: ":memory:", as: .create)
    let file = SQLiteFileHandle(.database, of: connection)
    #expect(file == nil)
  }
}
