/// The part of an address that only those know who are to come in: 160 random bits, as 40 hexadecimal digits.
package struct AccessToken: Sendable {
  /// The digits, as they stand in addresses.
  package let text: String

  private static let byteCount = 20

  /// Makes a token of the system's random numbers.
  package init() {
    var generator = SystemRandomNumberGenerator()
    let digits = Array("0123456789abcdef".utf8)
    var text: [UInt8] = []
    for _ in 0..<Self.byteCount {
      let byte = UInt8.random(in: .min ... .max, using: &generator)
      text.append(digits[Int(byte >> 4)])
      text.append(digits[Int(byte & 15)])
    }
    self.text = String(decoding: text, as: UTF8.self)
  }

  /// Whether a text is the token. How long the answer takes says nothing about where they differ.
  func matches(_ other: some Collection<UInt8>) -> Bool {
    guard other.count == text.utf8.count else { return false }
    var difference: UInt8 = 0
    for (mine, theirs) in zip(text.utf8, other) { difference |= mine ^ theirs }
    return difference == 0
  }
}
