import ArgumentParser
import Buckia

/// `buckia diff`
struct DiffCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "diff",
    abstract: "Writes the differences between two databases to a diff file.",
    discussion: """
      Both databases may be in use, and no row of either is changed. If NEW has ledger tables (buckia init), the id of the diff is \
      noted in them, and where it has clocks, which rows the diff has. If OLD is a snapshot, what was sent is noted in it. \
      Other databases are only read.

      The file is named by its id, <KSUID>.bdiff, unless -o names a file. When nothing changed, no file is written.

      OLD is what others know of your database: as you last sent it, and what has come from them since. \
      `buckia snapshot` makes the first one while others have all that is in the database, and `apply --snapshot OLD` keeps it.

      Example:
        buckia diff before.sqlite now.sqlite -o outbox
      """)

  @Argument(help: "The earlier state of the database.")
  var old: String

  @Argument(help: "The present state of the database.")
  var new: String

  @Option(
    name: [.customShort("o"), .customLong("output")],
    help: ArgumentHelp(
      OutputPath.help,
      valueName: "path"))
  var path: String?

  @Flag(help: "Write a bare SQLite changeset, without table definitions, for other SQLite tools.")
  var raw = false

  @Option(
    help: ArgumentHelp("Compare these tables only, separated by commas.", valueName: "a,b"))
  var tables: TableList?

  @Option(
    name: .customLong("where"),
    help: ArgumentHelp(
      "Compare only the rows of a table that meet an SQL condition. May be given for several tables.",
      valueName: "table=sql"))
  var conditions: [ConditionChoice] = []

  @Option(
    help: ArgumentHelp("A column to leave out. May be given several times.", valueName: "table.column"))
  var exclude: [ColumnChoice] = []

  @Option(help: ArgumentHelp("How to compare: auto, pages, rows or session.", valueName: "method"))
  var method = MethodChoice.auto

  @Option(
    help: ArgumentHelp(
      "A column that has another name now. May be given several times.", valueName: "table.old=new"))
  var rename: [ColumnRename] = []

  @Option(
    help: ArgumentHelp(
      "What tells rows of tables without a primary key apart: their rowid, or their content.", valueName: "identity"))
  var keyless = KeylessIdentity.rowid

  @Flag(help: "Replace the file named with -o when it is there already, and compare databases that share no table.")
  var force = false

  @Flag(
    help: ArgumentHelp(
      "Send again what was sent since the snapshot OLD was made: a file was lost. Of a database with clocks only new changes are sent otherwise."
    ))
  var again = false

  @Flag(
    help:
      "Sign the file with your identity: recipients who trust known senders only refuse unsigned files. `buckia identity new` makes one."
  )
  var sign = false

  @Option(help: ArgumentHelp("Sign with another identity than that of your home folder.", valueName: "file"))
  var identity: String?

  @OptionGroup var output: OutputOptions

  func validate() throws {
    let tables = conditions.map(\.table)
    guard Set(tables).count == tables.count else {
      throw ValidationError("--where is given twice for one table; join the conditions with AND or OR.")
    }
    if let compared = self.tables?.names,
      let other = (tables + exclude.map(\.table)).first(where: { !compared.contains($0) })
    {
      throw ValidationError("--where or --exclude names table \(other.text), which --tables leaves out.")
    }
    if raw, sign || identity != nil {
      throw ValidationError("A bare changeset has no room for a signature: leave out --raw or --sign.")
    }
    try OutputPath.validate(path, output)
  }

  var printsResult: Bool { path == OutputPath.standardOutput }

  /// The rows and columns of each table that `--where` and `--exclude` select.
  private var selections: [TableName: RowSelection] {
    var selections: [TableName: RowSelection] = [:]
    for choice in conditions { selections[choice.table, default: RowSelection()].condition = choice.sql }
    for choice in exclude { selections[choice.table, default: RowSelection()].omittedColumns.append(choice.column) }
    return selections
  }

  func perform(on console: Console) throws -> ExitStatus {
    let progress = console.progress
    var options = DiffOptions(
      tables: tables?.names, selections: selections, method: method.method, isRaw: raw, renames: rename,
      keyless: keyless)
    options.allowsUnrelated = force
    options.includesSent = again
    let signer =
      try identity.map { try Identity(contentsOf: $0, passphrase: home.passphrase) }
      ?? (sign ? home.folder.identity() : nil)
    let report = try DatabaseManager(new, home: home.folder).createDatabaseDiff(
      since: old, output: OutputPath.diffOutput(path, replacing: force), options: options, signedBy: signer,
      progress: { now in try progress.update(now.line) })
    progress.clear()
    try console.show(report.json, report.lines(style: console.style))
    return report.isComplete ? .done : .needsPerson
  }
}

extension KeylessIdentity: ExpressibleByArgument {}

/// The tables of `--tables A,B`.
struct TableList: ExpressibleByArgument {
  let names: [TableName]

  init?(argument: String) {
    let parts = argument.split(separator: ",", omittingEmptySubsequences: false)
    guard parts.allSatisfy({ !$0.isEmpty }) else { return nil }
    names = parts.map { TableName(String($0)) }
  }
}

/// The condition of `--where TABLE=SQL`.
struct ConditionChoice: ExpressibleByArgument {
  let table: TableName
  let sql: String

