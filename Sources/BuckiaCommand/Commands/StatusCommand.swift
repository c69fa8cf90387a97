import ArgumentParser
import Buckia
import BuckiaBackup

/// `buckia status`
struct StatusCommand: DatabaseSubcommand {
  static let configuration = CommandConfiguration(
    commandName: "status",
    abstract: "Shows where a database stands: what has arrived, what is open, what to do next.",
    discussion: """
      It lists what you share with whom, and what others share with you: how many diffs have been applied, and how old the newest \
      is, since diffs that are held back on the way cannot be noticed otherwise. With --words it reads all shared rows and prints \
      six words for each person: the words are the same where the rows are.

      Example:
        buckia status notes.sqlite
        buckia status notes.sqlite --words
      """)

  @OptionGroup var target: DatabaseOptions

  @Flag(help: "Print a word fingerprint of the shared rows, which two people can compare.")
  var words = false

  @OptionGroup var output: OutputOptions

  func perform(on console: Console) throws -> ExitStatus {
    let report = try manager.status(includesWords: words)
    let backups = try BackupStore.status(of: manager)
    let next = report.nextSteps(database: target.database)
    try console.document(report.json(next: next, backups: backups.map(\.json)))
    try console.say(report.lines(next: next, backups, style: console.style))
    return .done
  }
}

/// A suggested command, with the reason.
typealias NextStep = (reason: String, command: String)

extension StatusReport {
  /// The suggested commands.
  ///
  /// - Parameter database: The database's path as it was typed.
  func nextSteps(database: String) -> [NextStep] {
    let path = database.shellQuoted
    guard let ledger else { return [("Make the ledger", "buckia init \(path)")] }
    var steps: [NextStep] = []
    if openConflicts > 0 {
      steps.append(("Look at \(openConflicts.counted("open conflict"))", "buckia conflicts \(path) --open"))
    }
    let unfinished = ledger.held + ledger.waiting + ledger.quarantined + ledger.rejected
    if unfinished > 0 {
      let files = "\(unfinished.counted("file")) \(unfinished == 1 ? "is" : "are")"
      steps.append(("See why \(files) not applied", "buckia log \(path)"))
    }
    if !leftOut.isEmpty {
      steps.append(
        (
          "Correct or delete \(leftOutSummary), which are not shared since they refer to missing rows",
          "buckia doctor \(path)"
        ))
    }
    return steps
  }

  /// The rows that shares leave out, each table once.
  private var leftOutSummary: String {
    var counts: [String: Int] = [:]
    for entry in leftOut { counts[entry.table] = max(counts[entry.table] ?? 0, entry.rows) }
    return counts.sorted { $0.key < $1.key }.map { "\($1.counted("row")) of \($0.escaped(limit: 40))" }
      .joined(separator: ", ")
  }

  /// The report for people.
  func lines(next: [NextStep], _ backups: [BackupStore.Status], style: Style) -> [String] {
    var lines: [String] = []
    if let ledger, let trust {
      var facts = TextTable(facts: [("files", ledger.summary)])
      if let recordedAt { facts.add([.init("last entry", .faint), .init("\(UTCTime(unixMilliseconds: recordedAt))")]) }
      facts.add([.init("conflicts", .faint), .init("\(openConflicts.grouped) open, \(conflicts.grouped) in all")])
      if !leftOut.isEmpty { facts.add([.init("left out of shares", .faint), .init(leftOutSummary, .notable)]) }
      facts.add([.init("trust", .faint), .init(trust.rawValue)])
      if let dataset { facts.add([.init("dataset", .faint), .init("\(dataset)")]) }
      for (name, value) in replicaFacts { facts.add([.init(name, .faint), .init(value)]) }
      lines += facts.lines(style: style, indent: 0)
    } else {
      lines.append("The database has no ledger: nothing has been applied to it yet.")
    }
    if !shares.isEmpty { lines += ["", style("You share:", .strong)] + shares.lines(style: style) }
    if !streams.isEmpty { lines += ["", style("Others share with you:", .strong)] + streams.lines(style: style) }
    if !words.isEmpty { lines += ["", style("Shared rows in words:", .strong)] + words.lines(style: style) }
    if !backups.isEmpty { lines += ["", style("Backups:", .strong)] + backups.lines(style: style) }
    if let notice = replica?.standing.notice {
      lines += [""] + style.note(notice)
    }
    if !warnings.isEmpty { lines += [""] + warnings.lines(style: style) }
    if !next.isEmpty { lines += [""] + next.flatMap { style.suggestion($0.reason, $0.command) } }
    return lines
  }

  private var replicaFacts: [(name: String, value: String)] {
    guard let replica else { return [("replica", "none yet; the next command that writes gives it an id")] }
    return [("replica", replica.id), ("incarnation", replica.incarnation)]
  }
}

extension [ComparedWords] {
  fileprivate func lines(style: Style) -> [String] {
    TextTable([.text("with"), .number("rows"), .prose("words")], of: self) { entry in
      [
        .init(entry.people.escaped(limit: 24)), .count(Int(clamping: entry.rows)),
        entry.problem.map { .init("none: \($0)", .notable) } ?? .init(entry.words.joined(separator: " ")),
      ]
    }.lines(style: style)
  }
}

