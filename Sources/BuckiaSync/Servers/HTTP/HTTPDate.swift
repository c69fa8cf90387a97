/// Dates as HTTP writes them: `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110, section 5.6.7). The two obsolete forms are not read.
package enum HTTPDate {
  private static let months = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
  ]

  /// The time in milliseconds since 1970; nil when it is none.
  package static func milliseconds(_ text: String) -> Int64? {
    let parts = text.split { $0 == " " || $0 == "," || $0 == ":" }
    guard parts.count == 8, parts[7] == "GMT", let day = Int64(parts[1]), let year = Int64(parts[3]),
      let month = months.firstIndex(of: String(parts[2])), let hour = Int64(parts[4]), let minute = Int64(parts[5]),
      let second = Int64(parts[6]), (1...31).contains(day), (0...24).contains(hour), (0...59).contains(minute),
      (0...60).contains(second), (1601...9999).contains(year)
    else { return nil }
    let days = CalendarDate(year: year, month: Int64(month) + 1, day: day).daysSince1970
    return (((days * 24 + hour) * 60 + minute) * 60 + second) * 1000
  }
}
