extension ConflictRecord {
  /// The record as `--json` has it.
  package var json: JSONValue {
    [
      "id": .integer(id),
      "diff": .string(diff),
      "sender": .string(sender),
      "senderKey": .text(senderKey),
      "label": .text(label),
      "table": .string(table),
      "key": Self.json(key),
      "kind": .string(kind.rawValue),
      "outcome": .string(outcome.rawValue),
      "base": Self.json(base),
      "local": Self.json(local),
      "incoming": Self.json(incoming),
      "reason": .text(reason),
      "constraint": constraint?.json ?? .null,
      "others": .array(others.map { Self.json($0) }),
      "parent": parent.map(Self.json) ?? .null,
      "status": .string(isOpen ? "open" : "resolved"),
      "rule": rule.map { .integer($0) } ?? .null,
      "resolution": resolution.map(Self.json) ?? .null,
    ]
  }

  /// Cells as an object of columns and values, without columns that have no value; null for no row.
  static func json(_ cells: [Cell]?) -> JSONValue {
    guard let cells else { return .null }
    var object = JSONObject()
    for cell in cells {
      if let value = cell.value { object.append(cell.column, value.json) }
    }
    return .object(object)
  }

  private static func json(_ resolution: ResolutionRecord) -> JSONValue {
    [
      "id": .integer(resolution.id), "answer": .string(resolution.answer.rawValue),
      "by": .string(resolution.decidedBy), "at": .time(resolution.decidedAt),
      "before": json(resolution.before), "after": json(resolution.after),
    ]
  }

  private static func json(_ parent: MissingParent) -> JSONValue {
    [
      "table": .string(parent.table), "key": json(parent.key),
      "conflict": parent.conflict.map { .integer($0) } ?? .null,
    ]
  }
}

extension ViolatedConstraint {
  fileprivate var json: JSONValue {
    [
      "type": .string(kind.rawValue), "name": .text(name), "columns": .strings(columns),
      "expression": .text(expression),
      "parent": parentTable.map {
        ["table": .string($0), "columns": .strings(parentColumns)]
      } ?? .null,
    ]
  }
}

extension [ConflictCount] {
  /// The counts of conflicts for `--json`.
  package var json: JSONValue {
    .array(
      map { entry in
        [
          "table": .string(entry.table), "kind": .string(entry.kind.rawValue),
          "outcome": .string(entry.outcome.rawValue), "count": .number(entry.count),
        ]
      })
  }
}

extension ConflictRule {
  /// The rule as `--json` has it.
  package var json: JSONValue {
    [
      "id": .integer(id),
      "table": .string(question.table.text),
      "kind": .string(question.kind.rawValue),
      "operation": .string(question.operation.word),
      "columns": .strings(question.columns),
      "answer": .string(answer.rawValue),
      "by": .string(decidedBy),
      "at": .time(decidedAt),
      "conflict": .integer(conflict),
    ]
  }
}

extension ResolveReport {
  /// The report as `--json` has it.
  package var json: JSONValue {
    [
      "version": 1,
      "dryRun": .bool(isDryRun),
      "conflicts": .array(conflicts.map(\.json)),
      "resolvedCount": .integer(Int64(counts.resolved)),
      "refusedCount": .integer(Int64(counts.refused)),
      "changedTables": .strings(changedTables),
      "violations": .strings(violations),
      "warnings": warnings.sentences,
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
      "unknown": .strings(unknownColumns),
      "lost": .strings(lostColumns),
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
