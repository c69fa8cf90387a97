import BuckiaBytes

/// Reads a header strictly: nothing is accepted that would not be written the same way.
struct HeaderReader {
  private let input: LineInput
  private var line: [UInt8] = []
  private var sealed: [UInt8] = []

  /// Reads the header at the beginning of an input, which then stands behind it.
  ///
  /// - Throws: `ByteStreamError` with code `notEncrypted` or `malformedHeader`, or the input's own.
  static func read(_ input: LineInput) throws(ByteStreamError) -> AgeHeader {
    var reader = HeaderReader(input: input)
    return try reader.header()
  }

  private init(input: LineInput) { self.input = input }

  private mutating func header() throws(ByteStreamError) -> AgeHeader {
    try readIntro()
    var stanzas: [Stanza] = []
    while true {
      try readLine()
      if line.starts(with: AgeHeader.end) {
        guard !stanzas.isEmpty else { throw Self.malformed("it names no recipient") }
        sealed += AgeHeader.end
        return AgeHeader(stanzas: stanzas, sealed: sealed, seal: try seal())
      }
      guard stanzas.count < AgeHeader.maximumStanzas else {
        throw Self.malformed("it names more than \(AgeHeader.maximumStanzas) recipients")
      }
      stanzas.append(try stanza())
    }
  }

  private mutating func readIntro() throws(ByteStreamError) {
    let ending = try input.readLine(into: &line, limit: 128)
    guard line.starts(with: AgeHeader.introPrefix) else {
      throw ByteStreamError(.notEncrypted, "it is no file that was encrypted with age")
    }
    guard line == AgeHeader.intro else {
      throw ByteStreamError(.notEncrypted, "it is encrypted in another version of age's format than v1, or damaged")
    }
    guard case .newline = ending else { throw Self.malformed("it is cut off") }
    keepLine()
  }

  /// Reads the wrapped key that begins with the current line.
  private mutating func stanza() throws(ByteStreamError) -> Stanza {
    let words = line.split(separator: UInt8(ascii: " "), omittingEmptySubsequences: false)
    guard words.count >= 2, words[0].elementsEqual("->".utf8),
      words.dropFirst().allSatisfy({ word in !word.isEmpty && word.allSatisfy { (33...126).contains($0) } })
    else { throw Self.malformed("a recipient's line is not as it must be") }
    let texts = words.dropFirst().map { String(decoding: $0, as: UTF8.self) }
    var stanza = Stanza(kind: texts[0], arguments: Array(texts.dropFirst()), body: [])
    keepLine()
    repeat {
      try readLine()
      guard line.count <= Base64.lineLength, Base64.decode(line, into: &stanza.body) else {
        throw Self.malformed("a wrapped key is not as it must be")
      }
      keepLine()
    } while line.count == Base64.lineLength
    return stanza
  }

  /// Takes the seal from the current line.
  private func seal() throws(ByteStreamError) -> [UInt8] {
    let prefix = AgeHeader.end + [UInt8(ascii: " ")]
    guard line.starts(with: prefix), let seal = Base64.decode(line[prefix.count...]), seal.count == 32 else {
      throw Self.malformed("its last line is not as it must be")
    }
    return seal
  }

  private mutating func readLine() throws(ByteStreamError) {
    switch try input.readLine(into: &line, limit: AgeHeader.maximumBytes - sealed.count) {
    case .newline: return
    case .end: throw Self.malformed("it is cut off")
    case .tooLong: throw Self.malformed("it is longer than \(AgeHeader.maximumBytes >> 10) KB")
    }
  }

  private mutating func keepLine() {
    sealed += line
    sealed.append(UInt8(ascii: "\n"))
  }

  /// A header that breaks a rule.
  static func malformed(_ what: String) -> ByteStreamError {
    ByteStreamError(.malformedHeader, "its header is damaged: \(what)")
  }
}
