import SQLiteConnections
import Testing

@Suite struct SQLiteTableFunctionTests {
  /// The numbers up to a limit, followed by an error on request.
  private final class Numbers: SQLiteRows {
    private var number: Int64 = 0
    private let limit: Int64
    private let fails: Bool

    init(upTo limit: Int64, fails: Bool = false) {
      self.limit = limit
      self.fails = fails
    }

    func advance() throws -> Bool {
      number += 1
      if number <= limit { return true }
      if fails { throw SQLiteFunctionFailure("there are no more numbers") }
      return false
    }

    func value(at column: Int) -> SQLiteFunctionResult {
      column == 0 ? .integer(number) : number % 2 == 0 ? .text("even") : .blob([UInt8(number & 0xff)])
    }
  }

  private func addNumbers(
    to connection: borrowing SQLiteConnection, fails: Bool = false, access: SQLiteFunctionAccess = .innocuous
  ) throws {
    try connection.addTableFunction(
      SQLiteTableFunction(
        "numbers", columns: ["n", "what"], parameters: ["upto", "offset"], required: 1, access: access
      ) { arguments in Numbers(upTo: arguments.integer(at: 0) + arguments.integer(at: 1), fails: fails) })
  }

  @Test("Rows are read with their values, from first to last, and again by each call")
  func rows() throws {
    let connection = try SQLiteConnection(opening: ":memory:", as: .create)
    try addNumbers(to: connection)
    #expect(try connection.text("SELECT group_concat(n || quote(what)) FROM numbers(3)") == "1X'01',2'even',3X'03'")
    #expect(try connection.text("SELECT group_concat(rowid) FROM numbers(1, 2)") == "1,2,3")
    #expect(try connection.text("SELECT group_concat(a.n || b.n) FROM numbers(2) a, numbers(a.n) b") == "11,21,22")
    #expect(try connection.text("SELECT group_concat(n) FROM numbers WHERE upto = 2") == "1,2")
    #expect(try connection.integer("SELECT count(*) FROM numbers(0)") == 0)
    #expect(try connection.text("SELECT group_concat(n) FROM (SELECT n FROM numbers(1000000) LIMIT 2)") == "1,2")
  }

  @Test("A missing argument and a failing row are errors of the statement, with their messages")
  func failures() throws {
    let connection = try SQLiteConnection(opening: ":memory:", as: .create)
    try addNumbers(to: connection, fails: true)
    for (sql, message) in [
      ("SELECT count(*) FROM numbers", "numbers needs the argument upto"),
      ("SELECT count(*) FROM numbers WHERE offset = 1", "numbers needs the argument upto"),
      ("SELECT count(*) FROM numbers(3)", "there are no more numbers"),
    ] {
      let error = #expect(throws: SQLiteError.self) { try connection.integer(sql) }
      #expect(error?.message == message)
    }
    #expect(try connection.integer("SELECT n FROM numbers(3)") == 1)
  }

  @Test("A function with effects is refused in views")
  func access() throws {
    let connection = try SQLiteConnection(opening: ":memory:", as: .create)
    try addNumbers(to: connection, access: .direct)
    #expect(try connection.integer("SELECT count(*) FROM numbers(3)") == 3)
    try connection.execute("CREATE VIEW v AS SELECT n FROM numbers(3)")
    #expect(throws: SQLiteError.self) { try connection.integer("SELECT count(*) FROM v") }
  }

  @Test("Objects of a function are released with the connection, and when it is replaced; rows with their statement")
  func release() throws {
    final class Held {}
    weak var first: Held?
    weak var second: Held?
    weak var rows: Numbers?
    do {
      let connection = try SQLiteConnection(opening: ":memory:", as: .create)
      func add(_ held: Held, to connection: borrowing SQLiteConnection) throws {
        try connection.addTableFunction(
          SQLiteTableFunction("numbers", columns: ["n"], access: .innocuous) { _ in
            let made = Numbers(upTo: 3)
            rows = made
            return withExtendedLifetime(held) { made }
          })
      }
      do {
        let held = Held()
        first = held
        try add(held, to: connection)
      }
      #expect(try connection.integer("SELECT count(*) FROM numbers") == 3)
      #expect(first != nil)
      do {
        let statement = try connection.prepare("SELECT n FROM numbers")
        _ = try statement.step()
        #expect(rows != nil)
      }
      #expect(rows == nil)
      do {
        let held = Held()
        second = held
        try add(held, to: connection)
      }
      #expect(try connection.integer("SELECT count(*) FROM numbers") == 3)
      #expect(first == nil)
      #expect(second != nil)
    }
    #expect(second == nil)
  }

  @Test("A permanent function returns text and bytes unchanged, even if empty, and errors with their message")
  func results() throws {
    let connection = try SQLiteConnection(opening: ":memory:", as: .create)
    try connection.addFunction("given", argumentCounts: 1...2, access: .innocuous) { arguments in
      switch arguments.integer(at: 0) {
      case 0: .text("")
      case 1: .blob([])
      case 2: .text("grün")
      case 3: .utf8([0x61, 0xff])
      case 4: .text(nil)
      case 5: .text(arguments.text(at: 1))
      case 6: .blob(arguments.blob(at: 1) ?? [1])
      default: throw SQLiteFunctionFailure("no such value", isBusy: arguments.count == 2)
      }
    }
    let found = try (0...4).map { try connection.text("SELECT quote(given(\($0)))") }
    #expect(found.dropLast(2) == ["''", "X''", "'grün'"] && found.last == "NULL")
    #expect(try connection.text("SELECT hex(given(3))") == "61FF")
    #expect(try connection.text("SELECT given(5, 7.5) || quote(given(5, NULL))") == "7.5NULL")
    #expect(try connection.text("SELECT quote(given(6, x'00')) || quote(given(6, 'text'))") == "X'00'X'01'")
    for (sql, isBusy) in [("SELECT given(9)", false), ("SELECT given(9, 9)", true)] {
      let error = #expect(throws: SQLiteError.self) { try connection.text(sql) }
      #expect(error?.message == "no such value")
      #expect(error?.isBusy == isBusy)
    }
  }

  @Test("A connection reports which of its statements block a transaction")
  func runningStatements() throws {
    let connection = try SQLiteConnection(opening: ":memory:", as: .create)
    try connection.execute("CREATE TABLE t(a); INSERT INTO t VALUES (1), (2)")
    func state(of connection: borrowing SQLiteConnection) -> [Bool] {
      [connection.isWritingStatementRunning, connection.hasLocks]
    }
    #expect(state(of: connection) == [false, false])
    do {
      let statement = try connection.prepare("SELECT a FROM t")
      _ = try statement.step()
      #expect(state(of: connection) == [false, true])
      statement.reset()
      #expect(state(of: connection) == [false, false])
    }
    let writer = try connection.prepare("INSERT INTO t VALUES (3) RETURNING a")
    _ = try writer.step()
    #expect(state(of: connection) == [true, true])
    writer.reset()
    #expect(state(of: connection) == [false, false])
  }
}
