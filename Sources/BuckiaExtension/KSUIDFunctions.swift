import Buckia
import SQLiteConnections

extension SQLiteConnection {
  /// Adds `buckia_ksuid()`, a new id, and `buckia_ksuid_time(id)`, when an id was made, in seconds since 1970.
  func addKSUIDFunctions() throws(SQLiteError) {
    try addFunction("buckia_ksuid", argumentCounts: 0...0, access: .innocuous) { _ in
      .text(try SQLiteFunctionFailure.wrapping { try ProcessClock.shared.next().description })
    }
    try addFunction("buckia_ksuid_time", argumentCounts: 1...1, access: .innocuous, isDeterministic: true) {
      arguments in
      guard let text = arguments.text(at: 0) else { return .null }
      return .integer(try SQLiteFunctionFailure.wrapping { try KSUID(parsing: text).unixSeconds })
    }
  }
}

/// Creates ids, each greater than all earlier ones of this process. Nothing is stored on disk.
///
/// `@unchecked Sendable`: the mutex guards the clock.
private final class ProcessClock: @unchecked Sendable {
  static let shared = ProcessClock()

  // It lives as long as the process.
  private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
  private var clock = KSUIDClock()

  private init() { pthread_mutex_init(mutex, nil) }

  func next() throws(KSUIDError) -> KSUID {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    var generator = SystemRandomNumberGenerator()
    return try clock.next(unixSeconds: Int64(time(nil)), using: &generator)
  }
}
