import ArgumentParser
import Buckia

/// `buckia blame`
struct BlameCommand: DatabaseSubcommand {
  static let configuration = CommandConfiguration(
    commandName: "blame",
    abstract: "Tells which diffs have set the columns of a row last, and who has sent them.",
    discussion: """
      The table must have a clock: `buckia init DB --clocks` gives it one, and so does `apply --on-conflict latest`.

      Example:
        buckia blame notes.sqlite notes --key id=7
      """)

  @OptionGroup var target: DatabaseOptions

  @Argument(help: "The table.")
  var table: String

  @Option(
    help: ArgumentHelp(
      "A column of the primary key and its value; _rowid_ where there is none. Once for each column.",
      valueName: "column=value"),
    transform: Self.key(parsing:))
  var key: [(column: String, value: ChangesetValue)]

  @OptionGroup var output: OutputOptions

  func validate() throws {
    if key.isEmpty {
      throw ValidationError("--key is missing: a column of the primary key and its value, such as id=7.")
    }
  }

  func perform(on console: Console) throws -> ExitStatus {
    let values = Dictionary(key) { _, last in last }
    let origin = try manager.origin(ofRowIn: table, key: values)
    try console.show(origin.json, origin.lines(style: console.style))
    return .done
  }

  /// A typed column of a key with its value: `id=7`, `name=red`, `hash=x'00ff'`.
  ///
  /// Reads a number, `x'…'` as a blob, and anything else as text. SQLite converts it to the column's type.
  ///
  /// - Throws: `ValidationError` where there is no equals sign.
  static func key(parsing argument: String) throws -> (column: String, value: ChangesetValue) {
    guard let (column, text) = argument.parts(beside: "="), !column.isEmpty else {
      throw ValidationError("It has the form column=value.")
    }
    if let number = Int64(text), String(number) == text {
      return (column, .integer(number))
    }
    if text.hasPrefix("x'"), text.hasSuffix("'"), let bytes = HexText.bytes(String(text.dropFirst(2).dropLast())) {
      return (column, .blob(bytes))
    }
    return (column, .text(text))
  }
}

extension RowOrigin {
  /// The answer as `--json` has it.
  var json: JSONValue {
    [
      "version": 1,
      "table": .string(table),
      "exists": .bool(exists),
      "source": source?.json ?? .null,
      "columns": .array(
        columns.map {
          ["name": .string($0.name), "value": $0.value?.json ?? .null, "source": $0.source?.json ?? .null]
        }),
    ]
  }

  /// The answer for people.
  func lines(style: Style) -> [String] {
    guard exists else {
      guard let source else { return ["There is no such row, and no diff has ever deleted one."] }
      return style.wrapped("The row is not there: \(source.words) has deleted it.")
    }
    var lines: [String] = []
    if let source { lines += style.wrapped("Inserted by \(source.words).") + [""] }
    let list = TextTable(["column", .text("value"), "diff", .text("sender"), "applied"], of: columns) { column in
      let source = column.source
      return [
        .init(column.name.escaped(limit: 40)), .init(column.value?.shown(limit: style.isFull ? .max : 24) ?? ""),
        .init(source.map { $0.isClaimed ? "\($0.diff) *" : "\($0.diff)" } ?? "–"),
        .init(source?.sender.escaped(limit: 24) ?? "", .faint),
        .init(source?.appliedAt.map { "\(UTCTime(unixMilliseconds: $0))" } ?? ""),
      ]
    }
    lines += list.lines(style: style, indent: 0)
    if columns.contains(where: { $0.source == nil }) {
      lines += style.wrapped(
        style("–: no diff that is known here; it was so from the beginning, or was changed here and not sent.", .faint))
    }
    if columns.contains(where: { $0.source?.isClaimed == true }) {
      lines += style.wrapped(
        style("*: the sender says that the change comes from this diff, which did not bring it here itself.", .faint))
    }
    return lines
  }
}

extension RowOrigin.Source {
  fileprivate var json: JSONValue {
    [
      "diff": .string(diff.description),
      "sender": .string(sender),
      "isClaimed": .bool(isClaimed),
      "appliedAt": .time(appliedAt),
    ]
  }

  fileprivate var words: String {
    let sender = sender.escaped(limit: 80)
    return isClaimed ? "\(diff) (so \(sender) says)" : "\(diff) (\(sender))"
  }
}
