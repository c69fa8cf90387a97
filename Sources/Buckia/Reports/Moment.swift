#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A moment, in UTC: what two people in two places can compare.
package struct Moment: CustomStringConvertible {
  private let unixSeconds: Int64

  /// Takes seconds since 1970.
  package init(unixSeconds: Int64) { self.unixSeconds = unixSeconds }

  /// Takes milliseconds since 1970.
  package init(unixMilliseconds: Int64) {
    // Rounded down, before 1970 too.
    self.init(unixSeconds: unixMilliseconds / 1000 - (unixMilliseconds % 1000 < 0 ? 1 : 0))
  }

  /// For people: `2026-03-01 12:30:05 UTC`.
  package var description: String { rfc3339.replacing("T", with: " ").replacing("Z", with: " UTC") }

  /// As [RFC 3339](https://www.rfc-editor.org/rfc/rfc3339) has it, for programs: `2026-03-01T12:30:05Z`.
  package var rfc3339: String { Date(timeIntervalSince1970: Double(unixSeconds)).formatted(.iso8601) }
}
