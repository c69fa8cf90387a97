import Buckia
import BuckiaBytes

/// The forms for deciding a conflict.
struct ConflictForms {
  let database: ServedDatabase
  /// The page to which the browser returns.
  let query: ConflictQuery

  /// The two versions to choose from, and the way to further answers.
  func short(_ record: ConflictRecord) -> Markup {
    """
    \(choice(record, isForcing: false))
    <p><a href="\(database.address("conflicts/\(record.id)"))">Other values for #\(record.id)</a></p>
    """
  }

  /// All that can be answered.
  func whole(_ record: ConflictRecord) -> Markup {
    let columns = ValueForm.columns(of: record)
    guard !columns.isEmpty else { return choice(record, isForcing: true) }
    let rows = Markup(columns) { ValueForm.row($0, of: record) }
    return """
      \(choice(record, isForcing: true))
      <form method="post" action="\(address(of: record))">
      <input type="hidden" name="seen" value="\(record.seen)" />
      <table><caption>Or values of your own, column by column</caption>
      <thead><tr><th scope="col">Column</th><th scope="col">It gets</th><th scope="col">Typed value</th></tr></thead>
      <tbody>
      \(rows)</tbody></table>
      \(Self.forcing)
      <button type="submit" name="take" value="values">Take these values</button>
      </form>
      """
  }

  private func address(of record: ConflictRecord) -> String {
    database.address("conflicts/\(record.id)", query.fields)
  }

  private func choice(_ record: ConflictRecord, isForcing: Bool) -> Markup {
    let remembering: Markup =
      record.kind == .data || record.kind == .conflict
      ? "<label><input type=\"checkbox\" name=\"remember\" value=\"1\" /> remember this for conflicts like it</label>\n"
      : ""
    let place: Markup = "<span class=\"unseen\"> in #\(record.id)</span>"
    return """
      <form method="post" action="\(address(of: record))">
      <input type="hidden" name="seen" value="\(record.seen)" />
      <button type="submit" name="take" value="local">\(record.isOfMerge ? "Keep OURS" : "Keep the local version")\(place)</button>
      <button type="submit" name="take" value="incoming">\(record.isOfMerge ? "Take THEIRS" : "Take the incoming version")\(place)</button>
      \(others(record, place))\(remembering)\(isForcing ? Self.forcing : "")</form>
      """
  }

  /// Further answers, by the kind of conflict.
  private func others(_ record: ConflictRecord, _ place: Markup) -> Markup {
    var buttons: [(value: String, label: String)] = []
    if record.kind == .conflict, record.base == nil, record.hasIntegerKey { buttons.append(("both", "Keep both")) }
    if record.kind == .constraint, !record.others.isEmpty { buttons.append(("same", "These two are the same")) }
    if record.local != nil || record.kind == .foreignKey { buttons.append(("delete", "Delete the row")) }
    return Markup(buttons) { button in
      "<button type=\"submit\" name=\"take\" value=\"\(button.value)\">\(button.label)\(place)</button>\n"
    }
  }

  private static let forcing: Markup = """
    <label><input type="checkbox" name="force" value="1" /> overwrite the row even if it was changed since, or would refer to a missing row</label>

    """

  /// One answer for all conflicts that are open.
  ///
  /// - Parameters:
  ///   - count: The number of conflicts.
  ///   - newest: The number of the newest conflict: later ones stay open.
  ///   - isOfMerge: True if all of them were met in a merge.
  func all(_ count: Int, upTo newest: Int64, ofMerge isOfMerge: Bool) -> Markup {
    let address = database.address("conflicts", query.with { _ in }.fields)
    return """
      <section aria-labelledby="all">
      <h2 id="all">Decide all of them</h2>
      <form method="post" action="\(address)">
      <input type="hidden" name="newest" value="\(newest)" />
      <label><input type="checkbox" name="sure" value="1" required="required" /> \
      all \(count.counted("open conflict")) that \(count == 1 ? "is" : "are") listed, on all pages</label>
      <button type="submit" name="take" value="local">\(isOfMerge ? "Keep OURS" : "Keep the local version"), in all</button>
      <button type="submit" name="take" value="incoming">\(isOfMerge ? "Take THEIRS" : "Take the incoming version"), in all</button>
      <label><input type="checkbox" name="remember" value="1" /> remember this for conflicts like them</label>
      </form>
      </section>

      """
  }
}

extension ConflictRecord {
  /// The number of the last resolution in a form, by which a later one is noticed when the form is sent.
  var seen: Int64 { resolution?.id ?? 0 }

  /// True if the key can be another one of those that SQLite gives out.
  fileprivate var hasIntegerKey: Bool {
    guard key.count == 1, case .integer = key[0].value else { return false }
    return true
  }
}

/// The part of a form with the values for the columns of a row.
///
/// Columns are numbered in it, because their names can be any text and the record keeps their order.
enum ValueForm {
  /// A column whose value can be changed.
  typealias Column = (place: Int, name: String)

  /// The choice for a column.
  private enum Choice: String, CaseIterable {
    case leave, here, incoming, text, number, blob, null

    func label(ofMerge isOfMerge: Bool) -> String {
      switch self {
      case .leave: "what the row has now"
      case .here: isOfMerge ? "what OURS has" : "the local value"
      case .incoming: isOfMerge ? "what THEIRS has" : "the incoming value"
      case .text: "this text"
      case .number: "this number"
      case .blob: "these bytes, in hexadecimal"
      case .null: "NULL"
      }
    }
  }

