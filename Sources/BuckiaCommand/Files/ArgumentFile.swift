import Buckia

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A file that was named on the command line, or standard input for `-`.
enum ArgumentFile {
  /// The argument that stands for standard input.
  static let standardInput = "-"

  /// What the argument stands for. Standard input is read to its end.
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

  /// Where bytes to encrypt or decrypt, or a passphrase, come from.
  static func cipherSource(_ argument: String) -> CipherSource {
    argument == standardInput ? .standardInput : .path(argument)
  }

  /// True if there is such a file.
  static func isThere(_ argument: String) -> Bool { FileManager.default.fileExists(atPath: argument) }

  /// The file, for people.
  static func name(of argument: String) -> String { argument == standardInput ? "standard input" : argument }
}
