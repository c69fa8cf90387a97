import SQLiteConnections
import Testing

@Suite final class SQLiteStatementTests {
  private let connection: SQLiteConnection

  init() throws { connection = try SQLiteConnection(opening: ":memory:", as: .create) }

  @Test("Bound values are returned unchanged")
  func roundTrip() throws {
    let statement = try connection.prepare("SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7")
    try statement.bind(Int64.min, at: 0)
    try statement.bind(-0.0, at: 1)
    try statement.bind("a\u{0}é", at: 2)
    try statement.bind([UInt8]([0, 255]), at: 3)
    try statement.bindNull(at: 4)
    try statement.bind(Double.infinity, at: 5)
    try statement.bind(Double.nan, at: 6)
    #expect(try statement.step() == true)
    #expect(statement.integer(at: 0) == .min)
    #expect(statement.real(at: 1).bitPattern == (-0.0).bitPattern)
    #expect(statement.text(at: 2) == "a\u{0}é")
    #expect(statement.blob(at: 3) == [0, 255])
    #expect(statement.isNull(at: 4) == true)
    #expect(statement.text(at: 4) == nil)
    #expect(statement.real(at: 5) == .infinity)
    #expect(statement.isNull(at: 6) == true)
    #expect(try statement.step() == false)
  }

  @Test("Empty values are empty, not NULL, however they are bound")
  func empty() throws {
    let statement = try connection.prepare("SELECT typeof(?1), typeof(?2), typeof(?3), typeof(?4), length(?2)")
    try statement.bind([UInt8](), at: 0)
    try statement.bind(blobNoCopy: UnsafeRawBufferPointer(start: nil, count: 0), at: 1)
    try statement.bind("", at: 2)
    try statement.bind(textNoCopy: UnsafeRawBufferPointer(start: nil, count: 0), at: 3)
    #expect(try statement.step() == true)
    #expect((0..<4).map { statement.text(at: $0) } == ["blob", "blob", "text", "text"])
    #expect(statement.integer(at: 4) == 0)
    let nothing = try connection.prepare("SELECT x'', ''")
    #expect(try nothing.step() == true)
    #expect(nothing.blob(at: 0) == [])
    #expect(nothing.text(at: 1) == "")
    #expect(nothing.blobBytes(at: 0).count == 0)
    #expect(nothing.textBytes(at: 1).count == 0)
  }

  @Test("Bytes bound without copying are read in place")
  func withoutCopy() throws {
    let statement = try connection.prepare("SELECT ?1, ?2")
    let bytes: [UInt8] = [0x61, 0, 0xff, 0x62]
    try bytes.withUnsafeBytes { buffer in
      try statement.bind(textNoCopy: buffer, at: 0)
      try statement.bind(blobNoCopy: UnsafeRawBufferPointer(rebasing: buffer[1...2]), at: 1)
      #expect(try statement.step() == true)
      #expect(Array(statement.textBytes(at: 0)) == bytes)
      #expect(statement.blob(at: 1) == [0, 0xff])
      statement.reset()
      statement.clearBindings()
    }
    #expect(try statement.step() == true)
    #expect(statement.isNull(at: 0) == true)
    #expect(statement.isNull(at: 1) == true)
  }

  @Test("Invalid UTF-8 is replaced in strings and kept in bytes")
  func brokenText() throws {
    let statement = try connection.prepare("SELECT CAST(x'61ff62' AS TEXT)")
    #expect(try statement.step() == true)
    #expect(statement.text(at: 0) == "a\u{fffd}b")
    #expect(Array(statement.textBytes(at: 0)) == [0x61, 0xff, 0x62])
  }

  @Test("A statement that failed can run again")
  func again() throws {
    try connection.execute("CREATE TABLE t(a UNIQUE)")
    let statement = try connection.prepare("INSERT INTO t VALUES (?1)", isPersistent: true)
    try statement.bind(Int64(1), at: 0)
    try statement.run()
    let error = #expect(throws: SQLiteError.self) { try statement.run() }
    #expect(error?.code == 2067 && error?.isConstraint == true)
    #expect(error?.sql == "INSERT INTO t VALUES (?1)")
    try statement.bind(Int64(2), at: 0)
    try statement.run()
    #expect(connection.changes == 1)
    #expect(try connection.integer("SELECT count(*) FROM t") == 2)
  }

  @Test("Binding a parameter that does not exist is an error")
  func range() throws {
    let statement = try connection.prepare("SELECT ?1")
    #expect(throws: SQLiteError.self) { try statement.bind(Int64(1), at: 1) }
    #expect(throws: SQLiteError.self) { try statement.bindNull(at: -1) }
  }

  @Test("Invalid statements are errors", arguments: ["", " ", "-- nothing", "SELEC 1", "SELECT 1 FROM nowhere"])
  func broken(_ sql: String) throws {
    let error = #expect(throws: SQLiteError.self) { _ = try connection.integer(sql) }
    #expect(error?.path == ":memory:")
    #expect(error?.sql == sql)
  }

  @Test("Queries return rows, numbers and texts")
  func queries() throws {
    try connection.execute("CREATE TABLE t(a); INSERT INTO t VALUES (1), ('x'), (NULL)")
    var found: [String?] = []
    try connection.forEachRow(of: "SELECT a FROM t WHERE a IS NOT ?1", binding: ["y"]) { found.append($0.text(at: 0)) }
    #expect(found == ["1", "x", nil])
    #expect(try connection.integer("SELECT a FROM t WHERE a = 5") == nil)
    #expect(try connection.integer("SELECT NULL") == nil)
    #expect(try connection.text("SELECT a FROM t WHERE a = ?1", binding: ["x"]) == "x")
    #expect(try connection.text("SELECT NULL") == nil)
    struct Stop: Error {}
    #expect(throws: Stop.self) { try connection.forEachRow(of: "SELECT a FROM t") { _ in throw Stop() } }
    // The statement is finalized, so the table can be dropped.
    try connection.execute("DROP TABLE t")
  }
}