  /// How long a text may be that is put into the form.
  private static let textLimit = 32 << 10
  /// The visible lines of a text.
  private static let rowLimit = 8

  /// Why a form is no answer.
  struct Refusal: Error, CustomStringConvertible {
    let description: String

    /// The choice is missing in the form.
    static let unclear = Refusal(description: "The form does not say what to do; load the page again.")
  }

  /// The columns of a record but for its key, which stays.
  static func columns(of record: ConflictRecord) -> [Column] {
    record.columns.enumerated().filter { column in !record.key.contains { $0.column == column.element } }
      .map { ($0.offset, $0.element) }
  }

  // MARK: Asking

  /// A row of the form.
  static func row(_ column: Column, of record: ConflictRecord) -> Markup {
    let local = ConflictRecord.value(of: column.name, in: record.local)
    let incoming = ConflictRecord.value(of: column.name, in: record.incoming)
    var options: Markup = ""
    for choice in Choice.allCases {
      if choice == .here && local == nil || choice == .incoming && incoming == nil { continue }
      options += "<option value=\"\(choice.rawValue)\">\(choice.label(ofMerge: record.isOfMerge))</option>"
    }
    let (kind, typed) = typed(local ?? incoming ?? .null)
    let rows = min(rowLimit, 1 + typed.utf8.count { $0 == UInt8(ascii: "\n") })
    let (choice, field) = ("as-\(column.place)", "value-\(column.place)")
    return """
      <tr><th scope="row">\(column.name)</th>
      <td><label class="unseen" for="\(choice)">\(column.name) gets</label>\
      <select id="\(choice)" name="\(choice)">\(options)</select></td>
      <td><label class="unseen" for="\(field)">The value of \(column.name)</label>\
      <textarea id="\(field)" name="\(field)" rows="\(rows)" spellcheck="false" data-choice="\(choice)" \
      data-kind="\(kind.rawValue)">
      \(Markup(preformatted: typed))</textarea></td></tr>

      """
  }

  /// A value for typing; empty if it cannot be typed.
  private static func typed(_ value: ChangesetValue) -> (kind: Choice, text: String) {
    switch value {
    case .null: return (.text, "")
    case .integer(let number): return (.number, "\(number)")
    case .real(let number): return (.number, number.isFinite ? "\(number)" : "")
    case .blob(let bytes): return (.blob, bytes.count <= textLimit / 2 ? HexText.lowercase(bytes) : "")
    case .text(let text):
      let lines = text.replacing("\r\n", with: "\n")
      // A page shows control characters as numbers, which the form would send back as digits.
      let isPlain = lines.unicodeScalars.allSatisfy { $0 == "\n" || EscapedText.isHarmless($0) }
      guard text.utf8.count <= textLimit, isPlain, lines.escapedLines == lines else { return (.text, "") }
      return (.text, lines)
    }
  }

  // MARK: Answering

  /// The typed values.
  ///
  /// - Throws: `Refusal`, with a sentence for people.
  static func values(in form: FormFields, of record: ConflictRecord) throws(Refusal) -> [String: ChangesetValue] {
    var values: [String: ChangesetValue] = [:]
    for column in columns(of: record) {
      guard let word = form["as-\(column.place)"] else { continue }
      guard let choice = Choice(rawValue: word) else { throw Refusal(description: "There is no choice '\(word)'.") }
      let typed = form["value-\(column.place)"] ?? ""
      if let value = try value(choice, typed, column, record) { values[column.name] = value }
    }
    guard !values.isEmpty else {
      throw Refusal(description: "No column gets a value. Choose one for at least one column.")
    }
    return values
  }

  private static func value(
    _ choice: Choice, _ typed: String, _ column: Column, _ record: ConflictRecord
  ) throws(Refusal) -> ChangesetValue? {
    switch choice {
    case .leave: return nil
    case .null: return .null
    case .here: return ConflictRecord.value(of: column.name, in: record.local)
    case .incoming: return ConflictRecord.value(of: column.name, in: record.incoming)
    case .text:
      // A browser sends line ends as two characters; the earlier versions show the original ones.
      let versions = [record.local, record.incoming].map { ConflictRecord.value(of: column.name, in: $0) }
      let keepsReturns = versions.contains { if case .text(let text) = $0 { text.contains("\r\n") } else { false } }
      return .text(keepsReturns ? typed : typed.replacing("\r\n", with: "\n"))
    case .number:
      let digits = typed.filter { !$0.isWhitespace }
      if let number = Int64(digits) { return .integer(number) }
      if let number = Double(digits), number.isFinite { return .real(number) }
      throw Refusal(
        description: "The value of \(column.name) is no number: '\(typed.escaped(limit: 40))'. Use digits and a point.")
    case .blob:
      let digits = typed.filter { !$0.isWhitespace }.lowercased()
      guard let bytes = HexText.bytes(digits) else {
        throw Refusal(description: "The bytes of \(column.name) are not pairs of hexadecimal digits.")
      }
      return .blob(bytes)
    }
  }
}

extension String {
  /// The text as a page shows it, line by line.
  fileprivate var escapedLines: String {
    split(separator: "\n", omittingEmptySubsequences: false).map(\.description.escaped).joined(separator: "\n")
  }
}
