#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Android)
  import Android
#elseif canImport(Darwin)
  import Darwin
#endif

/// A question to the person at the terminal.
enum Confirmation {
  /// Whether there is anybody to ask: standard input and standard error are a terminal.
  static var isPossible: Bool { isatty(0) != 0 && isatty(2) != 0 }

  /// Asks on standard error. Anything but y or yes is no.
  static func ask(_ question: String) -> Bool {
    StandardStream.error.tell(question)
    return ["y", "yes"].contains((readLine() ?? "").lowercased())
  }
}
