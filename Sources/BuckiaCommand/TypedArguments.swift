import ArgumentParser
import Buckia

/// The arguments as they were typed, before anything is made of them.
enum TypedArguments {
  /// Makes sure that every argument is UTF-8, since text is all that can be made of it.
  ///
  /// A path can be any bytes. Repaired to text it would be another one, which does not exist.
  ///
  /// - Throws: `ValidationError` that shows the bytes.
  static func requireUTF8() throws {
    for place in 1..<max(1, Int(CommandLine.argc)) {
      guard let argument = CommandLine.unsafeArgv[place] else { continue }
      var bytes: [UInt8] = []
      // Sound: each argument ends with a NUL.
      while argument[bytes.count] != 0 { bytes.append(UInt8(bitPattern: argument[bytes.count])) }
      guard !String(decoding: bytes, as: UTF8.self).utf8.elementsEqual(bytes) else { continue }
      let shown = bytes.map { byte in
        (0x20..<0x7f).contains(byte)
          ? String(UnicodeScalar(byte)) : "\\x" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
      }
      throw ValidationError(
        "The argument '\(shown.joined())' is not UTF-8, and no other paths can be given. Rename the file, or give the folder that it is in."
      )
    }
  }

  /// A message with what was typed made harmless in it: a control character could rewrite the terminal, a line end forge a
  /// line of ours.
  static func escaped(in message: String) -> String {
    var message = message
    for argument in CommandLine.arguments.dropFirst() {
      // The parser repeats an argument, or what stands behind its equals sign.
      let value = argument.firstIndex(of: "=").map { String(argument[argument.index(after: $0)...]) }
      for typed in [argument, value ?? ""] where typed != typed.escaped {
        message = message.replacing(typed, with: typed.escaped)
      }
    }
    return message.split(separator: "\n", omittingEmptySubsequences: false).map(\.escaped).joined(separator: "\n")
  }
}
