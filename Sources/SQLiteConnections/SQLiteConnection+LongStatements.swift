import CBuckiaSQLite

extension SQLiteConnection {
  /// How many of SQLite's virtual-machine instructions run between two polls: some milliseconds.
  private static let instructionsPerPoll: Int32 = 100_000

  /// Keeps what a poll has thrown until the statement has ended.
  private final class Poll {
    let body: () throws -> Void
    var error: (any Error)?

    init(_ body: @escaping () throws -> Void) { self.body = body }
  }

  /// Runs one or more statements that can take seconds, and asks now and then whether to go on.
  ///
  /// On a connection of the app's nothing is asked: it may have a
  /// [progress handler](https://sqlite.org/c3ref/progress_handler.html) of its own, of which there can be only one.
  ///
  /// - Parameters:
  ///   - sql: The statements.
  ///   - poll: May throw to stop. It must not use the connection.
  /// - Throws: What `poll` throws, else `SQLiteError`. A statement that is stopped rolls back the whole transaction.
  package func execute(_ sql: String, polling poll: () throws -> Void) throws {
    guard !handle.isBorrowed else { return try execute(sql) }
    try withoutActuallyEscaping(poll) { body in
      let poll = Poll(body)
      let routines = handle.routines
      // Sound: the object outlives the handler, which is removed before this returns.
      let context = Unmanaged.passUnretained(poll).toOpaque()
      routines.progress_handler(handle.pointer, Self.instructionsPerPoll, Self.call, context)
      let result = Result { try execute(sql) }
      routines.progress_handler(handle.pointer, 0, nil, nil)
      if let error = poll.error { throw error }
      try result.get()
    }
  }

  private static let call: @convention(c) (UnsafeMutableRawPointer?) -> Int32 = { context in
    guard let context else { return 0 }
    let poll = Unmanaged<Poll>.fromOpaque(context).takeUnretainedValue()
    guard poll.error == nil else { return 1 }
    do {
      try poll.body()
      return 0
    } catch {
      poll.error = error
      return 1
    }
  }
}
