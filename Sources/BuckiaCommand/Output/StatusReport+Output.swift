import Buckia
import BuckiaReports

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// What a person can do next, and why.
struct NextStep {
  let reason: String
  let command: String
}

extension StatusReport {
  /// What to do next.
  ///
  /// - Parameter database: The database's path as it was typed.
  func nextSteps(database: String) -> [NextStep] {
    let path = database.shellQuoted
    guard let ledger else { return [NextStep(reason: "Make the ledger", command: "buckia init \(path)")] }
    var steps: [NextStep] = []
    if openConflicts > 0 {
      steps.append(
        NextStep(
          reason: "Look at \(openConflicts.counted("open conflict"))", command: "buckia conflicts \(path) --open"))
    }
    let unfinished = ledger.held + ledger.waiting + ledger.quarantined + ledger.rejected
    if unfinished > 0 {
      steps.append(
        NextStep(
          reason: "See why \(unfinished.counted("file")) \(unfinished == 1 ? "is" : "are") not applied",
          command: "buckia log \(path)"))
    }
    if !leftOut.isEmpty {
      steps.append(
        NextStep(
          reason:
            "Mend or delete \(leftOutSummary), which shares leave out since they refer to rows that others would not have",
          command: "buckia doctor \(path)"))
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

  /// The report as `--json` has it.
  func json(next: [NextStep]) -> JSONValue {
    [
      "version": 1,
      "trust": .text(trust?.rawValue),
      "replica": replica.map(\.json) ?? .null,
      "dataset": .text(dataset?.description),
      "ledger": ledgerJSON,
      "streams": .array(streams.map(\.json)),
      "leftOut": .array(
        leftOut.map { ["people": .string($0.people), "table": .string($0.table), "rows": .number($0.rows)] }),
      "words": .array(words.map(\.json)),
      "conflicts": ["open": .number(openConflicts), "total": .number(conflicts)],
      // This version knows of neither.
      "inbox": .null,
      "backup": .null,
      "warnings": .array(warnings.map { .string($0.shown) }),
      "remarks": .array(warnings.map(\.json)),
      "next": .array(next.map { ["reason": .string($0.reason), "command": .string($0.command)] }),
    ]
  }

  private var ledgerJSON: JSONValue {
    guard let ledger else { return .null }
    return [
      "applied": .number(ledger.applied),
      "held": .number(ledger.held),
      "waiting": .number(ledger.waiting),
      "quarantined": .number(ledger.quarantined),
      "rejected": .number(ledger.rejected),
      "newest": .text(newest?.description),
      "recordedAt": .text(recordedAt.map { Moment(unixMilliseconds: $0).rfc3339 }),
    ]
  }

  /// The report for people.
  func lines(next: [NextStep], style: Style) -> [String] {
    var lines: [String] = []
    if let ledger, let trust {
      var facts = TextTable(["", .prose("")])
      facts.add([.init("files", .faint), .init(ledger.summary)])
      if let recordedAt { facts.add([.init("last entry", .faint), .init("\(Moment(unixMilliseconds: recordedAt))")]) }
      facts.add([.init("conflicts", .faint), .init("\(openConflicts.grouped) open, \(conflicts.grouped) in all")])
      if !leftOut.isEmpty { facts.add([.init("left out of shares", .faint), .init(leftOutSummary, .notable)]) }
      facts.add([.init("trust", .faint), .init(trust.rawValue)])
      if let dataset { facts.add([.init("dataset", .faint), .init("\(dataset)")]) }
      for (name, value) in replicaFacts { facts.add([.init(name, .faint), .init(value)]) }
      lines += facts.lines(style: style, indent: 0)
    } else {
      lines.append("The database has no ledger: nothing has been applied to it yet.")
    }
    if !streams.isEmpty { lines += ["", style("Streams:", .strong)] + streams.lines(style: style) }
    if !words.isEmpty { lines += ["", style("Shared rows in words:", .strong)] + words.lines(style: style) }
    if let notice = replica?.standing.notice {
      lines += [""] + style.wrapped("\(style("Note:", .notable)) \(notice)", hanging: 2)
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

extension ComparedWords {
  fileprivate var json: JSONValue {
    [
      "people": .string(people),
      "streams": .array(streams.map { .string($0) }),
      "rows": .integer(rows),
      "words": .array(words.map { .string($0) }),
      "digest": .text(problem == nil ? digest : nil),
      "problem": .text(problem),
    ]
  }
}

extension [ComparedWords] {
  fileprivate func lines(style: Style) -> [String] {
    var table = TextTable([.text("with"), .number("rows"), .prose("words")])
    for entry in self {
      table.add([
        .init(entry.people.escaped(limit: 24)), .count(Int(clamping: entry.rows)),
        entry.problem.map { .init("none: \($0)", .notable) } ?? .init(entry.words.joined(separator: " ")),
      ])
    }
    return table.lines(style: style)
  }
}

extension StatusReport.Replica {
  fileprivate var json: JSONValue {
    ["id": .string(id), "incarnation": .string(incarnation), "standing": .string(standing.rawValue)]
  }
}

extension StatusReport.Replica.Standing {
  /// What will happen; nil where nothing will.
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
  /// How many there are of each state, but for those of which there are none.
  var summary: String {
    let others: [(state: DiffState, count: Int)] = [
      (.held, held), (.waiting, waiting), (.quarantined, quarantined), (.rejected, rejected),
    ]
    let shown = others.filter { $0.count > 0 }.map { "\($0.count.grouped) \($0.state.rawValue)" }
    return (["\(applied.grouped) applied"] + shown).joined(separator: ", ")
  }
}

extension StreamState {
  fileprivate var json: JSONValue {
    [
      "sender": .string(sender),
      "stream": .string(stream),
      "incarnation": .text(incarnation),
      "sequence": .integer(sequence),
      "id": .text(id?.description),
      "madeAt": .text(id.map { Moment(unixSeconds: $0.unixSeconds).rfc3339 }),
      "appliedAt": .text(appliedAt.map { Moment(unixMilliseconds: $0).rfc3339 }),
      "ageSeconds": age.map { .integer($0) } ?? .null,
      "waiting": .number(waiting),
      "missing": .text(missing?.description),
      "ended": .bool(isEnded),
    ]
  }

  /// How long ago its newest diff was made, in seconds, as the clocks of both sides have it; nil where none was applied.
  var age: Int64? { id.map { max(0, Int64(Date().timeIntervalSince1970) - $0.unixSeconds) } }

  /// What there is to say of it; empty for nothing.
  var remark: String {
    if isEnded { return "ended: a snapshot has taken its place" }
    guard waiting > 0 else { return "" }
    return "\(waiting.counted("file")) waiting" + (missing.map { " for \($0)" } ?? "")
  }
}

extension [StreamState] {
  fileprivate func lines(style: Style) -> [String] {
    var table = TextTable([
      "stream", .text("sender"), .number("received"), "newest made", .prose(""),
    ])
    for stream in prefix(style.listLimit) {
      table.add([
        .init(String(stream.stream.prefix(8))), .init(stream.sender.escaped(limit: 24), .faint),
        .count(Int(clamping: stream.sequence)), .init(stream.age.map { "\(Age(seconds: $0)) ago" } ?? "–"),
        .init(stream.remark, .notable),
      ])
    }
    let left = count - style.listLimit
    return table.lines(style: style) + (left > 0 ? [style.rest(left, "stream", indent: 2)] : [])
  }
}
