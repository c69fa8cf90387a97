import ArgumentParser
import Buckia
import NIOConcurrencyHelpers

/// `buckia share`
struct ShareCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "share",
    abstract: "Shares some rows of a database with others: all of them first, then what has changed.",
    discussion: """
      The rows that shared rows refer to come along, from other tables, too. A scope file says more: which rows come because they refer \
      to shared ones, columns that are rewritten, tables that are never shared; Schemas/scope.md describes it.

      What the others have is kept in the database. The next share with the same people sends what has changed since, and withdraws \
      rows that are not shared any more. When nothing has changed, no file is written. Where only one scope is shared with them, --to \
      is enough. Named with more people, the share takes the place of the one with fewer of them: they keep what they have, and get what \
      has changed.

      The file is encrypted for those named with --to, and signed by you: make an identity first (buckia identity new), and add their \
      cards (buckia contact add). One file can be encrypted for up to 64: where there are more, the folder of -o also has the folders \
      group-2, group-3 and so on. Each person needs the file of their group; --json says who is in which.

      Rows of other tables that shared rows refer to go along, with their key and what a row cannot be without; --table photo \
      --where false shares all columns of the photos that others refer to.

      Example:
        buckia share notes.db --to anna --table note --where 'topic = 7' -o outbox
        buckia share photos.db --to anna --to ben --scope album.json --dry-run
      """)

  @Argument(help: "The database.")
  var database: String

  @Option(
    help: ArgumentHelp(
      "Whom it is for: a contact, the file of a card, or a recipient age1…. May be given several times: all get the same file.",
      valueName: "who"))
  var to: [String]

  @OptionGroup var choice: ScopeOptions

  @Option(name: [.customShort("o"), .customLong("output")], help: ArgumentHelp(OutputPath.help, valueName: "path"))
  var path: String?

  @Flag(help: "Show which rows and columns would leave, and how many bytes; write nothing.")
  var dryRun = false

  @Flag(help: "Send everything again: after a file was lost, or when a recipient starts over.")
  var resync = false

  @Option(
    help:
      "What becomes of rows that are no longer shared: withdraw removes them at the recipients, keep leaves them there."
  )
  var onLeave = LeavePolicy.withdraw

  @Option(
    help:
      "What to do about rows that would newly be shared because of a change by a person who does not have them: hold lists them and sends none, once sends those of now, always sends them from now on, never goes back to holding them."
  )
  var widen = WideningPolicy.hold

  @Flag(
    help:
      "Delete at the recipients, too, the rows that were removed here by an undo or because their sender no longer shares them."
  )
  var propagate = false

  @Flag(
    help:
      "Write a file even if nothing has changed, when changes were applied since the last one: it acknowledges them."
  )
  var acknowledge = false

  @Flag(help: "Write a file that everybody can read. It is signed if you have an identity; --to may be any name.")
  var unencrypted = false

  @Flag(help: "Replace the file named with -o when it is there already.")
  var force = false

  @OptionGroup var output: OutputOptions

  func validate() throws {
    try OutputPath.validate(path, output)
  }

  var printsResult: Bool { path == OutputPath.standardOutput }

  private func chosenScope(for recipients: [ShareRecipient]) throws -> ShareScope {
    try choice.scope() ?? knownScope(of: recipients)
  }

  /// The only scope that is shared with these people, or was offered to them.
  private func knownScope(of recipients: [ShareRecipient]) throws -> ShareScope {
    let known = try DatabaseManager(database, home: home.folder).sharedScopes(with: recipients)
    guard let only = known.first, known.count == 1 else {
      throw ValidationError(
        known.isEmpty
          ? "Say what to share: with --table, or with --scope. Nothing is shared with them yet."
          : "Say what to share, with --table or --scope: \(known.count) scopes are shared with them.")
    }
    return only
  }

  func perform(on console: Console) throws -> ExitStatus {
    let progress = console.progress
    var options = ShareOptions()
    options.onLeave = onLeave
    options.widening = widen
    options.propagates = propagate
    options.acknowledges = acknowledge
    options.resyncs = resync
    options.isUnencrypted = unencrypted
    options.isDryRun = dryRun
    let known = Recipients(in: home.folder)
    let recipients = try to.map { try known.recipient($0) }
    let report = try DatabaseManager(database, home: home.folder).share(
      chosenScope(for: recipients), to: recipients,
      output: OutputPath.diffOutput(path, replacing: force), options: options, signedBy: home.folder.identityIfAny(),
      progress: { now in try progress.update(now.line) })
    progress.clear()
    try console.show(report.json, report.lines(style: console.style))
    return .done
  }
}

