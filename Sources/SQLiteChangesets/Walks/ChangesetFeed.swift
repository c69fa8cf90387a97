import BuckiaBytes

/// The changes of a changeset as they arrive: one thread reads and checks them, another goes through what has been
/// checked so far. For changes that are all there it says so at once.
///
/// What has arrived is well-formed, but may still turn out not to be what its author has sent: its reader
/// must be ready to take everything back until ``summary()`` has returned.
package final class ChangesetFeed: @unchecked Sendable {
  /// What has arrived.
  package struct Arrival: Sendable {
    /// Tables, sections and counts up to there; the last section may go on.
    package let summary: ChangesetSummary
    /// True if that is all.
    package let isComplete: Bool

    /// The offset behind the last change.
    package var end: Int { summary.sections.last?.changes.upperBound ?? 0 }
  }

  /// All of the changes must be there first: their reader should let go of its locks, wait for the rest and begin
  /// again. The rest takes too long, or how the first of them are applied depends on it.
  package struct Incomplete: Error {
    package init() {}
  }

  /// How long its reader waits in all, in nanoseconds; nil for as long as it takes.
  private let patience: Int64?
  // The mutex guards the five variables below; both live at a fixed address until deinit.
  private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
  private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
  private var known = ChangesetSummary()
  private var isComplete = false
  private var failure: (any Error)?
  private var isAbandoned = false
  private var waited: Int64 = 0

  /// Nothing has arrived yet.
  ///
  /// - Parameter patience: How many milliseconds its reader waits in all before it has stalled; nil for as
  ///   long as it takes.
  package init(patience milliseconds: Int64? = nil) {
    patience = milliseconds.map { $0 * 1_000_000 }
    pthread_mutex_init(mutex, nil)
    pthread_cond_init(condition, nil)
  }

  /// Everything has arrived.
  package convenience init(_ summary: ChangesetSummary) {
    self.init()
    known = summary
    isComplete = true
  }

  deinit {
    pthread_cond_destroy(condition)
    pthread_mutex_destroy(mutex)
    condition.deallocate()
    mutex.deallocate()
  }

  private func locked<Result>(_ body: () throws -> Result) rethrows -> Result {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    return try body()
  }

  // MARK: The thread that reads

  /// Says what has arrived so far.
  ///
  /// - Returns: True if anybody still wants the rest.
  package func publish(_ summary: ChangesetSummary) -> Bool {
    locked {
      known = summary
      pthread_cond_broadcast(condition)
      return !isAbandoned
    }
  }

  /// Says that everything has arrived and is what its author has sent.
  package func finish(_ summary: ChangesetSummary) {
    locked {
      known = summary
      isComplete = true
      pthread_cond_broadcast(condition)
    }
  }

  /// Ends the feed with an error: the rest will not come, or is damaged.
  package func fail(_ error: any Error) {
    locked {
      failure = error
      pthread_cond_broadcast(condition)
    }
  }

  // MARK: The thread that goes through

  /// True if everything has arrived already.
  package var isAllThere: Bool { locked { isComplete } }

  /// Waits until there is more than up to an offset, or all is there.
  ///
  /// - Throws: What `fail` was given; `Incomplete`.
  package func arrival(beyond position: Int) throws -> Arrival {
    try locked {
      while true {
        if let failure { throw failure }
        let arrival = Arrival(summary: known, isComplete: isComplete)
        if isComplete || arrival.end > position { return arrival }
        try wait()
      }
    }
  }

  /// Waits for news, with the mutex held.
  private func wait() throws(Incomplete) {
    guard let patience else {
      pthread_cond_wait(condition, mutex)
      return
    }
    let start = Self.now()
    let deadline = start + patience - waited
    guard deadline > start else { throw Incomplete() }
    var time = timespec(tv_sec: .init(deadline / 1_000_000_000), tv_nsec: .init(deadline % 1_000_000_000))
    pthread_cond_timedwait(condition, mutex, &time)
    waited += max(0, Self.now() - start)
  }

  /// The time in nanoseconds by the clock that conditions use.
  private static func now() -> Int64 {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
  }

  /// Waits until everything is there and checked.
  ///
  /// - Throws: What `fail` was given; `Incomplete`.
  package func summary() throws -> ChangesetSummary {
    try arrival(beyond: .max).summary
  }

  /// Stops the thread that checks the rest.
  package func abandon() { locked { isAbandoned = true } }
}
