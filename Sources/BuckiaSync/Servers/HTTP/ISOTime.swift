/// A moment in the two forms of ISO 8601 that servers use.
package struct ISOTime: Sendable, Equatable {
  /// Seconds since 1970.
  let seconds: Int64

  init(seconds: Int64) { self.seconds = seconds }

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
  /// - Returns: Milliseconds since 1970; nil when it is no time.
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
