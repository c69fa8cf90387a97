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
    return failures.isEmpty ? applied : .failed
  }

  /// The result as `--json` has it.
  var json: JSONValue {
    [
      "version": 1,
      "storage": .string(storage),
      "fallbackReason": .text(fallbackReason),
      "dryRun": .bool(isDryRun),
      "inbound": .number(inboundCount),
      "downloaded": .array(downloaded.map(\.json)),
      "applied": applied.map { .array($0.diffs.map(\.syncJSON)) } ?? .null,
      "backedUp": .bool(backedUp),
      "uploaded": .array(uploaded.map(\.json)),
      "dropped": .array(dropped.map { .string($0.text) }),
      "deleted": .array(deleted.map { .string($0.text) }),
      "delivered": .array(delivered.map(\.json)),
      "unchanged": .number(unchangedCount),
      "failures": .array(failures.map(\.json)),
      "notes": .array(notes.map { .string($0) }),
      "seconds": .real(seconds),
    ]
  }

  /// The result for people.
  func lines(style: Style) -> [String] {
    var facts = TextTable(["", .prose("")])
    func add(_ name: String, _ text: String) { facts.add([.init(name, .faint), .init(text)]) }
    if !downloaded.isEmpty { add(isDryRun ? "to download" : "downloaded", downloaded.summary) }
    if let applied, !applied.diffs.isEmpty { add("applied", applied.summary) }
    if backedUp { add("backup", isDryRun ? "would be made" : "made") }
    if !dropped.isEmpty { add("cleared", "\(dropped.count.counted("file")) from the inbound folder") }
    if !uploaded.isEmpty { add(isDryRun ? "to upload" : "uploaded", uploaded.summary) }
    if !deleted.isEmpty { add(isDryRun ? "to delete" : "deleted", deleted.count.counted("file")) }
    if !delivered.isEmpty { add(isDryRun ? "to deliver" : "delivered", delivered.summary) }
    var lines: [String] = []
    if isIdle {
      lines.append("Nothing to do at \(storage.escaped(limit: 60)).")
    } else {
      lines += facts.lines(style: style, indent: 0)
    }
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

extension [SyncResult.Transfer] {
  fileprivate var summary: String { "\(count.counted("file")), \(ByteCount(Int(reduce(0) { $0 + $1.byteCount })))" }
}

extension SyncResult.Failure {
  fileprivate var json: JSONValue {
    ["step": .string(step.rawValue), "subject": .text(subject), "error": ErrorReport(error).details]
  }
}

extension DiffOutcome {
  fileprivate var syncJSON: JSONValue {
    [
      "id": .text(id?.description), "path": .string(path), "sender": .string(sender), "state": .string(state.rawValue),
      "inserted": .number(inserted), "updated": .number(updated), "deleted": .number(deleted),
      "conflicts": .number(conflicts), "reason": .text(reason),
    ]
  }
}

extension ApplyReport {
  fileprivate var summary: String {
    let counts = Dictionary(grouping: diffs, by: \.state).mapValues(\.count)
    return DiffState.allCases.compactMap { state in counts[state].map { "\($0.grouped) \(state.rawValue)" } }
      .joined(separator: ", ")
  }
}
