import Buckia

/// The time at which a day begins, in seconds since 1970.
private func secondsToDay(_ day: Int64, month: Int64, year: Int64) -> Int64 {
  var date = tm()
  date.tm_year = Int32(year) - 1900
  date.tm_mon = Int32(month) - 1
  date.tm_mday = Int32(day)
  return Int64(timegm(&date))
}

/// Dates as HTTP writes them: `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110, section 5.6.7). The two obsolete forms are not read.
package enum HTTPDate {
  private static let months = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
  ]

  /// The time in milliseconds since 1970; nil if it is none.
  package static func milliseconds(_ text: String) -> Int64? {
    let parts = text.split { $0 == " " || $0 == "," || $0 == ":" }
    guard parts.count == 8, parts[7] == "GMT", let day = Int64(parts[1]), let year = Int64(parts[3]),
      let month = months.firstIndex(of: String(parts[2])), let hour = Int64(parts[4]), let minute = Int64(parts[5]),
      let second = Int64(parts[6]), (1...31).contains(day), (0...24).contains(hour), (0...59).contains(minute),
      (0...60).contains(second), (1601...9999).contains(year)
    else { return nil }
    let start = secondsToDay(day, month: Int64(month) + 1, year: year)
    return (start + (hour * 60 + minute) * 60 + second) * 1000
  }
}

/// A moment in the two forms of ISO 8601 that servers use.
package struct ISOTime: Sendable, Equatable {
  /// Seconds since 1970.
  let seconds: Int64

  /// `20150830T123600Z`
  var basic: String { UTCTime(unixSeconds: seconds).rfc3339.filter { $0 != "-" && $0 != ":" } }

  /// `20150830`
  var day: String { String(basic.prefix(8)) }

  /// Reads `2015-08-30T12:36:00.000Z`, with or without fractions, in any zone that is given by hours and minutes.
  ///
  /// - Returns: Milliseconds since 1970; nil if it is no time.
  static func milliseconds(_ text: String) -> Int64? {
    let halves = text.split(separator: "T", maxSplits: 1)
    guard halves.count == 2 else { return nil }
    let day = halves[0].split(separator: "-").compactMap { Int64($0) }
    guard day.count == 3, (1...9999).contains(day[0]), (1...12).contains(day[1]), (1...31).contains(day[2]) else {
      return nil
    }
    var clock = halves[1]
    var offset: Int64 = 0
    if clock.hasSuffix("Z") {
      clock = clock.dropLast()
    } else if let sign = clock.lastIndex(where: { $0 == "+" || $0 == "-" }) {
      let zone = clock[clock.index(after: sign)...].split(separator: ":").compactMap { Int64($0) }
      guard zone.count == 2, (0...24).contains(zone[0]), (0...59).contains(zone[1]) else { return nil }
      offset = (zone[0] * 60 + zone[1]) * (clock[sign] == "-" ? -1 : 1)
      clock = clock[..<sign]
    }
    let parts = clock.split(separator: ":")
    guard parts.count == 3, let hour = Int64(parts[0]), let minute = Int64(parts[1]), let second = Double(parts[2]),
      (0...24).contains(hour), (0...59).contains(minute), (0..<61).contains(second)
    else { return nil }
    let start = secondsToDay(day[2], month: day[1], year: day[0])
    return start * 1000 + (hour * 60 + minute - offset) * 60_000 + Int64((second * 1000).rounded())
  }
}
