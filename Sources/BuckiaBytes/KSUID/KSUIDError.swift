/// Why bytes or text are not an id, or why no id can be generated.
public struct KSUIDError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The kinds of error.
  public enum Code: String, Sendable {
    /// The number of bytes is not 20.
    case wrongByteCount
    /// The length of the text is not 27 characters.
    case wrongLength
    /// The text contains a character other than 0-9, A-Z and a-z.
    case wrongCharacter
    /// The text is a number of more than 160 bits.
    case aboveMaximum
    /// The timestamp of an id cannot hold the time.
    case timeOutOfRange
    /// The greatest possible id has been used.
    case exhausted
  }

  /// The kind of error.
  public let code: Code
  /// The invalid text, count or time: at most 60 characters. Everything but printable ASCII is escaped, because the text
  /// may be the name of a file from another person.
  public let text: String

  init(_ code: Code, text: some StringProtocol) {
    self.code = code
    var shown = ""
    for (index, scalar) in text.unicodeScalars.prefix(61).enumerated() {
      if index == 60 {
        shown += "…"
      } else if (0x20..<0x7f).contains(scalar.value), scalar != "\"", scalar != "\\" {
        shown.unicodeScalars.append(scalar)
      } else {
        shown += "\\u{\(String(scalar.value, radix: 16))}"
      }
    }
    self.text = shown
  }

  /// What is wrong and what would be valid, in English.
  public var description: String {
    switch code {
    case .wrongByteCount: "an id has 20 bytes, not \(text)"
    case .wrongLength: "\"\(text)\" is not an id: an id has 27 characters"
    case .wrongCharacter: "\"\(text)\" is not an id: an id has only the characters 0-9, A-Z and a-z"
    case .aboveMaximum: "\"\(text)\" is not an id: the greatest one is \(KSUID.maximum)"
    case .timeOutOfRange:
      "no id can have the Unix time \(text): ids reach from May 2014 to June 2150; check the clock"
    case .exhausted: "no id is greater than \(text), which has been seen: check where that id came from"
    }
  }
}
