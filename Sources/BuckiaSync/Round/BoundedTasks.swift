/// Does something for each of many items, several at once.
///
/// - Parameters:
///   - items: The items.
///   - limit: How many at once.
///   - work: What is done for each. What it throws is kept with the item, and stops nothing but itself; only a cancellation stops all.
///   - finish: Is given what came of each, one at a time, in the order in which they are done. May throw to stop all.
/// - Throws: `CancellationError`, and what `finish` throws.
package func forEachConcurrently<Item: Sendable, Result: Sendable>(
  _ items: [Item], limit: Int, _ work: @escaping @Sendable (Item) async throws -> Result,
  finish: (Item, Swift.Result<Result, any Error>) async throws -> Void
) async throws {
  try await withThrowingTaskGroup(of: (Int, Swift.Result<Result, any Error>).self) { group in
    var next = 0
    func add() {
      guard next < items.count else { return }
      let (number, item) = (next, items[next])
      next += 1
      group.addTask {
        do { return (number, .success(try await work(item))) } catch { return (number, .failure(error)) }
      }
    }
    for _ in 0..<max(1, limit) { add() }
    while let (number, result) = try await group.next() {
      if case .failure(let error) = result, error is CancellationError { throw error }
      try await finish(items[number], result)
      try Task.checkCancellation()
      add()
    }
  }
}
