#if GRDB
  import Buckia
  import GRDB

  extension DatabaseWriter {
    /// Makes calls of Buckia that begin and commit transactions of their own.
    ///
    /// Sharing needs that, since what was sent cannot be rolled back. Applying removes files only then, because what
    /// they did is committed. To apply files in a transaction of the app, use ``GRDB/Database/buckia`` in `write`.
    ///
    /// ```swift
    /// let report = try queue.withBuckia { buckia in
    ///   try buckia.processInboundChanges(["inbound"])
    /// }
    /// ```
    ///
    /// It blocks the thread until the database can be written, and the calls are done.
    ///
    /// - Parameters:
    ///   - home: What belongs to the person who uses the database.
    ///   - body: The calls. What it is given can only be used inside it.
    /// - Throws: Whatever `body` throws.
    @discardableResult
    public func withBuckia<Value>(
      home: BuckiaHome = .standard, _ body: (ReplicatedDatabase) throws -> Value
    ) throws -> Value {
      try writeWithoutTransaction { try body($0.buckia(home: home)) }
    }

    /// Makes calls of Buckia that begin and commit transactions of their own, on a thread of its own.
    ///
    /// It does what the synchronous call of the same name does. When the task is cancelled, the present call stops
    /// before the next file, or within a few thousand rows. What it had committed before stays, and observations are
    /// told of it.
    ///
    /// - Parameters:
    ///   - home: What belongs to the person who uses the database.
    ///   - body: The calls. What it is given can only be used inside it.
    /// - Throws: Whatever `body` throws; `CancellationError`, or an `ApplyInterruption` with it as the cause.
    @discardableResult
    public func withBuckia<Value: Sendable>(
      home: BuckiaHome = .standard, _ body: @escaping @Sendable (ReplicatedDatabase) throws -> Value
    ) async throws -> Value {
      // GRDB's own asynchronous access would interrupt statements of Buckia's, and not tell observations of what was
      // committed.
      try await CancellationFlag.onThreadOfItsOwn { cancellation in
        try self.writeWithoutTransaction {
          try body(ReplicatedDatabase($0, copy: nil, home: home, cancellation: cancellation))
        }
      }
    }
  }
#endif
