/// Why something is no id, or why no id can be made.
public struct KSUIDError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The reasons that are told apart.
  public enum Code: String, Sendable {
    /// Binary ids have 20 bytes.
    case wrongByteCount
    /// Ids as text have 27 characters.
    case wrongLength
    /// A character outside 0-9, A-Z, a-z.
    case wrongCharacter
    /// The text stands for a number of more than 160 bits.
    case aboveMaximum
    /// A time that the 32 bits of an id cannot hold.
    case timeOutOfRange
    /// No id is greater than the ones already seen.
    case exhausted
  }

  /// What is wrong.
  public let code: Code
  /// The text, count or time it is about, at most 60 characters of it, with all but printable ASCII escaped: it may
  /// come from a stranger's file name.
  public let text: String

  /// Makes an error about a text.
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

  /// A sentence for people: what is wrong, with what, and what would be right.
  public var description: String {
    switch code {
    case .wrongByteCount: "an id has 20 bytes, not \(text)"
    case .wrongLength: "\"\(text)\" is no id: an id has 27 characters"
    case .wrongCharacter: "\"\(text)\" is no id: only 0-9, A-Z and a-z may stand in one"
    case .aboveMaximum: "\"\(text)\" is no id: the greatest one is \(KSUID.maximum)"
    case .timeOutOfRange:
      "no id can be made for second \(text) of Unix time: ids reach from May 2014 to June 2150; check the clock"
    case .exhausted: "no id is greater than \(text), which has been seen: check where that id came from"
    }
  }
}
