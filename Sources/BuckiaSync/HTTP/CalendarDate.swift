/// A day of the Gregorian calendar. The arithmetic is that of H. Hinnant, "chrono-Compatible Low-Level Date Algorithms".
struct CalendarDate: Equatable {
  let year: Int64
  let month: Int64
  let day: Int64

  /// How many days after 1 January 1970.
  var daysSince1970: Int64 {
    let shifted = month <= 2 ? year - 1 : year
    let era = (shifted >= 0 ? shifted : shifted - 399) / 400
    let yearOfEra = shifted - era * 400
    let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
    return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
  }

}

extension CalendarDate {
  /// The day, so many days after 1 January 1970.
  init(daysSince1970 days: Int64) {
    let shifted = days + 719_468
    let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
    let dayOfEra = shifted - era * 146_097
    let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let shiftedMonth = (5 * dayOfYear + 2) / 153
    let month = shiftedMonth + (shiftedMonth < 10 ? 3 : -9)
    self.init(
      year: yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month: month,
      day: dayOfYear - (153 * shiftedMonth + 2) / 5 + 1)
  }
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
    let days = CalendarDate(year: year, month: Int64(month) + 1, day: day).daysSince1970
    return (((days * 24 + hour) * 60 + minute) * 60 + second) * 1000
  }
}

/// A moment in the two forms of ISO 8601 that servers use.
package struct ISOTime: Sendable, Equatable {
  /// Seconds since 1970.
  let seconds: Int64

  private var parts: (CalendarDate, hour: Int64, minute: Int64, second: Int64) {
    let days = seconds >= 0 ? seconds / 86_400 : (seconds - 86_399) / 86_400
    let rest = seconds - days * 86_400
    return (CalendarDate(daysSince1970: days), rest / 3600, rest / 60 % 60, rest % 60)
  }

  private static func padded(_ number: Int64, _ width: Int = 2) -> String {
    let digits = String(number)
    return String(repeating: "0", count: max(0, width - digits.count)) + digits
  }

  /// `20150830T123600Z`
  var basic: String {
    let (_, hour, minute, second) = parts
    return day + "T" + [hour, minute, second].map { Self.padded($0) }.joined() + "Z"
  }

  /// `20150830`
  var day: String {
    let date = parts.0
    return Self.padded(date.year, 4) + Self.padded(date.month) + Self.padded(date.day)
  }

  /// Reads `2015-08-30T12:36:00.000Z`, with or without fractions, in any zone that is given by hours and minutes.
  ///
  /// - Returns: Milliseconds since 1970; nil if it is no time.
  static func milliseconds(_ text: String) -> Int64? {
    let halves = text.split(separator: "T", maxSplits: 1)
    guard halves.count == 2 else { return nil }
    let day = halves[0].split(separator: "-").compactMap { Int64($0) }
    guard day.count == 3, (1...12).contains(day[1]), (1...31).contains(day[2]) else { return nil }
    var clock = halves[1]
    var offset: Int64 = 0
    if clock.hasSuffix("Z") {
      clock = clock.dropLast()
    } else if let sign = clock.lastIndex(where: { $0 == "+" || $0 == "-" }) {
      let zone = clock[clock.index(after: sign)...].split(separator: ":").compactMap { Int64($0) }
      guard zone.count == 2 else { return nil }
      offset = (zone[0] * 60 + zone[1]) * (clock[sign] == "-" ? -1 : 1)
      clock = clock[..<sign]
    }
    let parts = clock.split(separator: ":")
    guard parts.count == 3, let hour = Int64(parts[0]), let minute = Int64(parts[1]), let second = Double(parts[2]),
      (0...24).contains(hour), (0...59).contains(minute), (0..<61).contains(second)
    else { return nil }
    let days = CalendarDate(year: day[0], month: day[1], day: day[2]).daysSince1970
    return ((days * 24 + hour) * 60 + minute - offset) * 60_000 + Int64((second * 1000).rounded())
  }
}
