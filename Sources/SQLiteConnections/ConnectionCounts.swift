import BuckiaBytes

/// How often something goes on at the moment on each connection of the process.
///
/// `@unchecked Sendable`: the mutex guards the counts.
final class ConnectionCounts: @unchecked Sendable {
  // It lives at a fixed address until deinit.
  private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
  /// The counts above 0. On a connection that is closed all has ended before.
  private var counts: [OpaquePointer: Int] = [:]

  init() { pthread_mutex_init(mutex, nil) }

  deinit {
    pthread_mutex_destroy(mutex)
    mutex.deallocate()
  }

  /// The count of a connection.
  subscript(_ connection: OpaquePointer) -> Int { locked { counts[connection, default: 0] } }

  /// Adds one to the count of a connection.
  func begin(_ connection: OpaquePointer) { locked { counts[connection, default: 0] += 1 } }

  /// Takes one from the count of a connection.
  ///
  /// - Returns: What is left of it.
  @discardableResult
  func end(_ connection: OpaquePointer) -> Int {
    locked {
      let left = max(0, counts[connection, default: 0] - 1)
      counts[connection] = left > 0 ? left : nil
      return left
    }
  }

  private func locked<Value>(_ body: () -> Value) -> Value {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    return body()
  }
}
