extension [ConflictCount] {
  /// How many conflicts are alike, as `--json` has it.
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
