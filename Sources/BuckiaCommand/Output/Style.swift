import Buckia

/// The style of text: colours and weights if they are wanted, and the width.
///
/// Colours are used only on a terminal, and never if `NO_COLOR` is set to anything (<https://no-color.org>) or `TERM`
/// is `dumb`.
struct Style {
  /// The role of a piece of text.
  enum Role: String {
    case strong = "1"
    case faint = "2"
    case good = "32"
    case bad = "31"
    case notable = "33"
  }

  /// The width of a line if the output is not a terminal.
  static let standardWidth = 80
  /// Narrower terminals get lines of this width: nothing useful fits less.
  private static let leastWidth = 40

  let isColored: Bool
  /// The width of a line in columns.
  let width: Int
  /// True if texts are shown whole and lists to their end (`--full`).
  let isFull: Bool

  init(isColored: Bool, width: Int = standardWidth, isFull: Bool = false) {
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
      width: Self.terminalWidth(of: descriptor), isFull: isFull)
  }

  /// The style of standard error, which is not wrapped for a file or another program.
  static func ofMessages(isFull: Bool = false) -> Style {
    let style = Style(descriptor: StandardStream.error.rawValue, isFull: isFull)
    return isatty(StandardStream.error.rawValue) != 0
      ? style : Style(isColored: style.isColored, width: .max, isFull: isFull)
  }

  /// The width of the terminal of a file descriptor; the standard one without a terminal.
  static func terminalWidth(of descriptor: Int32) -> Int {
    var size = winsize()
    guard isatty(descriptor) != 0, ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else {
      return standardWidth
    }
    return max(leastWidth, Int(size.ws_col))
  }

  /// The text in its role.
  func callAsFunction(_ text: String, _ role: Role?) -> String {
    guard isColored, let role, !text.isEmpty else { return text }
    return "\u{1B}[\(role.rawValue)m\(text)\u{1B}[0m"
  }
}

/// Text in the room that a terminal has.
extension Style {
  /// The shown entries of a list.
  var listLimit: Int { isFull ? .max : 40 }

  /// The conflicts that are shown with their rows.
  var conflictLimit: Int { isFull ? .max : 10 }

  /// The files that are named in a suggested command.
  var fileLimit: Int { isFull ? .max : 5 }

  /// The shown warnings, or groups of them.
  var warningLimit: Int { isFull ? .max : 20 }

  /// The line at the end of a list with the number of hidden entries.
  ///
  /// - Parameters:
  ///   - count: The number of hidden entries.
  ///   - noun: A noun for the entries, in the singular.
  func rest(_ count: Int, _ noun: String, indent: Int = 0) -> String {
    Self.spaces(indent)
      + self("… and \(count.grouped) more \(count == 1 ? noun : noun + "s") (--full shows all)", .faint)
  }

  /// The lines of the shown part of a list, with the number of hidden entries.
  ///
  /// - Parameters:
  ///   - items: The entries.
  ///   - noun: A noun for the entries, in the singular.
  ///   - indent: The columns before the line with the number of hidden entries.
  ///   - limit: The number of shown entries; nil for that of any list.
  ///   - lines: The lines of an entry.
  func listed<Item>(
    _ items: [Item], _ noun: String, indent: Int = 2, limit: Int? = nil, _ lines: (Item) -> [String]
  ) -> [String] {
    let limit = limit ?? listLimit
    let rest = items.count > limit ? [rest(items.count - limit, noun, indent: indent)] : []
    return items.prefix(limit).flatMap(lines) + rest
  }

  /// The text in lines that fit, broken at spaces. A word that is longer than a line, such as a path, is never broken.
  ///
  /// - Parameters:
  ///   - text: The text, already escaped. It may have colours.
  ///   - indent: The columns before the first line.
  ///   - hanging: The indent of all other lines; nil for the same.
  func wrapped(_ text: String, indent: Int = 0, hanging: Int? = nil) -> [String] {
    var lines: [String] = []
    var line = ""
    var used = indent
    for word in text.split(separator: " ", omittingEmptySubsequences: false) {
      let size = word.visibleWidth
      if line.isEmpty, lines.isEmpty {
        line = Self.spaces(indent) + word
        used = indent + size
      } else if used + 1 + size <= width {
        line += " \(word)"
        used += 1 + size
      } else {
        lines.append(line)
        line = Self.spaces(hanging ?? indent) + word
        used = (hanging ?? indent) + size
      }
    }
    return lines + [line]
  }

  /// An entry of a list below the line that it belongs to.
  func item(_ text: String) -> [String] { wrapped(text, indent: 2, hanging: 4) }