/// The rows that a command is about.
struct ScopeOptions: ParsableArguments {
  @Option(
    name: .customLong("table"),
    help: ArgumentHelp("A table. May be given several times.", valueName: "name"),
    transform: { OrderedArgument($0) })
  var tables: [OrderedArgument] = []

  @Option(
    name: .customLong("where"),
    help: ArgumentHelp("Only the rows of the --table before that meet an SQL condition.", valueName: "sql"),
    transform: { OrderedArgument($0) })
  var conditions: [OrderedArgument] = []

  @Option(
    name: .customLong("scope"),
    help: ArgumentHelp("A file that says which rows, instead of --table.", valueName: "file"))
  var file: String?

  @Option(help: ArgumentHelp("A column to leave out. May be given several times.", valueName: "table.column"))
  var exclude: [ColumnChoice] = []

  func validate() throws {
    guard file == nil || tables.isEmpty else {
      throw ValidationError("Say which rows: with --table, or with --scope.")
    }
    guard file == nil || conditions.isEmpty && exclude.isEmpty else {
      throw ValidationError("--where and --exclude go with --table; a scope file says both itself.")
    }
    _ = try typedScope()
  }

  /// The scope of `--table`, `--where` and `--exclude`.
  private func typedScope() throws -> ShareScope {
    var shared: [SharedTable] = []
    for table in tables {
      let next = tables.map(\.position).filter { $0 > table.position }.min() ?? .max
      let found = conditions.filter { $0.position > table.position && $0.position < next }
      guard found.count < 2 else {
        throw ValidationError("--where is given twice for one table; join the conditions with AND or OR.")
      }
      let name = TableName(table.text)
      var entry = SharedTable(name)
      entry.condition = found.first?.text
      entry.omittedColumns = exclude.filter { $0.table == name }.map(\.column)
      shared.append(entry)
    }
    let first = tables.map(\.position).min() ?? .max
    guard conditions.allSatisfy({ $0.position > first }) else {
      throw ValidationError("--where needs a --table before it: the table whose rows it chooses.")
    }
    if let other = exclude.first(where: { choice in !shared.contains { $0.name == choice.table } }) {
      throw ValidationError("--exclude names table \(other.table.text), which no --table names.")
    }
    return ShareScope(tables: shared)
  }

  /// The chosen scope; nil for none.
  func scope() throws -> ShareScope? {
    guard let file else { return try tables.isEmpty ? nil : typedScope() }
    return file == ArgumentFile.standardInput ? try .standardInput() : try ShareScope(contentsOf: file)
  }
}

extension LeavePolicy: ExpressibleByArgument {}
extension WideningPolicy: ExpressibleByArgument {}

/// The value of an option that belongs to another one before it, such as the `--where` of a `--table`.
///
/// The parser collects the values of each option separately, in the order in which they are given. The position of a
/// value shows which option precedes it.
struct OrderedArgument {
  let text: String
  /// Greater than those of all values that were read before.
  let position: Int

  init(_ text: String) {
    self.text = text
    position = Self.count.withLockedValue { count in
      count += 1
      return count
    }
  }

  private static let count = NIOLockedValueBox(0)
}

