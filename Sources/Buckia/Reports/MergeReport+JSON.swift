import BuckiaBytes

extension MergeReport {
  /// The report as `--json` has it.
  package var json: JSONValue {
    var object = JSONObject([
      .init("version", 1),
      .init("path", .string(path)),
      .init("base", .bool(hasBase)),
      .init("dryRun", .bool(isDryRun)),
      .init("clean", .bool(isClean)),
      .init("inserted", .number(inserted)),
      .init("updated", .number(updated)),
      .init("deleted", .number(deleted)),
      .init("conflicts", .number(conflicts)),
      .init("omitted", .number(omitted)),
      .init("conflictSummary", conflictCounts.json),
      .init("schemaConflicts", .array(schemaConflicts.map(\.json))),
      .init("schemaMerged", .bool(isSchemaMerged)),
      .init("schemaChanges", .array(schemaChanges.map { .string($0) })),
      .init("changedTables", .array(changedTables.map { .string($0) })),
      .init("skipped", .array(skipped.map(\.json))),
      .init("warnings", .array(warnings.map { .string($0.shown) })),
      .init("remarks", .array(warnings.map(\.json))),
      .init("seconds", .real(seconds)),
    ])
    if isDryRun { object.append("records", .array(dryRunConflicts.map(\.json))) }
    return .object(object)
  }
}

extension SchemaConflict {
  fileprivate var json: JSONValue {
    [
      "kind": .string(kind.rawValue), "object": .string(object), "name": .string(name),
      "reason": .string(description),
    ]
  }
}