  init?(argument: String) {
    guard let (table, sql) = argument.parts(beside: "="), !table.isEmpty else { return nil }
    self.table = TableName(table)
    self.sql = sql
  }
}

/// The column of `--exclude TABLE.COLUMN`.
struct ColumnChoice: ExpressibleByArgument {
  let table: TableName
  let column: String

  init?(argument: String) {
    guard let (table, column) = argument.parts(beside: ".", last: true), !table.isEmpty, !column.isEmpty else {
      return nil
    }
    self.table = TableName(table)
    self.column = column
  }
}

extension ColumnRename: ExpressibleByArgument {
  /// Reads `TABLE.OLD=NEW`.
  public init?(argument: String) {
    guard let (before, name) = argument.parts(beside: "=", last: true), let old = ColumnChoice(argument: before) else {
      return nil
    }
    self.init(table: old.table, from: old.column, to: name)
    guard refusal == nil else { return nil }
  }
}

/// The values of `--method`: those of the engine, and `auto`.
enum MethodChoice: String, ExpressibleByArgument, CaseIterable {
  case auto
  case pages
  case rows
  case session

  /// The engine's method; nil lets it choose.
  var method: DiffMethod? { DiffMethod(rawValue: rawValue) }
}

extension DiffReport {
  /// The report for people.
  func lines(style: Style) -> [String] {
    var lines: [String] = []
    if id != nil {
      let name = path.map(\.escaped) ?? "standard output"
      lines.append("\(style(name, .strong))  \(ByteCount(bytes)) in \(Elapsed(seconds))")
    } else if isComplete {
      lines.append("No changes, so no file was written (\(Elapsed(seconds))).")
    } else {
      lines.append("No file was written: what differs does not travel (\(Elapsed(seconds))).")
    }
    let columns: [TextTable.Column] = .changes(after: [.text("table")], before: ["method", .prose("")])
    var table = TextTable(columns, of: tables.prefix(style.listLimit)) { entry in
      .changes(
        after: [.init(entry.name.escaped(limit: 60))], entry.inserted, entry.updated, entry.deleted,
        before: [.init(entry.method.rawValue, .faint), .init(entry.schemaWarning, .notable)])
    }
    let left = tables.count - style.listLimit
    if tables.count > 1 {
      table.add([
        "in all", .count(tables.reduce(0) { $0 + $1.inserted }), .count(tables.reduce(0) { $0 + $1.updated }),
        .count(tables.reduce(0) { $0 + $1.deleted }),
      ])
    }
    if !table.isEmpty { lines += [""] + table.lines(style: style) }
    if left > 0 { lines.append(style.rest(left, "table", indent: 2)) }
    lines += skipped.lines(heading: "Not in the file:", style: style)
    lines += comparedByRows.lines(heading: "Compared row by row:", style: style)
    if !warnings.isEmpty { lines += [""] + warnings.lines(style: style) }
    if includesSchema, !skipped.isEmpty {
      lines += ["", "Applied with --schema adopt, it brings the whole schema."]
    }
    if let path {
      // Without changes of rows or tables it is useless to others.
      let option = tables.isEmpty ? " --schema adopt" : ""
      lines += [""] + style.suggestion("Apply it with", "buckia apply DB \(path.shellQuoted)\(option)")
    }
    return lines
  }
}

extension DiffReport.Table {
  /// What of the table itself is new.
  fileprivate var schemaWarning: String {
    if isNew { return "new table" }
    guard !newColumns.isEmpty else { return "" }
    let names = newColumns.listed()
    return "new column\(newColumns.count == 1 ? "" : "s") \(names)"
  }
}

extension [SkippedItem] {
  /// The items for people under a heading, grouped by reason; empty if there are none.
  func lines(heading: String, style: Style) -> [String] {
    guard !isEmpty else { return [] }
    var list = GroupedList()
    for item in self { list.add(item.name, item.reason.shown) }
    return ["", style(heading, .notable)] + list.lines("item", style: style)
  }
}

/// `buckia snapshot`
struct SnapshotCommand: DatabaseSubcommand {
  static let configuration = CommandConfiguration(
    commandName: "snapshot",
    abstract: "Makes the first snapshot of a database: what a diff starts from.",
    discussion: """
      Example:
        buckia snapshot notes.sqlite -o shared.sqlite

      The snapshot is what your recipients have: make it while you and they have the same rows, before you change anything. \
      If you have changed rows since, make it of a copy from before. It is the OLD of `diff`, and \
      `apply --snapshot` keeps it up to date.
      """)

  @OptionGroup var target: DatabaseOptions

  @Option(
    name: [.customShort("o"), .customLong("output")],
    help: ArgumentHelp("The file.", valueName: "file"))
  var path: String

  @Flag(help: "Replace an earlier snapshot: changes since then that were not sent are in none of your next diffs.")
  var force = false

  @OptionGroup var output: OutputOptions

  func perform(on console: Console) throws -> ExitStatus {
    let report = try target.manager(home: home.folder, polling: console.progress).snapshot(to: path, replacing: force)
    try console.document(report.json)
    try console.say("\(path.escaped)  \(ByteCount(Int(report.bytes)))")
    try console.say(
      console.style.suggestion(
        "Send what you change with", "buckia diff \(path.shellQuoted) \(target.database.shellQuoted)"))
    return .done
  }
}
