import BuckiaBytes

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// How text looks: its colours and weights where they are wanted, and how much room it has.
///
/// Colours are used on a terminal only, and never when `NO_COLOR` is set to anything (<https://no-color.org>) or the
/// terminal calls itself dumb.
struct Style {
  /// What a piece of text means to the reader.
  enum Role: String {
    case strong = "1"
    case faint = "2"
    case good = "32"
    case bad = "31"
    case notable = "33"
  }

  let isColored: Bool
  /// How many columns a line may take.
  let width: Int
  /// Whether texts are shown whole and lists to their end (`--full`).
  let isFull: Bool

  init(isColored: Bool, width: Int = TerminalWidth.standard, isFull: Bool = false) {
    self.isColored = isColored
    self.width = width
    self.isFull = isFull
  }

  /// The style for a file descriptor of this process.
  init(
    descriptor: Int32, isFull: Bool = false, environment: [String: String] = ProcessInfo.processInfo.environment
  ) {
    let refused = environment["NO_COLOR"].map { !$0.isEmpty } ?? false
    self.init(
      isColored: isatty(descriptor) != 0 && !refused && environment["TERM"] != "dumb",
      width: TerminalWidth.of(descriptor: descriptor), isFull: isFull)
  }

  /// The style of standard error, which is not wrapped for a file or another program.
  static func ofMessages(isFull: Bool = false) -> Style {
    let style = Style(descriptor: StandardStream.error.rawValue, isFull: isFull)
    return isatty(StandardStream.error.rawValue) != 0
      ? style : Style(isColored: style.isColored, width: .max, isFull: isFull)
  }

  /// The text in its role.
  func callAsFunction(_ text: String, _ role: Role?) -> String {
    guard isColored, let role, !text.isEmpty else { return text }
    return "\u{1B}[\(role.rawValue)m\(text)\u{1B}[0m"
  }
}
