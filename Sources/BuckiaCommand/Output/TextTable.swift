/// Rows of text in aligned columns.
///
/// ```swift
/// let table = TextTable([.text("table"), .number("inserted")], of: tables) { [.init($0.name), .count($0.inserted)] }
/// print(table.lines(style: style))
/// ```
///
/// A table that is wider than the terminal wraps its columns of prose, then shortens its columns of text, and as a last
/// resort gives each row lines of its own.
struct TextTable {
  /// A column: its heading, and how its cells fit into little room.
  struct Column: ExpressibleByStringLiteral {
    enum Content {
      /// Ids, states and paths: never broken.
      case fixed
      /// Numbers: never broken; they lean to the right.
      case number
      /// Names: shortened in the middle.
      case text
      /// Sentences: broken at spaces. For the last column only.
      case prose
    }

    let heading: String
    let content: Content

    init(_ heading: String, _ content: Content) {
      self.heading = heading
      self.content = content
    }

    init(stringLiteral value: String) { self.init(value, .fixed) }

    /// A column of numbers.
    static func number(_ heading: String) -> Column { Column(heading, .number) }
    /// A column of names.
    static func text(_ heading: String) -> Column { Column(heading, .text) }
    /// A column of sentences; only the last can be one.
    static func prose(_ heading: String) -> Column { Column(heading, .prose) }
  }

  /// A cell: an escaped text, and its role.
  struct Cell: ExpressibleByStringLiteral {
    let text: String
    let role: Style.Role?

    init(_ text: String, _ role: Style.Role? = nil) {
      self.text = text
      self.role = role
    }

    init(stringLiteral value: String) { self.init(value) }

    /// A count with its thousands set apart; a dash, faint, for none.
    static func count(_ count: Int, _ role: Style.Role? = nil) -> Cell {
      count == 0 ? .none : Cell(count.grouped, role)
    }

    fileprivate static let none = Cell("–", .faint)
  }

  private let columns: [Column]
  private var rows: [[Cell]] = []

  init(_ columns: [Column]) { self.columns = columns }

  /// A table with a row for each entry of a list; cells that are missing at its end stay empty.
  init<Items: Sequence>(_ columns: [Column], of items: Items, row: (Items.Element) -> [Cell]) {
    self.columns = columns
    rows = items.map(row)
  }

  /// A table of facts: a faint name, and what there is to say.
  init(facts: [(name: String, value: String)]) {
    self.init(["", .prose("")], of: facts) { [.init($0.name, .faint), .init($0.value)] }
  }

  var isEmpty: Bool { rows.isEmpty }

  /// Adds a row.
  mutating func add(_ cells: [Cell]) { rows.append(cells) }

  /// The lines of a table with a row for each shown entry of a list, with the number of hidden ones.
  ///
  /// - Parameter noun: A noun for the entries, in the singular.
  static func lines<Item>(
    _ columns: [Column], of items: [Item], _ noun: String, style: Style, indent: Int = 2, row: (Item) -> [Cell]
  ) -> [String] {
    let left = items.count - style.listLimit
    return TextTable(columns, of: items.prefix(style.listLimit), row: row).lines(style: style, indent: indent)
      + (left > 0 ? [style.rest(left, noun, indent: indent)] : [])
  }

  /// The lines of the table, the headings first unless all are empty.
  func lines(style: Style, indent: Int = 2) -> [String] {
    guard !rows.isEmpty else { return [] }
    guard let widths = fittingWidths(in: style, indent) else {
      return rows.flatMap { stackedLines($0, style, indent) }
    }
    let body = rows.flatMap { lines(of: $0, widths, style, indent) }
    guard columns.contains(where: { !$0.heading.isEmpty }) else { return body }
    return lines(of: columns.map { Cell($0.heading, .faint) }, widths, style, indent) + body
  }

  /// True if each row fits into a line, or into a few of aligned columns.
  func fits(_ style: Style, indent: Int = 2) -> Bool { fittingWidths(in: style, indent) != nil }

  // MARK: Aligned

  private static let gap = 2
  /// Columns of text and of prose get no narrower than this.
  private static let leastText = 12
  private static let leastProse = 24

