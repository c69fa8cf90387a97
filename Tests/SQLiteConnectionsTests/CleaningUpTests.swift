import SQLiteConnections
import Testing

@Suite struct CleaningUpTests {
  private enum Failure: Error { case first, second }

  @Test func `an error while cleaning up does not hide the first error`() throws {
    #expect(throws: Failure.first) { try cleaningUp(after: { throw Failure.first }) { throw Failure.second } }
    #expect(throws: Failure.second) { try cleaningUp(after: {}) { throw Failure.second } }
    #expect(throws: Failure.first) { throw cleaningUp(after: Failure.first) { throw Failure.second } }
  }

  @Test func `a setting is restored after an error, and the error is kept`() throws {
    let connection = try SQLiteConnection(opening: ":memory:", as: .create)
    try connection.execute("PRAGMA cache_size = 100")
    #expect(throws: Failure.first) { try connection.withPageCache(of: 64 << 20) { throw Failure.first } }
    #expect(try connection.integer("PRAGMA cache_size") == 100)
  }
}
