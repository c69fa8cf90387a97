import Foundation
import SQLiteConnections
import Testing

/// The texts of errors for people, and their properties for programs.
@Suite struct SQLiteErrorTests {
  private let folder: String

  init() throws {
    folder = FileManager.default.temporaryDirectory.appendingPathComponent("buckia-test-\(UUID().uuidString)").path
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
  }

  private func inFolder(_ body: () throws -> Void) throws {
    defer {
      do { try FileManager.default.removeItem(atPath: folder) } catch { print("left behind: \(folder): \(error)") }
    }
    try body()
  }

  @Test("A missing file cannot be opened and is not created")
  func missing() throws {
    try inFolder {
      let path = "\(folder)/none"
      for access in [SQLiteConnection.Access.readOnly, .readWrite, .immutable] {
        let error = #expect(throws: SQLiteError.self) {
          let connection = try SQLiteConnection(opening: path, as: access)
          try connection.execute("SELECT * FROM sqlite_schema")
        }
        #expect(error?.isCannotOpen == true)
        #expect(error?.description.hasPrefix("\(path): the database cannot be opened") == true)
      }
      #expect(!FileManager.default.fileExists(atPath: path))
    }
  }

  @Test("A file of another kind is not a database")
  func notADatabase() throws {
    try inFolder {
      let path = "\(folder)/text"
      try Data(String(repeating: "not a database ", count: 100).utf8).write(to: URL(fileURLWithPath: path))
      let error = #expect(throws: SQLiteError.self) {
        try SQLiteConnection(opening: path, as: .readOnly).execute("SELECT * FROM sqlite_schema")
      }
      #expect(error?.isNotADatabase == true)
      #expect(error?.description == "\(path): this is no SQLite database (or it is encrypted)")
    }
  }

  @Test("A damaged file is reported as damaged")
  func damaged() throws {
    try inFolder {
      let path = "\(folder)/damaged"
      try SQLiteConnection(opening: path, as: .create).execute(
        "CREATE TABLE t(a); INSERT INTO t VALUES (zeroblob(9000))")
      var bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: path)))
      for index in 4096..<4200 { bytes[index] = 0xff }
      try Data(bytes).write(to: URL(fileURLWithPath: path))
      let error = #expect(throws: SQLiteError.self) {
        try SQLiteConnection(opening: path, as: .readOnly).execute("SELECT * FROM t")
      }
      #expect(error?.isCorrupt == true)
      #expect(error?.description.contains("the database is damaged") == true)
    }
  }

  @Test("When another connection holds a lock, the error suggests to try again")
  func busy() throws {
    try inFolder {
      let path = "\(folder)/busy"
      let first = try SQLiteConnection(opening: path, as: .create)
      try first.execute("CREATE TABLE t(a); BEGIN IMMEDIATE")
      let second = try SQLiteConnection(opening: path, as: .readWrite, busyTimeout: 1)
      let error = #expect(throws: SQLiteError.self) { _ = try SQLiteTransaction(on: second) }
      #expect(error?.isBusy == true)
      #expect(error?.description == "\(path): the database is locked by another program; try again when it is done")
    }
  }

  @Test("A read-only connection does not write")
  func readOnly() throws {
    try inFolder {
      let path = "\(folder)/read only"
      try SQLiteConnection(opening: path, as: .create).execute("CREATE TABLE t(a)")
      for access in [SQLiteConnection.Access.readOnly, .immutable] {
        let connection = try SQLiteConnection(opening: path, as: access)
        #expect(try connection.integer("SELECT count(*) FROM t") == 0)
        let error = #expect(throws: SQLiteError.self) { try connection.execute("INSERT INTO t VALUES (1)") }
        #expect(error?.isReadOnly == true)
        #expect(error?.description.contains("cannot be written") == true)
      }
    }
  }

  @Test("A database that reaches its maximum size is full")
  func full() throws {
    let connection = try SQLiteConnection(opening: ":memory:", as: .create)
    try connection.execute("CREATE TABLE t(a); PRAGMA max_page_count = 2")
    let error = #expect(throws: SQLiteError.self) { try connection.execute("INSERT INTO t VALUES (zeroblob(99999))") }
    #expect(error?.isFullDisk == true)
    #expect(error?.description == ":memory:: the disk is full; free some space and try again")
  }

  @Test("A constraint error names the column, and keeps the statement for programs alone")
  func constraint() throws {
    let connection = try SQLiteConnection(opening: ":memory:", as: .create)
    try connection.execute("CREATE TABLE t(a NOT NULL)")
    let error = #expect(throws: SQLiteError.self) { try connection.execute("INSERT INTO t VALUES (NULL)") }
    #expect(error?.code == 1299 && error?.primaryCode == 19 && error?.isConstraint == true)
    #expect(error?.description == ":memory:: NOT NULL constraint failed: t.a")
    #expect(error?.sql == "INSERT INTO t VALUES (NULL)")
  }

  @Test("Every path is a path, never a URI")
  func paths() throws {
    try inFolder {
      for name in ["a?mode=memory", "a%20b", "a#b", "é 値", "it's"] {
        let path = "\(folder)/\(name)"
        try SQLiteConnection(opening: path, as: .create).execute("CREATE TABLE t(a)")
        #expect(FileManager.default.fileExists(atPath: path))
        for prefix in ["", "/"] {
          let again = try SQLiteConnection(opening: prefix + path, as: .immutable)
          #expect(try again.integer("SELECT count(*) FROM t") == 0, "\(prefix + path)")
        }
      }
    }
  }
}
