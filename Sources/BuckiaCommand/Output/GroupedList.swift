import Buckia

/// Names with what is to be said of each, where many have the same said of them.
///
/// ```
/// a, b, c and 2 more  the pages of the two databases differ in size
/// ```
struct GroupedList {
  private var order: [String] = []
  private var names: [String: [String]] = [:]

  /// How many names of a group are shown.
  private static let shownNames = 3

  /// Adds a name and its reason, neither escaped.
  mutating func add(_ name: String, _ reason: String) {
    if names[reason] == nil { order.append(reason) }
    names[reason, default: []].append(name)
  }

  /// One line a reason, in the order in which they came.
  ///
  /// Where that are too many, reasons that differ only in the names they quote become one.
  ///
  /// - Parameter noun: What the names are, for the line that says how many are left out.
  func lines(_ noun: String, style: Style) -> [String] {
    let grouped = order.count > style.remarkLimit ? merged : self
    var table = TextTable([.text(""), .prose("")])
    for reason in grouped.order.prefix(style.remarkLimit) {
      table.add([
        .init(Self.list(grouped.names[reason] ?? [], style)), .init(reason.escaped, .faint),
      ])
    }
    let left = grouped.order.dropFirst(style.remarkLimit).reduce(0) { $0 + (grouped.names[$1]?.count ?? 0) }
    return table.lines(style: style) + (left > 0 ? [style.rest(left, noun, indent: 2)] : [])
  }

  private var merged: GroupedList {
    var list = GroupedList()
    for reason in order {
      for name in names[reason] ?? [] { list.add(name, Self.withoutQuotedNames(reason)) }
    }
    return list
  }

  /// The reason with an ellipsis for each name in quotes.
  private static func withoutQuotedNames(_ reason: String) -> String {
    let parts = reason.split(separator: "\"", omittingEmptySubsequences: false)
    // Names stand at the odd places, unless a quote is left open.
    guard parts.count % 2 == 1 else { return reason }
    return parts.enumerated().map { $0.offset % 2 == 1 ? "…" : String($0.element) }.joined(separator: "\"")
  }

  /// The first names, and how many more there are.
  static func list(_ names: [String], _ style: Style) -> String {
    let limit = style.isFull ? names.count : shownNames
    let shown = names.prefix(limit).map { style.isFull ? $0.escaped : $0.escaped(limit: 30) }.joined(separator: ", ")
    return names.count > limit ? "\(shown) and \((names.count - limit).grouped) more" : shown
  }
}
