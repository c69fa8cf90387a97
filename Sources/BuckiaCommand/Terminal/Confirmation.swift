import BuckiaBytes
import ArgumentParser

/// A question to the person at the terminal.
enum Confirmation {
  /// Whether there is anybody to ask: standard input and standard error are a terminal.
  static var isPossible: Bool { isatty(0) != 0 && isatty(2) != 0 }

  /// Asks a question of which the answer cannot be guessed.
  ///
  /// - Throws: `ValidationError` where there is no terminal to ask on.
  static func require(_ question: String) throws -> Bool {
    guard isPossible else {
      throw ValidationError("There is no terminal to ask on; --yes does it without a question. \(question)")
    }
    return ask("\(Style.ofMessages().wrapped(message: question)) [y/N] ")
  }

  /// Asks on standard error. Anything but y or yes is no.
  static func ask(_ question: String) -> Bool {
    StandardStream.error.tell(question)
    return ["y", "yes"].contains((readLine() ?? "").lowercased())
  }
}
