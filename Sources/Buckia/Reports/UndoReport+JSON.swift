extension UndoReport {
  /// The report as `--json` has it.
  package var json: JSONValue {
    [
      "version": 1,
      "undone": .array(undone.map(\.json)),
      "skipped": .array(
        skipped.map { ["diff": .string($0.diff), "code": .string($0.code.rawValue), "reason": .string($0.reason)] }),
      "dryRun": .bool(isDryRun),
      "warnings": .array(warnings.map { .string($0.shown) }),
      "remarks": .array(warnings.map(\.json)),
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
      "changedTables": .array(changedTables.map { .string($0) }),
      "warnings": .array(warnings.map { .string($0.shown) }),
      "remarks": .array(warnings.map(\.json)),
    ]
  }
}