extension [BackupStore.Status] {
  fileprivate func lines(style: Style) -> [String] {
    let now = WallClock.unixMilliseconds
    func age(_ time: Int64) -> String { "\(Age(seconds: Swift.max(0, (now - time) / 1_000))) ago" }
    return TextTable([.prose("to"), .text("newest"), .prose("restored and checked")], of: self) { backup in
      [
        .init(backup.store.escaped), .init(age(backup.point.time)),
        backup.fault.map { .init("cannot be restored: \($0.escaped)", .bad) } ?? backup.verifiedAt.map {
          .init(age($0))
        } ?? .init("never; try it with `buckia backup --drill`", .notable),
      ]
    }.lines(style: style)
  }
}

extension StatusReport.Replica.Standing {
  /// A notice of coming events; nil for none.
  var notice: String? {
    switch self {
    case .present: nil
    case .restored:
      "this database is in an earlier state than when it was last used here, as if a backup had been restored; the next command "
        + "that writes begins a new incarnation"
    case .copied:
      "this database is a copy of another one that is still there; the next command that writes makes it a replica of its own"
    case .unknown:
      "this database comes from elsewhere: nothing is known here of its replica; the next command that writes begins a new "
        + "incarnation"
    }
  }
}

extension LedgerCounts {
  /// The number of files by state, without zeros.
  var summary: String {
    let others: [(state: DiffState, count: Int)] = [
      (.held, held), (.waiting, waiting), (.quarantined, quarantined), (.rejected, rejected),
    ]
    let shown = others.filter { $0.count > 0 }.map { "\($0.count.grouped) \($0.state.rawValue)" }
    return (["\(applied.grouped) applied"] + shown).joined(separator: ", ")
  }
}

extension [SharedRows] {
  /// The tables, with how many rows.
  var summary: String { map { "\($0.table.escaped(limit: 40)) \($0.rows.grouped)" }.joined(separator: ", ") }
}

extension ShareState {
  /// The scope for people.
  var subject: String {
    let tables =
      self.tables.isEmpty
      ? scope.tables.map { $0.name.text.escaped(limit: 40) }.joined(separator: ", ") : self.tables.summary
    return scope.name.map { "\($0.escaped(limit: 40)): \(tables)" } ?? tables
  }

  /// How far the recipients have applied it, for people.
  var progress: String {
    guard sequence > 0 else { return "nothing sent yet" }
    guard !acknowledgements.isEmpty else { return "not acknowledged yet" }
    return acknowledgements.map { "\($0.sender.escaped(limit: 24)) has applied \($0.through.grouped)" }
      .joined(separator: ", ")
  }
}

extension [ShareState] {
  fileprivate func lines(style: Style) -> [String] {
    TextTable.lines(
      [.text("with"), .text("what"), .number("sent"), "newest made", .prose("")], of: self, "share", style: style
    ) { share in
      [
        .init(share.recipients.listed()), .init(share.subject),
        .count(Int(clamping: share.sequence)), .init(share.id.map { Age(of: $0) }.map { "\($0) ago" } ?? "–"),
        .init(share.progress, .faint),
      ]
    }
  }
}

extension Age {
  /// How long ago an id was made, as the clock of this device has it.
  init(of id: KSUID) { self.init(seconds: Swift.max(0, Int64(Date().timeIntervalSince1970) - id.unixSeconds)) }
}

extension StreamState {
  /// The note about the share; empty for none.
  var note: String {
    if isEnded { return "ended: a snapshot has taken its place" }
    guard waiting > 0 else { return "" }
    return "\(waiting.counted("file")) waiting" + (missing.map { " for \($0)" } ?? "")
  }
}

extension [StreamState] {
  fileprivate func lines(style: Style) -> [String] {
    TextTable.lines(
      [.text("sender"), .text("what"), .number("received"), "newest made", .prose("")], of: self, "stream",
      style: style
    ) { stream in
      [
        .init(stream.sender.escaped(limit: 24)), .init(stream.tables.summary),
        .count(Int(clamping: stream.sequence)), .init(stream.age.map { "\(Age(seconds: $0)) ago" } ?? "–"),
        .init(stream.note, .notable),
      ]
    }
  }
}

/// `buckia doctor`
struct DoctorCommand: DatabaseSubcommand {
  static let configuration = CommandConfiguration(
    commandName: "doctor",
    abstract: "Explains what of a database replicates, and what does not and why.",
    discussion: """
      Example:
        buckia doctor notes.sqlite
      """)

  @OptionGroup var target: DatabaseOptions

  @OptionGroup var output: OutputOptions

  func perform(on console: Console) throws -> ExitStatus {
    let report = try manager.examine()
    try console.show(report.json, report.lines(style: console.style))
    return .done
  }
}

extension DoctorReport {
  /// The report for people.
  func lines(style: Style) -> [String] {
    var lines: [String] = []
    if replicates.isEmpty {
      lines.append(style("No table of this database replicates.", .notable))
    } else {
      lines.append(style("\(replicates.count.counted("table")) replicate\(replicates.count == 1 ? "s" : ""):", .good))
      lines += tableLines(style: style)
    }
    lines += skipped.lines(heading: "Does not replicate:", style: style)
    if !warnings.isEmpty { lines += [""] + warnings.lines(style: style) }
    return lines
  }

  /// The tables; if these are many, the kinds of keys with their tables.
  private func tableLines(style: Style) -> [String] {
    guard replicates.count > style.listLimit else {
      return TextTable([.text("table"), .prose("rows are told apart by")], of: replicates) {
        [.init($0.name.escaped(limit: 60)), .init($0.key.escaped, .faint)]
      }.lines(style: style)
    }
    var list = GroupedList()
    for entry in replicates { list.add(entry.name, "rows are told apart by \(entry.key)") }
    return list.lines("table", style: style)
  }
}
