import BuckiaBytes
import Dispatch
import NIOConcurrencyHelpers
import NIOCore
import NIOHTTP1
import NIOPosix

/// The secret part of an address: 160 random bits, as 40 hexadecimal digits.
struct PageToken: Sendable {
  /// The digits for addresses.
  let text: String

  private static let byteCount = 20

  /// Creates a random token.
  init() {
    var generator = SystemRandomNumberGenerator()
    text = HexText.lowercase((0..<Self.byteCount).map { _ in UInt8.random(in: .min ... .max, using: &generator) })
  }

  /// True if a text is the token. The time of the comparison does not reveal where they differ.
  func matches(_ other: some Collection<UInt8>) -> Bool {
    guard other.count == text.utf8.count else { return false }
    var difference: UInt8 = 0
    for (mine, theirs) in zip(text.utf8, other) { difference |= mine ^ theirs }
    return difference == 0
  }
}
