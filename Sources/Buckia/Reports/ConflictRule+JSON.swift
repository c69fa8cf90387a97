extension ConflictRule {
  /// The rule as `--json` has it.
  package var json: JSONValue {
    [
      "id": .integer(id),
      "table": .string(question.table.text),
      "kind": .string(question.kind.rawValue),
      "operation": .string(question.operation.word),
      "columns": .array(question.columns.map { .string($0) }),
      "answer": .string(answer.rawValue),
      "by": .string(decidedBy),
      "at": .string(Moment(unixMilliseconds: decidedAt).rfc3339),
      "conflict": .integer(conflict),
    ]
  }
}
