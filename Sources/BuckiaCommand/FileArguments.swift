import ArgumentParser
import Buckia

/// A file that was named on the command line, or standard input for `-`.
enum ArgumentFile {
  /// The argument for standard input.
  static let standardInput = "-"

  /// The source for an argument. Standard input is read to its end.
  ///
  /// - Throws: `BuckiaError` when standard input cannot be read.
  static func source(_ argument: String) throws -> InboundSource {
    guard argument == standardInput else { return .path(argument) }
    return .spooled(try SpooledInput.standardInput())
  }

  /// The same for several files, of which one may be standard input.
  static func sources(_ arguments: [String]) throws -> [InboundSource] {
    // There is only one standard input, and it ends only once.
    let input = arguments.contains(standardInput) ? try SpooledInput.standardInput() : nil
    return arguments.map { argument -> InboundSource in
      if argument == standardInput, let input { .spooled(input) } else { .path(argument) }
    }
  }

  /// The source of bytes to encrypt or decrypt, or of a passphrase.
  static func cipherSource(_ argument: String) -> CipherSource {
    argument == standardInput ? .standardInput : .path(argument)
  }

  /// The passphrase in a file.
  static func passphrase(_ argument: String) throws -> [UInt8] { try cipherSource(argument).passphrase() }

  /// True if there is such a file.
  static func isThere(_ argument: String) -> Bool { FileManager.default.fileExists(atPath: argument) }

  /// The file, for people.
  static func name(of argument: String) -> String { argument == standardInput ? "standard input" : argument }
}

extension ArgumentFile {
  /// Reads a card, a rotation or an invitation that was named on the command line: the line itself, as a message has it or a scanner
  /// of QR codes gives it, a file, or standard input, which is read as far as a line can go.
  ///
  /// - Parameters:
  ///   - line: Reads the line.
  ///   - file: Reads the file of a path.
  static func signedLine<Value>(
    _ argument: String, line: (String) throws -> Value, file: (String) throws -> Value
  ) throws -> Value {
    if argument == standardInput {
      var text = ""
      while text.utf8.count <= IdentityCard.textByteLimit, let line = readLine(strippingNewline: false) { text += line }
      return try line(text)
    }
    // Perhaps with white space around it.
    let visible = argument.drop { $0.isWhitespace }
    let isLine = visible.hasPrefix("buckia-") && visible.contains(":")
    return try isLine ? line(argument) : file(argument)
  }
}

extension String {
  /// The parts before and after the first such character, or the last one; nil if there is none.
  func parts(beside separator: Character, last isLast: Bool = false) -> (before: String, behind: String)? {
    guard let place = isLast ? lastIndex(of: separator) : firstIndex(of: separator) else { return nil }
    return (String(self[..<place]), String(self[index(after: place)...]))
  }

  /// The last part of a path.
  var fileName: String { split(separator: "/").last.map(String.init) ?? self }

  /// The folder that a path lies in; empty for the current one.
  var folderOfPath: String {
    guard let slash = utf8.lastIndex(of: UInt8(ascii: "/")) else { return "" }
    return slash == startIndex ? "/" : String(self[..<slash])
  }

  /// The text as one word of a shell command, escaped for printing: suggested commands can be pasted.
  var shellQuoted: String {
    let plain = unicodeScalars.allSatisfy {
      !$0.isASCII || $0.properties.isAlphabetic || "0123456789/._-+=:@".unicodeScalars.contains($0)
    }
    guard isEmpty || !plain else { return escaped }
    let parts = split(separator: "'", omittingEmptySubsequences: false)
    return "'" + parts.map(\.escaped).joined(separator: #"'\''"#) + "'"
  }
}
