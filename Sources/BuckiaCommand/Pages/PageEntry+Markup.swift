#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension PageEntry {
  /// The entry as a part of a table.
  ///
  /// - Parameters:
  ///   - versions: How many versions of the row there are.
  ///   - isReachedByTab: Whether the Tab key stops here: at the first entry. The others are reached by the arrow keys.
  func markup(versions: Int, isReachedByTab: Bool) -> Markup {
    var markup: Markup = """
      <tbody class="entry \(state.rawValue)">
      <tr class="heading"><th scope="rowgroup" colspan="\(versions + 1)">\
      <a class="jump" id="entry-\(number)" href="#entry-\(number)" tabindex="\(isReachedByTab ? 0 : -1)">#\(number)</a> \
      <span class="sign">\(sign) \(label)</span> \(key)
      """
    for note in notes { markup += "<p>\(note)</p>" }
    markup += "</th></tr>\n"
    for row in rows { markup += row.markup }
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
}

extension PageEntry.Row {
  fileprivate var markup: Markup {
    var markup: Markup = "<tr><th scope=\"row\">\(column)</th>"
    for place in values.indices { markup += "<td>\(values[place].markup(besides: compared(with: place)))</td>" }
    markup += "</tr>\n"
    return markup
  }

  /// The text that a version is compared with: the first one, and that the second where there are two only.
  private func compared(with place: Int) -> PageValue? {
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
    if let image { markup += image.markup(isNamed: text == image.description) }
    markup += "<span class=\"\(kind.rawValue)\">\(content(besides: other))</span>"
    if let note { markup += " <span class=\"size\">(\(note))</span>" }
    return markup
  }

  private func content(besides other: PageValue?) -> Markup {
    guard kind == .text else { return Markup(text: text) }
    guard let other, let pieces = pieces(besides: other) else { return Markup(lines: text) }
    var markup: Markup = ""
    for piece in pieces {
      let part = Markup(lines: piece.text)
      markup += piece.isDifferent ? "<mark>\(part)</mark>" : part
    }
    return markup
  }

  /// The text in parts, so that what is different can be marked; nil where that would not help: where nothing is different, or all.
  private func pieces(besides other: PageValue) -> [DifferingWords.Piece]? {
    // What is only shown from somewhere in it on can be compared with nothing that is shown from elsewhere on.
    guard isCutBefore == other.isCutBefore else { return nil }
    let part = DifferingPart(of: text, and: other.text)
    let middle = DifferingWords(
      of: part.middle, and: DifferingPart(of: other.text, and: text).middle, areCut: isCutBehind && other.isCutBehind)
    let ends = [part.beginning, part.end].map { DifferingWords.Piece(text: $0, isDifferent: false) }
    let pieces = [ends[0]] + middle.pieces + [ends[1]]
    let hasSame = pieces.contains { !$0.isDifferent && $0.text.contains(where: \.isWordCharacter) }
    return hasSame && pieces.contains(where: \.isDifferent) ? pieces : nil
  }

  /// Whether only a part of the text is shown, and what is missing is before or behind it.
  private var isCutBefore: Bool { note != nil && text.hasPrefix("'…") }
  private var isCutBehind: Bool { note != nil && text.hasSuffix("…'") }
}

extension PageImage {
  /// - Parameter isNamed: Whether what it is stands beside it.
  fileprivate func markup(isNamed: Bool) -> Markup {
    guard let shown else { return "<span class=\"size\">\(description), too large for this page</span><br />" }
    return """
      <img alt="\(isNamed ? "" : description)" width="\(shown.width)" height="\(shown.height)" \
      src="data:\(shown.format.mediaType);base64,\(Data(shown.bytes).base64EncodedString())" />
      """
  }
}
