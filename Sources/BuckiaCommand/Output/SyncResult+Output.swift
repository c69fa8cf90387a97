import Buckia
import BuckiaSync

extension SyncProgress {
  /// What happens right now, for those who watch.
  var line: String {
    switch step {
    case .listing: "looking for what has arrived"
    case .downloading: "downloading \(counts)"
    case .applying: "applying"
    case .backingUp: "backing up"
    case .dropping: "clearing the inbound folder"
    case .uploading: "uploading \(counts)"
    case .delivering: "delivering"
    case .fetching: "fetching \(counts)"
    case .done: ""
    }
  }

  private var counts: String {
    "\(files.grouped) of \(fileCount.counted("file")), \(ByteCount(Int(bytes))) of \(ByteCount(Int(byteCount)))"
  }
}

extension SyncResult {
  /// The exit code.
  var status: ExitStatus {
    let applied = applied?.status(failure: nil, failsOnConflict: false) ?? .done
    if !failures.isEmpty || applied == .failed { return .failed }
    return held.isEmpty ? applied : .needsPerson
  }

  /// The result as `--json` has it.
  ///
  /// - Parameter command: How the round was started, for the commands that are suggested.
  func json(_ command: String) -> JSONValue {
    [
      "version": 1,
      "storage": .string(storage),
      "fallbackReason": .text(fallbackReason),
      "dryRun": .bool(isDryRun),
      "inbound": .number(inboundCount),
      "downloaded": .array(downloaded.map(\.json)),
      "applied": applied.map { .array($0.diffs.map(\.json)) } ?? .null,
      "answers": .array(applied?.answers.map(\.json) ?? []),
      "backedUp": .bool(backedUp),
      "held": .array(held.map { $0.json(command) }),
      "uploaded": .array(uploaded.map(\.json)),
      "dropped": .array(dropped.map { .string($0.text) }),
      "deleted": .array(deleted.map { .string($0.text) }),
      "delivered": .array(delivered.map(\.json)),
      "fetched": .array(fetched.map(\.json)),
      "unchanged": .number(unchangedCount),
      "failures": .array(failures.map(\.json)),
      "notes": .array(notes.map { .string($0) }),
      "seconds": .real(seconds),
    ]
  }

  /// The result for people.
  ///
  /// - Parameter command: How the round was started, for the commands that are suggested.
  func lines(_ command: String, style: Style) -> [String] {
    var facts = TextTable(["", .prose("")])
    func add(_ name: String, _ text: String) { facts.add([.init(name, .faint), .init(text)]) }
    if !downloaded.isEmpty { add(isDryRun ? "to download" : "downloaded", downloaded.summary) }
    if let applied, !applied.diffs.isEmpty { add("applied", applied.summary) }
    if backedUp { add("backup", isDryRun ? "would be made" : "made") }
    if !dropped.isEmpty { add("cleared", "\(dropped.count.counted("file")) from the inbound folder") }
    if !uploaded.isEmpty { add(isDryRun ? "to upload" : "uploaded", uploaded.summary) }
    if !deleted.isEmpty { add(isDryRun ? "to delete" : "deleted", deleted.count.counted("file")) }
    if !delivered.isEmpty { add(isDryRun ? "to deliver" : "delivered", delivered.summary) }
    if !fetched.isEmpty { add(isDryRun ? "to fetch" : "fetched", fetched.summary) }
    var lines: [String] = []
    if isIdle {
      lines.append("Nothing to do at \(storage.escaped(limit: 60)).")
    } else {
      lines += facts.lines(style: style, indent: 0)
    }
    if let applied { lines += applied.unfinishedLines(style: style) }
    for file in held.prefix(style.listLimit) {
      lines += style.wrapped(
        "\(style("held:", .notable)) \(file.file.escaped(limit: 100)): \(file.reason.escaped)", hanging: 2)
      lines += style.suggestion("If its sender means it, let it through", file.command(command))
    }
    if held.count > style.listLimit { lines.append(style.rest(held.count - style.listLimit, "file")) }
    if let fallbackReason {
      lines += style.wrapped(
        "\(style("Note:", .notable)) the fallback was used: \(fallbackReason.escaped(limit: 300))", hanging: 2)
    }
    for note in notes { lines += style.wrapped("\(style("Note:", .notable)) \(note.escaped(limit: 500))", hanging: 2) }
    for failure in failures {
      let subject = failure.subject.map { "\($0.escaped(limit: 100)): " } ?? ""
      let report = ErrorReport(failure.error)
      lines += style.wrapped(
        "\(style("Failed:", .notable)) \(subject)\(report.message.escaped(limit: 500))", hanging: 2)
    }
    return lines
  }
}

extension SyncResult.Transfer {
  fileprivate var json: JSONValue {
    ["path": .string(path.text), "bytes": .integer(byteCount), "storage": .string(storage)]
  }
}

extension SyncResult.Held {
  fileprivate func command(_ command: String) -> String { "\(command) --allow \(id)" }

  fileprivate func json(_ command: String) -> JSONValue {
    [
      "id": .string("\(id)"), "file": .string(file), "bytes": .integer(byteCount), "reason": .string(reason),
      "command": .string(self.command(command)),
    ]
  }
}

extension [SyncResult.Transfer] {
  fileprivate var summary: String { "\(count.counted("file")), \(ByteCount(Int(reduce(0) { $0 + $1.byteCount })))" }
}

extension SyncResult.Failure {
  fileprivate var json: JSONValue {
    ["step": .string(step.rawValue), "subject": .text(subject), "error": ErrorReport(error).details]
  }
}

extension ApplyReport {
  fileprivate var summary: String {
    let counts = Dictionary(grouping: diffs, by: \.state).mapValues(\.count)
    return DiffState.allCases.compactMap { state in counts[state].map { "\($0.grouped) \(state.rawValue)" } }
      .joined(separator: ", ")
  }

  /// The files that are not applied, or not yet, with the reason. Those that bring too much are told by themselves.
  fileprivate func unfinishedLines(style: Style) -> [String] {
    let files =
      diffs.filter { ![.applied, .alreadyApplied].contains($0.state) && $0.code != .overLimit }
      .map { (path: $0.path, word: $0.state.rawValue, role: $0.state.role, reason: $0.reason) }
      + answers.filter { $0.state == .refused }.map { (path: $0.path, word: "refused", role: .bad, reason: $0.reason) }
    var lines = files.prefix(style.listLimit).flatMap { file in
      let name = file.path.split(separator: "/").last.map(String.init) ?? file.path
      return style.wrapped(
        "\(style(file.word, file.role)): \(name.escaped(limit: 100))\(file.reason.map { ": \($0.escaped)" } ?? "")",
        hanging: 2)
    }
    if files.count > style.listLimit { lines.append(style.rest(files.count - style.listLimit, "file")) }
    return lines
  }
}
