import SQLiteChangesets

extension ValueSlice {
  /// Whether text comes back as it was from a database that stores UTF-16.
  ///
  /// Text in a UTF-8 database is whatever bytes were put there. SQLite writes U+FFFD for each that is no UTF-8 when it
  /// converts them, and also for U+FFFE and U+FFFF, which stand for no character.
  func survivesUTF16(in bytes: RawSpan) -> Bool {
    bytes.extracting(payloadRange).withUnsafeBytes { text in
      guard text.contains(where: { $0 >= 0x80 }) else { return true }
      guard String(decoding: text, as: UTF8.self).utf8.elementsEqual(text) else { return false }
      return !text.indices.dropLast(2).contains {
        text[$0] == 0xef && text[$0 + 1] == 0xbf && text[$0 + 2] >= 0xbe
      }
    }
  }
}
