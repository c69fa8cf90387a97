/// The key of a file, as one recipient can unwrap it.
struct Stanza: Equatable, Sendable {
  /// Of what kind the recipient is: the first word.
  var kind: String
  /// What follows it.
  var arguments: [String]
  /// The wrapped key.
  var body: [UInt8]

  /// The stanza as a header has it, with the line feed at its end.
  var text: [UInt8] {
    var text = Array("-> \(([kind] + arguments).joined(separator: " "))\n".utf8)
    let encoded = Base64.encode(body)
    // The last line is shorter than the others, and empty where they hold everything.
    for start in stride(from: 0, through: encoded.count, by: Base64.lineLength) {
      text += encoded[start..<min(encoded.count, start + Base64.lineLength)]
      text.append(UInt8(ascii: "\n"))
    }
    return text
  }
}
