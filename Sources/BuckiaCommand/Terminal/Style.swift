import Foundation

/// Colours and weights, where they are wanted.
///
/// They are used on a terminal only, and never when `NO_COLOR` is set to anything (<https://no-color.org>) or the
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

  init(isColored: Bool) { self.isColored = isColored }

  /// The style for a file descriptor of this process.
  init(descriptor: Int32, environment: [String: String] = ProcessInfo.processInfo.environment) {
    let refused = environment["NO_COLOR"].map { !$0.isEmpty } ?? false
    isColored = isatty(descriptor) != 0 && !refused && environment["TERM"] != "dumb"
  }

  /// The text in its role.
  func callAsFunction(_ text: String, _ role: Role?) -> String {
    guard isColored, let role, !text.isEmpty else { return text }
    return "\u{1B}[\(role.rawValue)m\(text)\u{1B}[0m"
  }
}
