import SQLiteConnections
import TestSupport
import Testing

/// One process with several copies of SQLite.
@Suite(.disabled(if: LoadedSQLite.obstacle != nil, "\(LoadedSQLite.obstacle ?? "")"))
struct SQLiteLibraryTests {
  /// The ways to pass a copy.
  enum Way: CaseIterable {
    case table
    case tableAndSessions
    case names
  }

  private static func library(_ way: Way, _ copy: LoadedSQLite) throws -> SQLiteLibrary {
    switch way {
    case .table: try SQLiteLibrary(routines: copy.routines())
    case .tableAndSessions: try SQLiteLibrary(routines: copy.routines(), sessions: copy.address)
    case .names: try SQLiteLibrary(resolving: copy.address)
    }
  }

  @Test("A second copy opens, reads and writes databases, however it is passed", arguments: Way.allCases)
  func opens(_ way: Way) throws {
    let folder = try TemporaryFolder()
    let library = try Self.library(way, LoadedSQLite.second.get())
    let connection = try SQLiteConnection(opening: folder.file("database"), as: .create, with: library)
    try connection.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, a)")
    let insert = try connection.prepare("INSERT INTO t(a) VALUES (?1)")
    for text in ["one", "two"] {
      try insert.bind(text, at: 0)
      try insert.run()
    }
    #expect(try connection.text("SELECT group_concat(a) FROM t") == "one,two")
    #expect(connection.library == library)
    #expect(try library != .standard)
    #expect(library.version == SQLiteConnection.libraryVersion)
  }

  @Test("The same copy is the same library, however it is passed, and the linked one is the standard")
  func equality() throws {
    let second = try LoadedSQLite.second.get()
    let libraries = try Way.allCases.map { try Self.library($0, second) }
    #expect(libraries == Array(repeating: libraries[0], count: 3))
    #expect(try SQLiteLibrary(resolving: LoadedSQLite.linked.get().address) == .standard)
  }

  @Test("A handle that the app has opened with its own copy is borrowed, in the transaction that is open")
  func borrows() throws {
    let folder = try TemporaryFolder()
    let second = try LoadedSQLite.second.get()
    let library = try SQLiteLibrary(resolving: second.address)
    let path = folder.file("database")
    try second.withHandle(to: path) { handle in
      try second.execute(
        "CREATE TABLE t(id INTEGER PRIMARY KEY, a); BEGIN; INSERT INTO t VALUES (1, 'app')", on: handle)
      try SQLiteConnection.borrowing(handle, of: library) { connection in
        #expect(connection.path == path)
        #expect(connection.isInTransaction == true)
        let transaction = try SQLiteTransaction(on: connection)
        let session = try SQLiteSession(on: connection)
        try session.attach("t")
        try connection.execute("INSERT INTO t VALUES (2, 'ours')")
        let inverse = try StockChangesets.invert(session.changeset())
        try transaction.commit()
        #expect(try connection.text("SELECT group_concat(a) FROM t") == "app,ours")
        try StockChangesets.apply(inverse, to: connection) { _, _ in .abort }
        #expect(try connection.text("SELECT group_concat(a) FROM t") == "app")
      }
      try second.execute("COMMIT", on: handle)
    }
    #expect(try TestDatabases.rows("SELECT id FROM t", on: path) == ["1"])
  }

  @Test("Functions, collations and conflict handlers belong to the copy that calls them")
  func callbacks() throws {
    let second = try SQLiteLibrary(resolving: LoadedSQLite.second.get().address)
    for library in [second, try .standard] {
      let connection = try SQLiteConnection(opening: ":memory:", as: .create, with: library)
      var functions = SQLiteFunctions(on: connection)
      try functions.add("twice", argumentCount: 1) { .integer($0.integer(at: 0) &* 2) }
      #expect(try connection.integer("SELECT twice(21)") == 42)
      try connection.readThroughUnknownCollations()
      #expect(try connection.integer("SELECT 'a' < 'B' COLLATE unknown") == 0)
      try connection.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, a)")
      let session = try SQLiteSession(on: connection)
      try session.attach()
      try connection.execute("INSERT INTO t VALUES (1, 'x')")
      let changes = try session.changeset()
      let log = Log()
      try StockChangesets.apply(changes, to: connection) { question in
        log.lines.append("\(question.kind) \(question.table) \(question.conflicting == question.new)")
        return .omit
      }
      #expect(log.lines == ["conflict t true"])
    }
  }

  private final class Log { var lines: [String] = [] }

  @Test("The file of a second copy's connection is read through that copy")
  func files() throws {
    let folder = try TemporaryFolder()
    let library = try SQLiteLibrary(resolving: LoadedSQLite.second.get().address)
    let connection = try SQLiteConnection(opening: folder.file("database"), as: .create, with: library)
    try connection.execute("CREATE TABLE t(a)")
    let file = SQLiteFileHandle(.database, of: connection)
    let first = try #require(file)
    let again = try #require(first.another())
    #expect(try again.byteCount() == connection.integer("PRAGMA page_size").map { 2 * $0 })
    try connection.copy(to: folder.file("copy"))
    #expect(try TestDatabases.tables(of: folder.file("copy")) == ["t"])
  }

  @Test("A handle of another copy is refused before it is used, in both directions")
  func foreignHandle() throws {
    let linked = try LoadedSQLite.linked.get()
    let second = try LoadedSQLite.second.get()
    let library = try SQLiteLibrary(resolving: second.address)
    for (owner, other) in [(second, try SQLiteLibrary.standard), (linked, library)] {
      try owner.withHandle(to: ":memory:") { handle in
        let error = #expect(throws: SQLiteError.self) {
          try SQLiteConnection.borrowing(handle, of: other) { _ in Issue.record("it was borrowed") }
        }
        #expect(error?.fault == .foreignHandle)
        #expect(error?.code == 21)
        #expect(error?.message.contains("another copy of SQLite") == true)
      }
    }
    // Without a library, the linked copy is meant.
    let error = try second.withHandle(to: ":memory:") { handle in
      #expect(throws: SQLiteError.self) {
        try SQLiteConnection.borrowing(handle) { _ in Issue.record("it was borrowed") }
      }
    }
    #expect(error?.fault == .foreignHandle)
  }

  @Test("A value of one copy cannot be bound with another")
  func foreignValue() throws {
    let library = try SQLiteLibrary(resolving: LoadedSQLite.second.get().address)
    let here = try SQLiteConnection(opening: ":memory:", as: .create)
    let there = try SQLiteConnection(opening: ":memory:", as: .create, with: library)
    let row = try there.prepare("SELECT 1")
    #expect(try row.step() == true)
    let statement = try here.prepare("SELECT ?1")
    let error = #expect(throws: SQLiteError.self) { try statement.bind(column: 0, of: row, at: 0) }
    #expect(error?.fault == .foreignHandle)
  }

  @Test("Without the session extension, sessions and SQLite's changeset functions fail with its name; the rest works")
  func withoutSessions() throws {
    let library = try SQLiteLibrary(routines: LoadedSQLite.withoutSessions.get().routines())
    let connection = try SQLiteConnection(opening: ":memory:", as: .create, with: library)
    try connection.execute("CREATE TABLE t(id INTEGER PRIMARY KEY)")
    #expect(try connection.integer("SELECT count(*) FROM t") == 0)
    let error = #expect(throws: SQLiteError.self) { _ = try SQLiteSession(on: connection) }
    #expect(error?.fault == .missing(function: "sqlite3session_create"))
    #expect(error?.message.contains("SQLITE_ENABLE_SESSION") == true)
    let applying = #expect(throws: SQLiteError.self) {
      try StockChangesets.apply([], to: connection) { _, _ in .abort }
    }
    #expect(applying?.fault == error?.fault)
  }

  @Test("A copy that lacks a function, or is too old, is refused with the reason")
  func unusable() throws {
    let second = try LoadedSQLite.second.get()
    let missing = #expect(throws: SQLiteError.self) {
      _ = try SQLiteLibrary { $0 == "sqlite3_changes64" ? nil : second.address(of: $0) }
    }
    #expect(missing?.fault == .missing(function: "sqlite3_changes64"))
    let nothing = #expect(throws: SQLiteError.self) { _ = try SQLiteLibrary { _ in nil } }
    #expect(nothing?.fault == .missing(function: "sqlite3_libversion"))
    let version: @convention(c) () -> Int32 = { 3_036_000 }
    let old = #expect(throws: SQLiteError.self) {
      _ = try SQLiteLibrary { name in
        switch name {
        case "sqlite3_libversion_number": unsafeBitCast(version, to: UnsafeMutableRawPointer.self)
        case "sqlite3_changes64": nil
        default: second.address(of: name)
        }
      }
    }
    #expect(old?.fault == .tooOld(version: SQLiteConnection.libraryVersion))
    #expect(old?.message.contains("3.37.0") == true)
  }

  @Test("More copies than a process can use are refused, and the earlier ones still work")
  func tooMany() async {
    await #expect(processExitsWith: .success) {
      let limit = 8
      var libraries = [try SQLiteLibrary.standard]
      while libraries.count < limit { libraries.append(try SQLiteLibrary(resolving: LoadedSQLite.copy().address)) }
      let error = #expect(throws: SQLiteError.self) { _ = try SQLiteLibrary(resolving: LoadedSQLite.copy().address) }
      #expect(error?.fault == .tooMany)
      for library in libraries {
        let connection = try SQLiteConnection(opening: ":memory:", as: .create, with: library)
        var functions = SQLiteFunctions(on: connection)
        try functions.add("f", argumentCount: 0) { _ in .integer(7) }
        #expect(try connection.integer("SELECT f()") == 7)
      }
    }
  }
}
