import ArgumentParser
import BuckiaBytes

/// A question to the person at the terminal.
enum Confirmation {
  /// True if a person can be asked: standard input and standard error are a terminal.
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

/// Asks for a passphrase at the terminal, whatever the standard streams are, and shows nothing of it.
enum PassphrasePrompt {
  /// Asks for a passphrase twice.
  static func askForNew() throws -> [UInt8] {
    let first = try ask("New passphrase: ")
    guard try ask("Once more: ") == first else { throw ValidationError("The two passphrases differ; try again.") }
    return first
  }

  /// Asks for a passphrase.
  ///
  /// - Parameters:
  ///   - prompt: The question.
  ///   - option: The option that provides it without a terminal.
  /// - Throws: `ValidationError` without a terminal.
  static func ask(_ prompt: String, elsewhere option: String = "--passphrase-file") throws -> [UInt8] {
    let terminal = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY)
    guard terminal >= 0 else {
      throw ValidationError("There is no terminal to ask for a passphrase; give \(option).")
    }
    defer { close(terminal) }
    var before = termios()
    guard tcgetattr(terminal, &before) == 0 else {
      throw ValidationError("The terminal cannot hide a passphrase; give \(option).")
    }
    var hidden = before
    hidden.c_lflag &= ~tcflag_t(ECHO)
    // Until the answer is complete, an interruption would leave the terminal without an echo.
    hidden.c_lflag &= ~tcflag_t(ISIG)
    tell(prompt, terminal)
    guard tcsetattr(terminal, TCSAFLUSH, &hidden) == 0 else {
      throw ValidationError("The terminal cannot hide a passphrase; give \(option).")
    }
    defer {
      tcsetattr(terminal, TCSAFLUSH, &before)
      tell("\n", terminal)
    }
    return try line(from: terminal)
  }

  private static func line(from terminal: Int32) throws -> [UInt8] {
    var line: [UInt8] = []
    var byte: UInt8 = 0
    while read(terminal, &byte, 1) == 1, byte != UInt8(ascii: "\n") {
      // Control-C, which is not a signal here.
      guard byte != 3 else { throw ValidationError("No passphrase was given.") }
      line.append(byte)
    }
    return line
  }

  private static func tell(_ text: String, _ terminal: Int32) {
    _ = Array(text.utf8).withUnsafeBytes { write(terminal, $0.baseAddress, $0.count) }
  }
}
