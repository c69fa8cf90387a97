import Buckia

/// Text in the room that a terminal has.
extension Style {
  /// How many entries of a list are shown.
  var listLimit: Int { isFull ? .max : 40 }

  /// How many conflicts are shown with their rows.
  var conflictLimit: Int { isFull ? .max : 10 }

  /// How many remarks, or groups of them, are shown.
  var remarkLimit: Int { isFull ? .max : 20 }

  /// The line at the end of a list that says how many entries it leaves out.
  ///
  /// - Parameters:
  ///   - count: How many are left out.
  ///   - noun: What they are, in the singular.
  func rest(_ count: Int, _ noun: String, indent: Int = 0) -> String {
    Self.spaces(indent)
      + self("… and \(count.grouped) more \(count == 1 ? noun : noun + "s") (--full shows all)", .faint)
  }

  /// The text in lines that fit, broken at spaces. A word that is longer than a line, such as a path, is never broken.
  ///
  /// - Parameters:
  ///   - text: The text, already escaped. It may have colours.
  ///   - indent: The columns before the first line.
  ///   - hanging: The columns before all others; nil for as many.
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

  /// A command to type, behind what it is for; on a line of its own, unbroken, where both do not fit into one.
  func suggestion(_ purpose: String, _ command: String) -> [String] {
    let line = "\(purpose): \(command)"
    return line.visibleWidth <= width ? [line] : wrapped("\(purpose):") + ["  \(command)"]
  }

  static func spaces(_ count: Int) -> String { String(repeating: " ", count: count) }
}

extension StringProtocol {
  /// How many columns the text takes on the screen: its colours take none.
  var visibleWidth: Int {
    var width = 0
    for (index, part) in String(self).split(separator: "\u{1B}", omittingEmptySubsequences: false).enumerated() {
      width += (index == 0 ? part : part.drop { $0 != "m" }.dropFirst()).displayWidth
    }
    return width
  }

  /// The text in at most so many columns: what is too long loses its middle, since names differ at both ends.
  func shortened(to limit: Int) -> String {
    guard displayWidth > limit else { return String(self) }
    let tail = (limit - 1) / 3
    let head = limit - 1 - tail
    return "\(prefix(columns: head))…\(suffix(columns: tail))"
  }

  /// The longest beginning that takes at most so many columns.
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

  /// The longest end that takes at most so many columns.
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
