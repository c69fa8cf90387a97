import Buckia

/// A section of a page with a line for each file, and notes.
struct FileList {
  /// How a file has fared, which decides about its colour.
  enum Tone: String {
    case good, notable, bad

    /// The symbol that distinguishes them without colours.
    var sign: String {
      switch self {
      case .good: "✓"
      case .notable: "!"
      case .bad: "✗"
      }
    }
  }

  /// A line.
  struct Line {
    let tone: Tone
    /// How it has fared, in words.
    let label: String
    let name: String
    /// The cells after it.
    let cells: [Markup]
    /// Warnings, a sentence each.
    var notes: [String] = []
    /// The possible actions; nil for none.
    var actions: Markup?
  }

  let title: String
  /// What links to the section name.
  let id: String
  let note: String
  /// The headings of the cells after the name.
  let columns: [String]

  /// Writes the section.
  ///
  /// - Parameter first: The number of the first line on the page; the Tab key stops at number 1.
  func write(_ lines: [Line], from first: Int = 1, on page: PageWriter) throws {
    try page.write(
      """
      <section class="list" aria-labelledby="\(id)">
      <h2 id="\(id)" tabindex="-1">\(title)</h2>
      <p class="faint">\(note)</p>

      """)
    if !lines.isEmpty {
      let headings = Markup(columns) { "<th scope=\"col\">\($0)</th>" }
      try page.write(
        """
        <table class="files"><caption class="unseen">\(title)</caption>
        <thead><tr><th scope="col">File</th>\(headings)</tr></thead>

        """)
      for (place, line) in lines.enumerated() { try page.write(markup(of: line, number: first + place)) }
      try page.write("</table>\n")
    }
    try page.write("</section>\n")
  }

  private func markup(of line: Line, number: Int) -> Markup {
    var markup: Markup = """
      <tbody class="entry \(line.tone.rawValue)">
      <tr><th scope="row"><a class="jump" id="entry-\(number)" href="#entry-\(number)" \
      tabindex="\(number == 1 ? 0 : -1)">#\(number)</a> \
      <span class="sign">\(line.tone.sign) \(line.label)</span> \(line.name)</th>
      """
    for (cell, column) in zip(line.cells, columns) { markup += "<td data-name=\"\(column)\">\(cell)</td>" }
    markup += "</tr>\n"
    var rest = Markup(line.notes) { "<p>\($0)</p>\n" }
    if let actions = line.actions { rest += actions }
    if !rest.utf8.isEmpty {
      markup += "<tr class=\"actions\"><td colspan=\"\(columns.count + 1)\">\(rest)</td></tr>\n"
    }
    markup += "</tbody>\n"
    return markup
  }
}
