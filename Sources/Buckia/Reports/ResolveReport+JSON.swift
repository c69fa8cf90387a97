extension ResolveReport {
  /// The report as `--json` has it.
  package var json: JSONValue {
    [
      "version": 1,
      "dryRun": .bool(isDryRun),
      "conflicts": .array(conflicts.map(\.json)),
      "resolvedCount": .integer(Int64(counts.resolved)),
      "refusedCount": .integer(Int64(counts.refused)),
      "changedTables": .array(changedTables.map { .string($0) }),
      "violations": .array(violations.map { .string($0) }),
      "warnings": .array(warnings.map { .string($0.shown) }),
    ]
  }
}

extension ResolvedConflict {
  fileprivate var json: JSONValue {
    [
      "id": .integer(id),
      "table": .string(table),
      "key": ConflictRecord.json(key),
      "resolved": .bool(refusal == nil),
      "changed": .bool(hasChanged),
      "before": ConflictRecord.json(before),
      "after": ConflictRecord.json(after),
      "unknown": .array(unknownColumns.map { .string($0) }),
      "lost": .array(lostColumns.map { .string($0) }),
      "rule": rule.map { .integer($0.id) } ?? .null,
      "code": .text(refusal?.code.rawValue),
      "reason": .text(refusal?.reason),
      "differences": .array(
        (refusal?.differences ?? []).map { difference in
          [
            "column": .string(difference.column), "known": difference.known?.json ?? .null,
            "present": difference.present?.json ?? .null,
          ]
        }),
    ]
  }
}
