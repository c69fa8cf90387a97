import BuckiaBytes

/// How many columns a line of output may take.
enum TerminalWidth {
  /// The width where the output is no terminal.
  static let standard = 80
  /// Narrower terminals get lines of this width: nothing useful fits less.
  private static let least = 40

  /// The width of the terminal behind a file descriptor; the standard one where there is no terminal.
  static func of(descriptor: Int32) -> Int {
    var size = winsize()
    guard isatty(descriptor) != 0, ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else {
      return standard
    }
    return max(least, Int(size.ws_col))
  }
}
