/// A change or a conflict on a page: its title, and its row column by column, with the versions side by side.
struct PageEntry: Sendable {
  /// The kind of event, which selects the colours.
  enum State: String, Sendable {
    case inserted, updated, deleted
    /// An undecided conflict, and a decided one.
    case open, resolved
  }

  /// A column, and its values in the order of the versions.
  typealias Row = (column: String, values: [PageValue])

  /// Its number on the page, by which links find it.
  let number: Int64
  /// The kind of event.
  let state: State
  /// A description of the event.
  let label: String
  /// The row's key.
  let key: String
  /// Warnings, a sentence each.
  var notes: [String] = []
  /// The columns.
  let rows: [Row]
  /// The possible actions; nil for none.
  var actions: Markup?
}

extension PageEntry {
  /// The entry as a part of a table.
  ///
  /// - Parameters:
  ///   - versions: The number of the row's versions.
  ///   - isReachedByTab: True if the Tab key stops here: at the first entry. The arrow keys reach the others.
  func markup(versions: Int, isReachedByTab: Bool) -> Markup {
    var markup: Markup = """
      <tbody class="entry \(state.rawValue)">
      <tr class="heading"><th scope="rowgroup" colspan="\(versions + 1)">\
      <a class="jump" id="entry-\(number)" href="#entry-\(number)" tabindex="\(isReachedByTab ? 0 : -1)">#\(number)</a> \
      <span class="sign">\(sign) \(label)</span> \(key)
      """
    for note in notes { markup += "<p>\(note)</p>" }
    markup += "</th></tr>\n"
    for row in rows {
      markup += "<tr><th scope=\"row\">\(row.column)</th>"
      for place in row.values.indices {
        let value = row.values[place]
        markup += "<td>\(value.markup(besides: Self.compared(with: place, in: row.values)))</td>"
      }
      markup += "</tr>\n"
    }
    if let actions { markup += "<tr class=\"actions\"><td colspan=\"\(versions + 1)\">\(actions)</td></tr>\n" }
    markup += "</tbody>\n"
    return markup
  }

  /// The symbol that distinguishes the states without colours.
  private var sign: String {
    switch state {
    case .inserted: "+"
    case .updated: "~"
    case .deleted: "−"
    case .open: "!"
    case .resolved: "✓"
    }
  }

  /// The text with which a version is compared: the first one; for the first of only two, the second.
  private static func compared(with place: Int, in values: [PageValue]) -> PageValue? {
    let other = place == 0 ? (values.count == 2 ? 1 : 0) : 0
    guard other != place, values[place].kind == .text, values[other].kind == .text else { return nil }
    return values[other]
  }
}

extension PageValue {
  /// The value as the content of a cell.
  ///
  /// - Parameter other: A text; the differing parts of this one are marked.
  fileprivate func markup(besides other: PageValue?) -> Markup {
    var markup: Markup = ""
    if let image { markup += Self.markup(of: image, isNamed: text == image.description) }
    markup += "<span class=\"\(kind.rawValue)\">\(content(besides: other))</span>"
    if let note { markup += " <span class=\"size\">(\(note))</span>" }
    return markup
  }

  private func content(besides other: PageValue?) -> Markup {
    guard kind == .text else { return Markup(text: text) }
    guard let other, let pieces = pieces(besides: other) else { return Markup(lines: text) }
    return Markup(pieces) { piece in
      let part = Markup(lines: piece.text)
      return piece.isDifferent ? "<mark>\(part)</mark>" : part
    }
  }

  /// The text in parts, for marking the different ones; nil if that would not help: if nothing differs, or everything.
  private func pieces(besides other: PageValue) -> [DifferingWords.Piece]? {
    // Parts of long texts that begin at different positions cannot be compared.
    guard isCutBefore == other.isCutBefore else { return nil }
    let part = text.parts(besides: other.text)
    let middle = DifferingWords(
      of: part.middle, and: other.text.parts(besides: text).middle, areCut: isCutBehind && other.isCutBehind)
    let ends = [part.beginning, part.end].map { (text: $0, isDifferent: false) }
    let pieces = [ends[0]] + middle.pieces + [ends[1]]
    let hasSame = pieces.contains { !$0.isDifferent && $0.text.contains(where: \.isWordCharacter) }
    return hasSame && pieces.contains(where: \.isDifferent) ? pieces : nil
  }

  /// True if only a part of the text is shown, with more before or after it.
  private var isCutBefore: Bool { note != nil && text.hasPrefix("'…") }
  private var isCutBehind: Bool { note != nil && text.hasSuffix("…'") }

  /// - Parameter isNamed: True if its name is next to it.
  private static func markup(of image: Image, isNamed: Bool) -> Markup {
    guard let shown = image.shown else {
      return "<span class=\"size\">\(image.description), too large for this page</span><br />"
    }
    return """
      <img alt="\(isNamed ? "" : image.description)" width="\(shown.width)" height="\(shown.height)" \
      src="data:\(shown.format.mediaType);base64,\(Data(shown.bytes).base64EncodedString())" />
      """
  }
}

/// Writes the changes of one table, or its conflicts, as a section of a page. Later entries are folded.
struct EntryList {
  private let page: PageWriter
  /// The names of a row's versions.
  private let versions: [String]
  private let table: String
  private var count = 0

  /// The number of unfolded entries, and the number of entries in a fold.
  private static let unfolded = 25
  private static let foldSize = 100

  /// Begins the section.
  ///
  /// - Parameters:
  ///   - table: The table.
  ///   - id: What links to the section name.
  ///   - note: A note on all of it.
  ///   - versions: The names of a row's versions.
  ///   - page: The page.
  /// - Throws: What the page's output throws.
  init(
    _ table: String, id: String, note: String, versions: [String], on page: PageWriter
  ) throws {
    self.page = page
    self.versions = versions
    self.table = table
    try page.write(
      """
      <section class="list" aria-labelledby="\(id)">
      <h2 id="\(id)" tabindex="-1">\(table)</h2>
      <p class="faint">\(note)</p>

      """)
  }

  /// Writes an entry.
  ///
  /// - Parameter isReachedByTab: True if the Tab key stops here: at the first entry of the page.
  /// - Throws: What the page's output throws.
  mutating func add(_ entry: PageEntry, isReachedByTab: Bool) throws {
    if isAtEdge {
      try endTable()
      if count > 0 {
        try page.write("<details class=\"fold\"><summary>From #\(entry.number) on</summary>\n")
      }
      try beginTable()
    }
    count += 1
    try page.write(entry.markup(versions: versions.count, isReachedByTab: isReachedByTab))
  }

  /// Ends the section.
  ///
  /// - Parameter rest: A note on entries that are not on the page; nil if there are none.
  /// - Throws: What the page's output throws.
  mutating func end(rest: String? = nil) throws {
    try endTable()
    if let rest { try page.write("<p class=\"rest\">\(rest)</p>\n") }
    try page.write("</section>\n")
  }

  /// True if the next entry begins a table: the first one, or that of a fold.
  private var isAtEdge: Bool { count == 0 || count >= Self.unfolded && (count - Self.unfolded) % Self.foldSize == 0 }

  private func beginTable() throws {
    let columns = Markup(versions) { "<th scope=\"col\">\($0)</th>" }
    try page.write(
      """
      <table class="entries"><caption class="unseen">\(table)</caption>
      <thead><tr><th scope="col">Column</th>\(columns)</tr></thead>

      """)
  }

  private func endTable() throws {
    guard count > 0 else { return }
    try page.write("</table>\n")
    if count > Self.unfolded { try page.write("</details>\n") }
  }
}
