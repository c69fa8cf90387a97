#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension StatusReport {
  /// The report as `--json` has it.
  ///
  /// - Parameter next: Suggested commands, with reasons.
  package func json(next: [(reason: String, command: String)] = [], backups: [JSONValue] = []) -> JSONValue {
    [
      "version": 1,
      "trust": .text(trust?.rawValue),
      "replica": replica.map(\.json) ?? .null,
      "dataset": .text(dataset?.description),
      "ledger": ledgerJSON,
      "shares": .array(shares.map(\.json)),
      "streams": .array(streams.map(\.json)),
      "leftOut": .array(
        leftOut.map { ["people": .string($0.people), "table": .string($0.table), "rows": .number($0.rows)] }),
      "words": .array(words.map(\.json)),
      "conflicts": ["open": .number(openConflicts), "total": .number(conflicts)],
      "backups": .array(backups),
      "warnings": warnings.sentences, "warningCodes": warnings.json,
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
      "recordedAt": .time(recordedAt),
    ]
  }
}

extension ComparedWords {
  fileprivate var json: JSONValue {
    [
      "people": .string(people),
      "streams": .strings(streams),
      "rows": .integer(rows),
      "words": .strings(words),
      "digest": .text(problem == nil ? digest : nil),
      "problem": .text(problem),
    ]
  }
}

extension StatusReport.Replica {
  fileprivate var json: JSONValue {
    ["id": .string(id), "incarnation": .string(incarnation), "standing": .string(standing.rawValue)]
  }
}

extension SharedRows {
  fileprivate var json: JSONValue { ["table": .string(table), "rows": .number(rows)] }
}

extension ShareState {
  fileprivate var json: JSONValue {
    [
      "recipients": .strings(recipients),
      "name": .text(scope.name),
      "scopeTables": .array(scope.tables.map { .string($0.name.text) }),
      "stream": .string(stream),
      "sequence": .integer(sequence),
      "id": .text(id?.description),
      "madeAt": .text(id.map { UTCTime(unixSeconds: $0.unixSeconds).rfc3339 }),
      "tables": .array(tables.map(\.json)),
      "acknowledged": .array(
        acknowledgements.map { ["sender": .string($0.sender), "through": .integer($0.through)] }),
    ]
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
      "madeAt": .text(id.map { UTCTime(unixSeconds: $0.unixSeconds).rfc3339 }),
      "appliedAt": .time(appliedAt),
      "ageSeconds": age.map { .integer($0) } ?? .null,
      "waiting": .number(waiting),
      "missing": .text(missing?.description),
      "ended": .bool(isEnded),
      "tables": .array(tables.map(\.json)),
    ]
  }

  /// The age of its newest diff in seconds, by the clocks of both sides; nil if none was applied.
  package var age: Int64? { id.map { max(0, Int64(Date().timeIntervalSince1970) - $0.unixSeconds) } }
}

extension DatabaseManager.InitReport {
  /// The report as `--json` has it.
  ///
  /// - Parameters:
  ///   - clocked: The tables that were given clocks.
  ///   - keyRanges: The tables that give out keys from a range of their own.
  ///   - dataset: The shared database that it belongs to.
  ///   - further: Further warnings.
  package func json(
    clocked: [String] = [], keyRanges: [String] = [], dataset: Dataset? = nil, adding further: [Warning] = []
  ) -> JSONValue {
    let warnings = warnings + further.filter { !self.warnings.contains($0) }
    return [
      "version": 1,
      "created": .bool(created),
      "createdDatabase": .bool(createdDatabase),
      "trust": .string(trust.rawValue),
      "clocks": .strings(clocked),
      "keyRanges": .strings(keyRanges),
      "dataset": .text(dataset?.description),
      "warnings": warnings.sentences, "warningCodes": warnings.json,
    ]
  }
}

extension DoctorReport {
  /// The report as `--json` has it.
  package var json: JSONValue {
    [
      "version": 1,
      "replicates": .array(replicates.map { ["name": .string($0.name), "key": .string($0.key)] }),
      "skipped": .array(skipped.map(\.json)),
      "warnings": warnings.sentences, "warningCodes": warnings.json,
    ]
  }
}
