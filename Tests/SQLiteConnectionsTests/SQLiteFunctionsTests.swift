import SQLiteConnections
import Testing

@Suite struct SQLiteFunctionsTests {
  private func isThere(_ name: String, on connection: borrowing SQLiteConnection) throws -> Bool {
    try connection.integer("SELECT 1 FROM pragma_function_list WHERE name = ?1", binding: [name]) != nil
  }

  @Test("A function computes with its arguments, and is removed with its owner")
  func lifetime() throws {
    let connection = try SQLiteConnection(opening: ":memory:", as: .create)
    do {
      var functions = SQLiteFunctions(on: connection)
      try functions.add("twice", argumentCount: 1) { .integer($0.integer(at: 0) &* 2) }
      try functions.add("how_many", argumentCount: nil) { .integer(Int64($0.count)) }
      try functions.add("first_byte", argumentCount: 1) { arguments in
        arguments.withBlob(at: 0) { bytes in
          bytes.byteCount == 0 ? .real(0.5) : .integer(Int64(bytes.unsafeLoadUnaligned(as: UInt8.self)))
        } ?? .null
      }
      #expect(try connection.integer("SELECT twice(21)") == 42)
      #expect(try connection.integer("SELECT how_many(1, 'b', NULL) * 10 + how_many()") == 30)
      #expect(try connection.integer("SELECT first_byte(x'07ff')") == 7)
      #expect(try connection.text("SELECT first_byte(x'') || ' ' || quote(first_byte('a'))") == "0.5 NULL")
    }
    #expect(try !isThere("twice", on: connection))
    #expect(throws: SQLiteError.self) { try connection.execute("SELECT twice(1)") }
  }

  @Test("Missing arguments are read as NULL")
  func missingArguments() throws {
    let connection = try SQLiteConnection(opening: ":memory:", as: .create)
    var functions = SQLiteFunctions(on: connection)
    try functions.add("odd", argumentCount: nil) { arguments in
      guard arguments.storageClass(at: 5) == .null, arguments.storageClass(at: -1) == .null else { return .integer(-1) }
      return .integer(arguments.integer(at: 7) + (arguments.withBlob(at: 9) { _ in 1 } ?? 0))
    }
    #expect(try connection.integer("SELECT odd(1)") == 0)
    let kept = functions.removeAll()
    #expect(kept == [])
  }

  @Test("While a statement runs, SQLite keeps a function; that is reported, and calling it stays safe")
  func busy() throws {
    let connection = try SQLiteConnection(opening: ":memory:", as: .create)
    try connection.execute("CREATE TABLE t(a); INSERT INTO t VALUES (1), (2)")
    let statement = try connection.prepare("SELECT a FROM t")
    _ = try statement.step()
    var functions = SQLiteFunctions(on: connection)
    try functions.add("f", argumentCount: 0) { _ in .integer(7) }
    let kept = functions.removeAll()
    #expect(kept == ["f"])
    #expect(try connection.integer("SELECT f()") == 7)
    try functions.add("f", argumentCount: 0) { _ in .integer(8) }
    #expect(try connection.integer("SELECT f()") == 8, "the new one takes the place of the kept one")
    let keptAgain = functions.removeAll()
    #expect(keptAgain == ["f"])
    statement.reset()
    try functions.add("f", argumentCount: 0) { _ in .integer(9) }
    #expect(try connection.integer("SELECT f()") == 9)
    let keptThen = functions.removeAll()
    #expect(keptThen == [])
    #expect(try !isThere("f", on: connection))
  }

  @Test("A function's captured objects are released with it, and if it cannot be added")
  func release() throws {
    final class Held {}
    let connection = try SQLiteConnection(opening: ":memory:", as: .create)
    var functions = SQLiteFunctions(on: connection)
    weak var weakly: Held?
    do {
      let held = Held()
      weakly = held
      try functions.add("f", argumentCount: 0) { _ in withExtendedLifetime(held) { .null } }
    }
    #expect(weakly != nil)
    _ = functions.removeAll()
    #expect(weakly == nil)
    do {
      let held = Held()
      weakly = held
      let name = String(repeating: "x", count: 300)
      #expect(throws: SQLiteError.self) {
        try functions.add(name, argumentCount: 0) { _ in withExtendedLifetime(held) { .null } }
      }
    }
    #expect(weakly == nil)
  }
}
