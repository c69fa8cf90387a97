extension Double {
  /// The number with so many digits behind the point, rounded: what `%.2f` prints, without Foundation.
  ///
  /// - Parameter places: From 0 to 6.
  package func decimal(places: Int) -> String {
    let scale = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000][places]
    guard let scaled = Int(exactly: (magnitude * Double(scale)).rounded()) else { return String(self) }
    var text = sign == .minus && scaled > 0 ? "-" : ""
    text += String(scaled / scale)
    guard places > 0 else { return text }
    let digits = String(scaled % scale)
    return "\(text).\(String(repeating: "0", count: places - digits.count))\(digits)"
  }

  /// The number with three digits: two behind the point below ten, one below a hundred, none above.
  package var threeDigits: String {
    let size = magnitude
    return decimal(places: size < 9.995 ? 2 : size < 99.95 ? 1 : 0)
  }
}
