import BuckiaBytes

/// The functions that SQLite has kept although they were to be removed, because a statement of their connection was running.
///
/// SQLite does not replace such a function while any statement runs either, and an extension is never called but by a statement.
/// So a new function of the same name takes the place inside of the kept one.
///
/// `@unchecked Sendable`: the mutex guards the dictionary. A body is only changed on the thread that uses its connection.
final class KeptFunctions: @unchecked Sendable {
  static let shared = KeptFunctions()

  struct Name: Hashable {
    let connection: OpaquePointer
    let name: String
    let argumentCount: Int32
  }

  private struct Kept {
    let identity: ObjectIdentifier
    weak var body: SQLiteFunctionBody?
  }

  // It lives as long as the process.
  private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
  private var kept: [Name: Kept] = [:]

  private init() { pthread_mutex_init(mutex, nil) }

  private func locked<Result>(_ body: () -> Result) -> Result {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    return body()
  }

  /// Notes that SQLite has kept a function.
  func note(_ body: SQLiteFunctionBody, as name: Name) {
    body.keptName = name
    locked { kept[name] = Kept(identity: ObjectIdentifier(body), body: body) }
  }

  /// Gives a kept function what it does from now on.
  ///
  /// - Returns: It; nil when no function of that name was kept.
  func reuse(_ name: Name, for call: @escaping SQLiteFunctionBody.Call) -> SQLiteFunctionBody? {
    guard let body = locked({ kept[name]?.body }) else { return nil }
    body.call = call
    return body
  }

  /// Notes that SQLite releases a function. One of the same name that was noted since stays: a connection can be opened at the
  /// address of one that was closed.
  func forget(_ name: Name, _ identity: ObjectIdentifier) {
    locked { if kept[name]?.identity == identity { kept[name] = nil } }
  }
}
