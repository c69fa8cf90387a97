/// The lines around encrypted bytes that are written as text: <https://www.rfc-editor.org/rfc/rfc7468.html>.
enum Armor {
  static let begin = Array("-----BEGIN AGE ENCRYPTED FILE-----".utf8)
  static let end = Array("-----END AGE ENCRYPTED FILE-----".utf8)
  /// How much white space may stand before and behind them, each.
  static let maximumWhitespace = 1024

  /// Whether a byte is white space.
  static func isWhitespace(_ byte: UInt8) -> Bool { byte == 32 || (9...13).contains(byte) }
}
