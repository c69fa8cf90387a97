import Buckia

extension [Warning] {
  /// The warnings for people, where those about several tables or columns are combined; empty for none.
  ///
  /// - Parameters:
  ///   - label: The word before each.
  ///   - indent: The columns before it.
  func lines(_ label: String = "Note:", style: Style, indent: Int = 0) -> [String] {
    let groups = WarningGroup.of(self)
    var lines: [String] = []
    for group in groups.prefix(style.warningLimit) {
      let text = "\(style(label, .notable)) \(group.sentence.escaped)"
      lines += style.wrapped(text, indent: indent, hanging: indent + 2)
      if let names = group.names(style) { lines += style.wrapped(names, indent: indent + 2) }
    }
    let left = groups.count - style.warningLimit
    return lines + (left > 0 ? [style.rest(left, "note", indent: indent)] : [])
  }
}

/// Equal warnings about different tables or columns.
private struct WarningGroup {
  private let first: Warning
  /// The predicate of each; nil for a single warning.
  private let predicate: String?
  private var subjects: [Subject]

  /// A table, or a column of one.
  private typealias Subject = (table: String, column: String?)

  /// The warnings in groups, in the order in which the first of each came.
  static func of(_ warnings: [Warning]) -> [WarningGroup] {
    var groups: [WarningGroup] = []
    var places: [String: Int] = [:]
    for warning in warnings {
      guard let (subject, predicate) = parts(of: warning) else {
        groups.append(WarningGroup(first: warning, predicate: nil, subjects: []))
        continue
      }
      let key = "\(warning.code.rawValue) \(subject.column == nil) \(predicate)"
      if let place = places[key] {
        groups[place].subjects.append(subject)
      } else {
        places[key] = groups.count
        groups.append(WarningGroup(first: warning, predicate: predicate, subjects: [subject]))
      }
    }
    return groups
  }

  /// Splits a sentence about one table or column.
  private static func parts(of warning: Warning) -> (Subject, predicate: String)? {
    guard let table = warning.arguments.first else { return nil }
    let sentence = warning.shown
    var subjects: [(String, Subject)] = [("table \"\(table)\"", (table, nil))]
    if warning.arguments.count > 1 {
      let column = warning.arguments[1]
      subjects.append(("column \"\(table).\(column)\"", (table, column)))
    }
    for (beginning, subject) in subjects where sentence.utf8.starts(with: beginning.utf8) {
      return (subject, String(decoding: sentence.utf8.dropFirst(beginning.utf8.count), as: UTF8.self))
    }
    return nil
  }

  /// The sentence, with the number of subjects if there are several.
  var sentence: String {
    guard let predicate, subjects.count > 1 else { return first.shown }
    let tables = Set(subjects.map(\.table)).count.counted("table")
    guard subjects[0].column != nil else { return "each of \(tables)\(predicate)" }
    return "each of \(subjects.count.counted("column")) of \(tables)\(predicate)"
  }

  /// The names of the subjects; nil if the sentence has the name.
  func names(_ style: Style) -> String? {
    guard subjects.count > 1 else { return nil }
    return GroupedList.list(
      subjects.map { subject in subject.column.map { "\(subject.table).\($0)" } ?? subject.table }, style)
  }
}

extension Sequence<String> {
  /// The names, escaped, in one line.
  func listed(limit: Int = 40) -> String { map { $0.escaped(limit: limit) }.joined(separator: ", ") }
}

extension [String] {
  /// Warnings for people, each from a new line on; nothing when there are none.
  func warningLines(style: Style) -> [String] {
    isEmpty ? [] : [""] + flatMap { style.note($0.escaped) }
  }
}

/// Names with reasons, grouped by equal reasons.
///
/// ```
/// a, b, c and 2 more  the pages of the two databases differ in size
/// ```
struct GroupedList {
  private var items: [(name: String, reason: String)] = []

  /// The shown names of a group.
  private static let shownNames = 3

  /// Adds a name and its reason, neither escaped.
  mutating func add(_ name: String, _ reason: String) { items.append((name, reason)) }

  /// One line a reason, in the order in which they came.
  ///
  /// If these are too many, reasons that differ only in quoted names are combined.
  ///
  /// - Parameter noun: A noun for the names, for the line with the number of hidden ones.
  func lines(_ noun: String, style: Style) -> [String] {
    var groups = items.grouped(by: \.reason)
    if groups.count > style.warningLimit {
      groups = groups.flatMap { group in
        group.elements.map { (name: $0.name, reason: Self.withoutQuotedNames($0.reason)) }
      }.grouped(by: \.reason)
    }
    let table = TextTable([.text(""), .prose("")], of: groups.prefix(style.warningLimit)) { group in
      [.init(Self.list(group.elements.map(\.name), style)), .init(group.key.escaped, .faint)]
    }
    let left = groups.dropFirst(style.warningLimit).reduce(0) { $0 + $1.elements.count }
    return table.lines(style: style) + (left > 0 ? [style.rest(left, noun, indent: 2)] : [])
  }

  /// The reason with an ellipsis for each name in quotes.
  private static func withoutQuotedNames(_ reason: String) -> String {
    let parts = reason.split(separator: "\"", omittingEmptySubsequences: false)
    // Names are at the odd places, unless a quote is open.
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

extension Sequence {
  /// The elements grouped by a key, in the order of the first of each group.
  func grouped<Key: Hashable>(by key: (Element) -> Key) -> [(key: Key, elements: [Element])] {
    var groups: [(key: Key, elements: [Element])] = []
    var places: [Key: Int] = [:]
    for element in self {
      let common = key(element)
      if let place = places[common] {
        groups[place].elements.append(element)
      } else {
        places[common] = groups.count
        groups.append((common, [element]))
      }
    }
    return groups
  }
}
