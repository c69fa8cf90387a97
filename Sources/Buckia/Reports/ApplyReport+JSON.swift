extension ApplyReport {
  /// The report as `--json` has it.
  ///
  /// - Parameter failure: The error that stopped the work; nil for none.
  package func json(stoppedBy failure: FailureReport?) -> JSONValue {
    var object = JSONObject([
      .init("version", 1),
      .init("trust", .string(trust.rawValue)),
      .init("diffs", .array(diffs.map(\.json))),
      .init("answers", .array(answers.map(\.json))),
      .init("ignored", .number(ignored)),
      .init("misnamed", .strings(misnamed)),
      .init("createdLedger", .bool(createdLedger)),
      .init("dryRun", .bool(isDryRun)),
      .init("outgoingFolders", .strings(outgoingFolders)),
      .init("warnings", warnings.sentences), .init("warningCodes", warnings.json),
      .init("seconds", .real(seconds)),
    ])
    object.append("snapshot", .text(snapshot?.path))
    if isDryRun {
      object.append("conflictSummary", dryRunConflictCounts.json)
      object.append("conflicts", .array(dryRunConflicts.map(\.json)))
    }
    if let failure { object.append("error", failure.details) }
    return .object(object)
  }
}

extension DiffOutcome {
  /// The file as `--json` has it.
  package var json: JSONValue {
    [
      "id": .text(id?.description),
      "path": .string(path),
      "sender": .string(sender),
      "senderKey": .text(senderKey),
      "state": .string(state.rawValue),
      "inserted": .number(inserted),
      "updated": .number(updated),
      "deleted": .number(deleted),
      "conflicts": .number(conflicts),
      "decidedByRule": .number(decidedByRule),
      "omitted": .number(omitted),
      "schemaChanges": .strings(schemaChanges),
      "plan": .array(plan.map(\.json)),
      "heldParts": .number(heldParts),
      "reason": .text(reason),
      "code": .text(code?.rawValue),
      "removed": .bool(isRemoved),
      "warnings": warnings.sentences, "warningCodes": warnings.json,
      "changedTables": .strings(changedTables),
    ]
  }
}

extension SchemaNote {
  fileprivate var json: JSONValue {
    [
      "action": .string(action.rawValue),
      "table": .string(table),
      "column": .text(column),
      "detail": .string(detail),
    ]
  }
}

extension UndoReport {
  /// The report as `--json` has it.
  package var json: JSONValue {
    [
      "version": 1,
      "undone": .array(undone.map(\.json)),
      "skipped": .array(
        skipped.map { ["diff": .string($0.diff), "code": .string($0.code.rawValue), "reason": .string($0.reason)] }),
      "dryRun": .bool(isDryRun),
      "warnings": warnings.sentences, "warningCodes": warnings.json,
    ]
  }
}

extension UndoReport.Undone {
  fileprivate var json: JSONValue {
    [
      "diff": .string(diff),
      "id": .string("\(id)"),
      "inserted": .number(inserted),
      "updated": .number(updated),
      "deleted": .number(deleted),
      "conflicts": .number(conflicts),
      "omitted": .number(omitted),
      "changedTables": .strings(changedTables),
      "warnings": warnings.sentences, "warningCodes": warnings.json,
    ]
  }
}

extension LedgerEntry {
  /// The entry as `--json` has it.
  package var json: JSONValue {
    [
      "id": .text(diff?.description),
      "sender": .string(sender),
      "senderKey": .text(senderKey),
      "state": .string(state.rawValue),
      "appliedAt": .time(recordedAt),
      "inserted": .number(inserted),
      "updated": .number(updated),
      "deleted": .number(deleted),
      "conflicts": .number(conflicts),
      "omitted": .number(omitted),
      "reason": .text(reason),
      "undoes": .text(undoes),
      "file": .string(file),
      "digest": .string(digest),
    ]
  }
}
