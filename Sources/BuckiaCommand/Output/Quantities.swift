import Buckia

extension BinaryInteger {
  /// The number with its thousands set apart: 1,234,567.
  var grouped: String {
    let digits = String(magnitude)
    var text = ""
    for (index, digit) in digits.enumerated() {
      if index > 0, (digits.count - index) % 3 == 0 { text.append(",") }
      text.append(digit)
    }
    return self < 0 ? "-" + text : text
  }

  /// The number and a noun that agrees with it: "1 row", "2 rows".
  func counted(_ singular: String) -> String {
    "\(grouped) \(self == 1 ? singular : singular + "s")"
  }
}

/// A size as people read it.
struct ByteCount: CustomStringConvertible {
  let bytes: Int

  init(_ bytes: Int) { self.bytes = bytes }

  /// In bytes below 10,000, then in decimal units with three digits.
  var description: String {
    guard bytes >= 10_000 else { return bytes.counted("byte") }
    var value = Double(bytes)
    var unit = ""
    for next in ["kB", "MB", "GB", "TB"] where unit.isEmpty || value >= 999.5 {
      value /= 1000
      unit = next
    }
    return "\(value.threeDigits) \(unit)"
  }
}

/// A time span as people read it.
struct Elapsed: CustomStringConvertible {
  let seconds: Double

  init(_ seconds: Double) { self.seconds = seconds }

  /// Milliseconds below a second, two digits of seconds below a minute, then minutes and seconds.
  var description: String {
    switch seconds {
    case ..<0.0005: "under 1 ms"
    case ..<0.9995: "\(Int((seconds * 1000).rounded())) ms"
    case ..<59.995: "\(seconds.decimal(places: 2)) s"
    default: "\(Int(seconds.rounded()) / 60) min \(Int(seconds.rounded()) % 60) s"
    }
  }
}

/// How long ago something was, in the largest unit that it has two of.
struct Age: CustomStringConvertible {
  let seconds: Int64

  init(seconds: Int64) { self.seconds = seconds }

  var description: String {
    for (unit, length) in [("day", Int64(86_400)), ("hour", 3_600), ("minute", 60)] where seconds >= 2 * length {
      return (seconds / length).counted(unit)
    }
    return seconds.counted("second")
  }
}