  /// Something that a person should notice.
  func note(_ text: String) -> [String] { wrapped("\(self("Note:", .notable)) \(text)", hanging: 2) }

  /// A message of one or more lines, in lines that fit.
  func wrapped(message: String) -> String {
    message.split(separator: "\n", omittingEmptySubsequences: false).flatMap { line -> [String] in
      guard line.visibleWidth > width else { return [String(line)] }
      let indent = line.prefix { $0 == " " }.count
      return wrapped(String(line.dropFirst(indent)), indent: indent, hanging: indent + 2)
    }.joined(separator: "\n")
  }

  /// Pieces, of which none is broken, in lines that fit.
  func wrapped(pieces: [String], separator: String = ", ", indent: Int, hanging: Int) -> [String] {
    var lines: [String] = []
    var line = ""
    for piece in pieces {
      let candidate = line.isEmpty ? piece : line + separator + piece
      let start = lines.isEmpty ? indent : hanging
      if line.isEmpty || start + candidate.visibleWidth <= width {
        line = candidate
      } else {
        var full = line + separator
        while full.last == " " { full.removeLast() }
        lines.append(Self.spaces(start) + full)
        line = piece
      }
    }
    return lines + [Self.spaces(lines.isEmpty ? indent : hanging) + line]
  }

  /// A purpose, followed by a command to type; on a line of its own, unbroken, if both do not fit into one.
  func suggestion(_ purpose: String, _ command: String) -> [String] {
    let line = "\(purpose): \(command)"
    return line.visibleWidth <= width ? [line] : wrapped("\(purpose):") + ["  \(command)"]
  }

  /// How many conflicts a command has met, and how to see them; nothing for none.
  func advice(onConflicts count: Int, in database: String) -> [String] {
    count == 0
      ? []
      : suggestion(
        "\(self("\(count.counted("conflict")).", .notable)) See \(count == 1 ? "it" : "them") with",
        "buckia conflicts \(database.shellQuoted)")
  }

  static func spaces(_ count: Int) -> String { String(repeating: " ", count: count) }
}

extension StringProtocol {
  /// The width of the text on the screen, without its colours.
  var visibleWidth: Int {
    var width = 0
    for (index, part) in String(self).split(separator: "\u{1B}", omittingEmptySubsequences: false).enumerated() {
      width += (index == 0 ? part : part.drop { $0 != "m" }.dropFirst()).displayWidth
    }
    return width
  }

  /// The text in at most a number of columns: a longer text loses its middle, because names differ at both ends.
  func shortened(to limit: Int) -> String {
    guard displayWidth > limit else { return String(self) }
    let tail = (limit - 1) / 3
    let head = limit - 1 - tail
    return "\(prefix(columns: head))…\(suffix(columns: tail))"
  }

  /// The longest beginning within a number of columns.
  func prefix(columns limit: Int) -> String {
    var text = ""
    var used = 0
    for character in self {
      used += String(character).displayWidth
      guard used <= limit else { break }
      text.append(character)
    }
    return text
  }

  /// The longest end within a number of columns.
  func suffix(columns limit: Int) -> String {
    var text: [Character] = []
    var used = 0
    for character in reversed() {
      used += String(character).displayWidth
      guard used <= limit else { break }
      text.append(character)
    }
    return String(text.reversed())
  }
}

extension StringProtocol {
  /// The width of the text in columns of a terminal: one for each letter, two for East Asian wide ones and emoji, none
  /// for combining marks.
  ///
  /// Terminals differ in the details; this follows the wide ranges of
  /// [Unicode's annex 11](https://www.unicode.org/reports/tr11/), which is enough to keep columns aligned.
  var displayWidth: Int {
    reduce(0) { $0 + $1.displayWidth }
  }
}

extension Character {
  fileprivate var displayWidth: Int {
    guard let first = unicodeScalars.first else { return 0 }
    if first.isASCII { return 1 }
    switch first.properties.generalCategory {
    case .nonspacingMark, .enclosingMark, .format, .control: return 0
    default: break
    }
    if first.properties.isEmojiPresentation || unicodeScalars.contains("\u{FE0F}") { return 2 }
    switch first.value {
    case 0x1100...0x115F, 0x2E80...0x303E, 0x3041...0xA4CF, 0xA960...0xA97F, 0xAC00...0xD7A3, 0xF900...0xFAFF,
      0xFE30...0xFE6F, 0xFF00...0xFF60, 0xFFE0...0xFFE6, 0x1F200...0x1F2FF, 0x20000...0x3FFFD:
      return 2
    default: return 1
    }
  }
}