  /// The columns' widths; nil if they do not fit.
  private func fittingWidths(in style: Style, _ indent: Int) -> [Int]? {
    var widths = columns.map(\.heading.displayWidth)
    for row in rows {
      for (index, cell) in row.enumerated() where index < widths.count {
        widths[index] = max(widths[index], cell.text.displayWidth)
      }
    }
    var excess = indent + widths.reduce(0, +) + Self.gap * (columns.count - 1) - style.width
    if excess > 0, columns.last?.content == .prose {
      Self.narrow(&widths[columns.count - 1], to: Self.leastProse, by: &excess)
    }
    let texts = columns.indices.filter { columns[$0].content == .text && !style.isFull }
    while excess > 0, let widest = texts.max(by: { widths[$0] < widths[$1] }), widths[widest] > Self.leastText {
      var one = 1
      Self.narrow(&widths[widest], to: Self.leastText, by: &one)
      excess -= 1
    }
    return excess > 0 ? nil : widths
  }

  private static func narrow(_ width: inout Int, to least: Int, by excess: inout Int) {
    let taken = min(excess, max(0, width - least))
    width -= taken
    excess -= taken
  }

  /// The lines of one row: several if its prose is wrapped.
  private func lines(of cells: [Cell], _ widths: [Int], _ style: Style, _ indent: Int) -> [String] {
    var text = Style.spaces(indent)
    var start = indent
    var continuation: [String] = []
    for (index, column) in columns.enumerated() {
      let cell = index < cells.count ? cells[index] : ""
      var shown = cell.text
      if column.content == .prose, index == columns.count - 1 {
        var parts = Style(isColored: false, width: widths[index]).wrapped(shown)
        shown = parts.removeFirst()
        continuation = parts.map { Style.spaces(start) + style($0, cell.role) }
      } else if column.content == .text {
        shown = shown.shortened(to: widths[index])
      }
      let space = Style.spaces(max(0, widths[index] - shown.displayWidth))
      text += column.content == .number ? space + style(shown, cell.role) : style(shown, cell.role) + space
      if index < columns.count - 1 { text += Style.spaces(Self.gap) }
      start += widths[index] + Self.gap
    }
    while text.last == " " { text.removeLast() }
    return [text] + continuation
  }

  // MARK: Stacked

  /// A row that is too wide: its words first, then its numbers with their headings.
  private func stackedLines(_ cells: [Cell], _ style: Style, _ indent: Int) -> [String] {
    var words: [String] = []
    var numbers: [String] = []
    var prose: [String] = []
    let hanging = indent + 2
    for (cell, column) in zip(cells, columns) where !cell.text.isEmpty {
      switch column.content {
      case .fixed: words.append(style(cell.text, cell.role))
      // All of a long list of names: broken like a sentence.
      case .text where style.isFull && cell.text.displayWidth > style.width - hanging:
        prose += style.wrapped(cell.text, indent: hanging)
      case .text: words.append(style(cell.text.shortened(to: style.width - hanging), cell.role))
      case .number where cell.text == Cell.none.text: break
      case .number: numbers.append("\(column.heading) \(style(cell.text, cell.role))")
      case .prose: prose += style.wrapped(cell.text, indent: hanging)
      }
    }
    var lines = words.isEmpty ? [] : style.wrapped(pieces: words, separator: "  ", indent: indent, hanging: hanging)
    if !numbers.isEmpty { lines += style.wrapped(pieces: numbers, indent: hanging, hanging: hanging) }
    return lines + prose
  }
}

extension [TextTable.Column] {
  /// Columns for the numbers of inserted, updated and deleted rows, among others.
  static func changes(after first: Self, before last: Self = []) -> Self {
    first + [.number("inserted"), .number("updated"), .number("deleted")] + last
  }
}

extension [TextTable.Cell] {
  /// Cells with the numbers of inserted, updated and deleted rows, among others.
  static func changes(
    after first: Self, _ inserted: Int, _ updated: Int, _ deleted: Int, before last: Self = []
  ) -> Self {
    first + [.count(inserted, .good), .count(updated, .notable), .count(deleted, .bad)] + last
  }
}
