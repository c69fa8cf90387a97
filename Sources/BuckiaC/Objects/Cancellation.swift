import Dispatch

/// What `buckia_cancellation` points to: says from one thread to others that work is not wanted any more.
///
/// `@unchecked Sendable`: the lock guards `isSet`.
final class Cancellation: @unchecked Sendable {
  private let lock = DispatchSemaphore(value: 1)
  private var isSet = false

  func cancel() {
    lock.wait()
    isSet = true
    lock.signal()
  }

  var isCancelled: Bool {
    lock.wait()
    defer { lock.signal() }
    return isSet
  }
}
