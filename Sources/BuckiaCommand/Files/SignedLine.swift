import Buckia

/// A card, a rotation or an invitation that was named on the command line: the line itself, as a message has it or a scanner of QR codes
/// gives it, a file, or standard input.
enum SignedLine {
  /// The line.
  case text(String)
  /// The file that has it.
  case file(String)

  /// What an argument stands for. Standard input is read as far as a line can go.
  init(_ argument: String) {
    if argument == ArgumentFile.standardInput {
      var text = ""
      while text.utf8.count <= IdentityCard.textByteLimit, let line = readLine() { text += line }
      self = .text(text)
    } else if Self.isLine(argument) {
      self = .text(argument)
    } else {
      self = .file(argument)
    }
  }

  /// Whether it is a line, perhaps with white space around it, and not the path of a file.
  private static func isLine(_ argument: String) -> Bool {
    let visible = argument.drop { $0.isWhitespace }
    return visible.hasPrefix("buckia-") && visible.contains(":")
  }
}
