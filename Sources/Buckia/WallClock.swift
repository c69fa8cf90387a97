import SQLiteConnections

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The time, for the façade and the rounds of sync; everything below them is given the time.
package enum WallClock {
  /// Milliseconds since 1970.
  package static var unixMilliseconds: Int64 {
    var now = timespec()
    clock_gettime(CLOCK_REALTIME, &now)
    return Int64(now.tv_sec) * 1_000 + Int64(now.tv_nsec) / 1_000_000
  }

  /// How long `body` takes, in seconds.
  static func timing<Result>(_ body: () throws -> Result) rethrows -> (result: Result, seconds: Double) {
    let start = ContinuousClock.now
    let result = try body()
    return (result, (ContinuousClock.now - start) / .seconds(1))
  }
}

/// A date and time in UTC, which people in different places can compare.
package struct UTCTime: CustomStringConvertible {
  private let unixSeconds: Int64

  /// Creates a date from seconds since 1970.
  package init(unixSeconds: Int64) { self.unixSeconds = unixSeconds }

  /// Creates a date from milliseconds since 1970.
  package init(unixMilliseconds: Int64) {
    // Rounded down, before 1970 too.
    self.init(unixSeconds: unixMilliseconds / 1000 - (unixMilliseconds % 1000 < 0 ? 1 : 0))
  }

  /// Reads a time in UTC: `2026-03-01T12:30:05Z`, whose end may be missing, with a space in the place of the `T`.
  ///
  /// - Returns: nil for other text.
  package init?(parsing text: String) {
    let text = text.replacing("Z", with: "").replacing(" UTC", with: "").replacing("T", with: " ")
    let parts = text.split(separator: " ", omittingEmptySubsequences: false)
    let missing = ["", "00:00:00", ":00:00", ":00", ""]
    guard parts.count <= 2 else { return nil }
    let clock = parts.count == 2 ? parts[1] : ""
    let count = clock.split(separator: ":").count
    guard count < 4, clock.isEmpty || clock.split(separator: ":").allSatisfy({ $0.utf8.count == 2 }) else { return nil }
    let whole = "\(parts[0])T\(clock)\(missing[clock.isEmpty ? 1 : count + 1])Z"
    do {
      let date = try Date(whole, strategy: .iso8601)
      self.init(unixSeconds: Int64(date.timeIntervalSince1970))
    } catch { return nil }
  }

  /// Milliseconds since 1970.
  package var unixMilliseconds: Int64 { unixSeconds * 1_000 }

  /// For people: `2026-03-01 12:30:05 UTC`.
  package var description: String { rfc3339.replacing("T", with: " ").replacing("Z", with: " UTC") }

  /// As [RFC 3339](https://www.rfc-editor.org/rfc/rfc3339) has it, for programs: `2026-03-01T12:30:05Z`.
  package var rfc3339: String { Date(timeIntervalSince1970: Double(unixSeconds)).formatted(.iso8601) }
}

extension Warning {
  /// The warning about a clock that is behind the newest ledger entry, by more than clocks may differ.
  ///
  /// Diffs that are made meanwhile have correct ids, but others treat them as files from the future, and let them wait.
  ///
  /// - Parameters:
  ///   - id: An id that was made just now; nil for none. It is greater than all that were made before it.
  ///   - connection: The database.
  ///   - now: The wall clock, in milliseconds since 1970.
  /// - Throws: `SQLiteError`; `LedgerError` for a newer ledger.
  static func clockBehind(
    _ id: KSUID? = nil, on connection: borrowing SQLiteConnection, now: Int64 = WallClock.unixMilliseconds
  ) throws -> Warning? {
    let ids = try [id, LedgerEntries.newestID(on: connection)].compactMap { $0?.unixSeconds }
    let newest = try (ids + [LedgerEntries.newestTime(on: connection)].compactMap { $0.map { $0 / 1_000 } }).max()
    let seconds = now / 1_000
    guard let newest, newest > seconds + KSUIDClock.tolerance else { return nil }
    return Warning(.clockBehind, UTCTime(unixSeconds: seconds).rfc3339, UTCTime(unixSeconds: newest).rfc3339)
  }
}