extension ShareReport {
  /// The report for people.
  func lines(style: Style) -> [String] {
    var lines = delivered.map {
      "\($0.path.map(\.escaped) ?? "standard output") was left of an earlier share, and is written now."
    }
    let time = "(\(Elapsed(seconds)))"
    if isIncomplete {
      lines.append("Only this file fits the output. Share again for what has changed since.")
    } else if isDryRun, bytes > 0 {
      lines.append("\(ByteCount(bytes)) would be sent \(time)\(isSnapshot ? ": everything in the scope" : "").")
    } else if id != nil {
      let name = path.map(\.escaped) ?? "standard output"
      lines.append(
        "\(style(name, .strong))  \(ByteCount(bytes)) in \(Elapsed(seconds))\(isSnapshot ? ", everything in the scope" : "")"
      )
      lines += groupLines(style: style)
    } else {
      lines.append("No changes, so no file \(isDryRun ? "would be" : "was") written \(time).")
    }
    let columns: [TextTable.Column] = .changes(after: [.text("table")], before: [.number("withdrawn")])
    let table = TextTable.lines(columns, of: tables, "table", style: style) {
      .changes(
        after: [.init($0.name.escaped(limit: 60))], $0.inserted, $0.updated, $0.deleted,
        before: [.count($0.withdrawn, .notable)])
    }
    if !table.isEmpty { lines += [""] + table }
    if isDryRun { for table in tables { lines += [""] + table.preview(style: style) } }
    lines += skipped.lines(heading: "Not in the file:", style: style)
    if !warnings.isEmpty { lines += [""] + warnings.lines(style: style) }
    let held = leftOut.filter { $0.reason == .heldBack }
    if !held.isEmpty {
      lines += ["", "Held back:"] + held.map { $0.line(style: style) }
      lines.append(
        "To send these rows, share with --widen once; to send such rows from now on, too, with --widen always.")
    }
    return lines
  }

  /// The files after the first one, with the numbers of their recipients.
  private func groupLines(style: Style) -> [String] {
    guard files.count > 1, let first = files.first else { return [] }
    var lines = [
      "One file can be encrypted for up to 64 people, so there are \(files.count) with the same contents. Each person needs one:"
    ]
    lines += TextTable.lines(
      [.text("file"), .number("people"), .text("from … to")], of: files, "file", style: style
    ) { file in
      let names = [file.recipients.first, file.recipients.last].compactMap { $0?.escaped(limit: 24) }
      return [
        .init(file == first ? "this one" : file.folderName.escaped(limit: 40)), .count(file.recipients.count),
        .init(names.joined(separator: " … ")),
      ]
    }
    return lines
  }
}

extension LeftOutRows {
  /// The keys of the rows.
  fileprivate func line(style: Style) -> String {
    let shown = rows.prefix(style.listLimit).map { $0.key.map { "\($0)" }.joined(separator: ", ").escaped(limit: 60) }
    let rest = count > shown.count ? " and \(count - shown.count) more" : ""
    return "  \(table.escaped(limit: 60)): \(shown.joined(separator: "; "))\(rest)"
  }
}

extension ShareReport.Delivery {
  /// The folder that the file is in, without those above it.
  fileprivate var folderName: String {
    (path ?? "").split(separator: "/").dropLast().last.map(String.init) ?? ""
  }
}

extension ShareReport.Table {
  /// The columns and rows that would leave.
  fileprivate func preview(style: Style) -> [String] {
    let columns = columns.listed()
    let heading = style.wrapped("\(name.escaped(limit: 60)): \(columns)", indent: 0, hanging: 2)
    return heading
      + style.listed(changes, "row") { change in
        let sign = [ChangeOperation.insert: "+", .update: "~", .delete: "-"][change.operation] ?? " "
        return ["  \(sign) \(change.key.map { $0.shown(limit: style.isFull ? .max : 40) }.joined(separator: ", "))"]
      }
  }
}
