import Dispatch

/// Work that runs on another thread.
package final class BackgroundTask<Input, Output>: @unchecked Sendable {
  private let isDone = DispatchSemaphore(value: 0)
  private let input: Input
  private let work: (Input) throws -> Output
  // Written before the signal, read after it.
  private var result: Result<Output, any Error> = .failure(CancellationError())

  /// Starts the work. `join()` must follow.
  package init(with input: Input, _ work: @escaping (Input) throws -> Output) {
    self.input = input
    self.work = work
    DispatchQueue(label: "SQLiteFiles.BackgroundTask").async {
      self.result = Result { try self.work(self.input) }
      self.isDone.signal()
    }
  }

  /// Waits until the work has ended.
  ///
  /// - Returns: What it has returned.
  /// - Throws: Its error.
  package func join() throws -> Output {
    isDone.wait()
    return try result.get()
  }
}
