extension RebaseReport {
  /// The members that `--json` has for changes that were rebased.
  var json: [JSONObject.Member] {
    [
      JSONObject.Member("policy", .string(policy.rawValue)),
      JSONObject.Member("conflictCount", .number(conflictCount)),
      JSONObject.Member("conflicts", .array(conflicts.map(\.json))),
      JSONObject.Member(
        "remappedKeys",
        .array(
          remappedKeys.map { remapped -> JSONValue in
            [
              "table": .string(remapped.table), "key": ChangesetValue.integer(remapped.key).json,
              "newKey": ChangesetValue.integer(remapped.newKey).json,
            ]
          })),
    ]
  }
}

extension RebaseReport.Conflict {
  fileprivate var json: JSONValue {
    [
      "table": .string(table), "key": .object(JSONObject(key.map { JSONObject.Member($0.column, $0.value.json) })),
      "kind": .string(kind.rawValue), "columns": .array(columns.map { .string($0) }),
      "winner": .string(winner == .keepLocal ? "local" : "incoming"),
    ]
  }
}
