import NIOConcurrencyHelpers

/// Lets so many transfers be under way at once, however many there are to do: some servers stand two or three.
final class TransferSlots: Sendable {
  private struct State {
    var free: Int
    var waiting: [CheckedContinuation<Void, Never>] = []
  }

  private let state: NIOLockedValueBox<State>

  init(_ count: Int) { state = NIOLockedValueBox(State(free: max(1, count))) }

  /// Does something when there is room for it. Whoever has waited longest is next.
  func run<Result: Sendable>(_ work: () async throws -> Result) async throws -> Result {
    await begin()
    defer { end() }
    try Task.checkCancellation()
    return try await work()
  }

  private func begin() async {
    await withCheckedContinuation { continuation in
      let isFree = state.withLockedValue { state in
        guard state.free == 0 else {
          state.free -= 1
          return true
        }
        state.waiting.append(continuation)
        return false
      }
      if isFree { continuation.resume() }
    }
  }

  private func end() {
    let next = state.withLockedValue { state -> CheckedContinuation<Void, Never>? in
      guard state.waiting.isEmpty else { return state.waiting.removeFirst() }
      state.free += 1
      return nil
    }
    next?.resume()
  }
}
