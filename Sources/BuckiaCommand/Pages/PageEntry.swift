#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A change or a conflict on a page: what it is about, and its row column by column, with the versions side by side.
struct PageEntry: Sendable {
  /// What has happened, which decides about colours.
  enum State: String, Sendable {
    case inserted, updated, deleted
    /// A conflict that waits for somebody to decide about it, and one that does not.
    case open, resolved
  }

  /// A column, and its values in the order of the versions.
  typealias Row = (column: String, values: [PageValue])

  /// Its number on the page, by which links find it.
  let number: Int64
  /// What has happened.
  let state: State
  /// What has happened, in words.
  let label: String
  /// The row's key.
  let key: String
  /// What else there is to say, a sentence each.
  var notes: [String] = []
  /// The columns.
  let rows: [Row]
  /// What can be done about it; nil for nothing.
  var actions: Markup?
}

extension PageEntry {
  /// The entry as a part of a table.
  ///
  /// - Parameters:
  ///   - versions: How many versions of the row there are.
  ///   - isReachedByTab: True if the Tab key stops here: at the first entry. The others are reached by the arrow keys.
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

  /// What tells the states apart without their colours.
  private var sign: String {
    switch state {
    case .inserted: "+"
    case .updated: "~"
    case .deleted: "−"
    case .open: "!"
    case .resolved: "✓"
    }
  }

  /// The text that a version is compared with: the first one, and that the second where there are two only.
  private static func compared(with place: Int, in values: [PageValue]) -> PageValue? {
    let other = place == 0 ? (values.count == 2 ? 1 : 0) : 0
    guard other != place, values[place].kind == .text, values[other].kind == .text else { return nil }
    return values[other]
  }
}

extension PageValue {
  /// The value as the content of a cell.
  ///
  /// - Parameter other: A text; what is different in this one is marked.
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

  /// The text in parts, so that what is different can be marked; nil if that would not help: where nothing is different, or all.
  private func pieces(besides other: PageValue) -> [DifferingWords.Piece]? {
    // What is only shown from somewhere in it on can be compared with nothing that is shown from elsewhere on.
    guard isCutBefore == other.isCutBefore else { return nil }
    let part = text.parts(besides: other.text)
    let middle = DifferingWords(
      of: part.middle, and: other.text.parts(besides: text).middle, areCut: isCutBehind && other.isCutBehind)
    let ends = [part.beginning, part.end].map { (text: $0, isDifferent: false) }
    let pieces = [ends[0]] + middle.pieces + [ends[1]]
    let hasSame = pieces.contains { !$0.isDifferent && $0.text.contains(where: \.isWordCharacter) }
    return hasSame && pieces.contains(where: \.isDifferent) ? pieces : nil
  }

  /// True if only a part of the text is shown, and what is missing is before or behind it.
  private var isCutBefore: Bool { note != nil && text.hasPrefix("'…") }
  private var isCutBehind: Bool { note != nil && text.hasSuffix("…'") }

  /// - Parameter isNamed: True if what it is stands beside it.
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

/// Writes the changes of one table, or its conflicts, as a section of a page. What is far down is folded.
struct EntryList {
  private let page: PageWriter
  /// What the versions of a row are called.
  private let versions: [String]
  private let table: String
  private var count = 0

  /// How many entries are shown unfolded, and how many a fold holds.
  private static let unfolded = 25
  private static let foldSize = 100

  /// Begins the section.
  ///
  /// - Parameters:
  ///   - table: The table.
  ///   - id: What links to the section name.
  ///   - remark: What there is to say about all of it.
  ///   - versions: What the versions of a row are called.
  ///   - page: The page.
  /// - Throws: What the page's output throws.
  init(
    _ table: String, id: String, remark: String, versions: [String], on page: PageWriter
  ) throws {
    self.page = page
    self.versions = versions
    self.table = table
    try page.write(
      """
      <section class="list" aria-labelledby="\(id)">
      <h2 id="\(id)" tabindex="-1">\(table)</h2>
      <p class="faint">\(remark)</p>

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
  /// - Parameter rest: What is to be said of entries that are not on the page; nil if there are none.
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
