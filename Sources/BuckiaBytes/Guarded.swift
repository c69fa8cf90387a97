/// A value that one thread at a time can use.
///
/// `@unchecked Sendable`: the mutex guards the value.
package final class Guarded<Value>: @unchecked Sendable {
  // It lives at a fixed address until deinit.
  private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
  private var value: Value

  /// Takes the value that there is in the beginning.
  package init(_ value: Value) {
    self.value = value
    pthread_mutex_init(mutex, nil)
  }

  deinit {
    pthread_mutex_destroy(mutex)
    mutex.deallocate()
  }

  /// Gives the value to `body`, which must not ask for it again.
  package func withLock<Result>(_ body: (inout Value) throws -> Result) rethrows -> Result {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    return try body(&value)
  }
}
