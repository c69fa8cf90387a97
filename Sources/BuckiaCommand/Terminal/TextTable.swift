/// Rows of text in aligned columns.
///
/// ```swift
/// var table = TextTable(["table", .number("inserted")])
/// table.add(["notes", "1,204"])
/// ```
struct TextTable {
  /// A column: its heading and the side its cells lean to.
  struct Column: ExpressibleByStringLiteral {
    let heading: String
    var isNumber = false

    init(stringLiteral value: String) { heading = value }

    /// A column of numbers, which lean to the right.
    static func number(_ heading: String) -> Column {
      var column = Column(stringLiteral: heading)
      column.isNumber = true
      return column
    }
  }

  /// A cell: a text, already escaped, and what it means.
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
      count == 0 ? Cell("–", .faint) : Cell(count.grouped, role)
    }
  }

  private let columns: [Column]
  private var rows: [[Cell]] = []

  init(_ columns: [Column]) { self.columns = columns }

  var isEmpty: Bool { rows.isEmpty }

  /// Adds a row; cells that are missing at its end stay empty.
  mutating func add(_ cells: [Cell]) { rows.append(cells) }

  /// The lines of the table, the headings first unless all are empty.
  func lines(style: Style, indent: Int = 2) -> [String] {
    guard !rows.isEmpty else { return [] }
    var widths = columns.map(\.heading.displayWidth)
    for row in rows {
      for (index, cell) in row.enumerated() where index < widths.count {
        widths[index] = Swift.max(widths[index], cell.text.displayWidth)
      }
    }
    func line(_ cells: [Cell]) -> String {
      var text = String(repeating: " ", count: indent)
      for (index, column) in columns.enumerated() {
        let cell = index < cells.count ? cells[index] : ""
        let space = String(repeating: " ", count: widths[index] - cell.text.displayWidth)
        let shown = style(cell.text, cell.role)
        text += column.isNumber ? space + shown : shown + space
        if index < columns.count - 1 { text += "  " }
      }
      while text.last == " " { text.removeLast() }
      return text
    }
    let body = rows.map(line)
    guard columns.contains(where: { !$0.heading.isEmpty }) else { return body }
    return [line(columns.map { Cell($0.heading, .faint) })] + body
  }
}
