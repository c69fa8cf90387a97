import Buckia

/// Formats numbers for titles and sizes.
package enum Quantity {
  /// A number with separators: 1,000,000.
  package static func grouped(_ number: Int) -> String {
    var groups: [String] = []
    var rest = number.magnitude
    while rest >= 1_000 {
      let digits = String(rest % 1_000)
      groups.insert(String(repeating: "0", count: 3 - digits.count) + digits, at: 0)
      rest /= 1_000
    }
    groups.insert("\(rest)", at: 0)
    return (number < 0 ? "-" : "") + groups.joined(separator: ",")
  }

  /// A size in decimal units, three digits.
  package static func size(_ bytes: Int) -> String {
    var value = Double(bytes)
    var unit = "bytes"
    for next in ["kB", "MB", "GB", "TB"] where value >= 999.5 {
      value /= 1_000
      unit = next
    }
    if unit == "bytes" { return "\(bytes) bytes" }
    return "\(value.threeDigits) \(unit)"
  }
}
