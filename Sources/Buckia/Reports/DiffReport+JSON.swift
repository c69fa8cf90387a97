extension DiffReport {
  /// The report as `--json` has it.
  package var json: JSONValue {
    [
      "version": 1,
      "id": .text(id?.description),
      "path": .text(path),
      "bytes": .number(bytes),
      "method": .string(method?.rawValue ?? "auto"),
      "tables": .array(tables.map(\.json)),
      "skipped": .array(skipped.map(\.json)),
      "comparedByRows": .array(comparedByRows.map(\.json)),
      "includesSchema": .bool(includesSchema),
      "warnings": warnings.sentences, "warningCodes": warnings.json,
      "seconds": .real(seconds),
    ]
  }
}

extension DiffReport.Table {
  fileprivate var json: JSONValue {
    [
      "name": .string(name), "inserted": .number(inserted), "updated": .number(updated),
      "deleted": .number(deleted), "method": .string(method.rawValue),
      "methodReason": .text(methodReason?.shown), "new": .bool(isNew),
      "newColumns": .strings(newColumns),
      "renames": .array(renames.map { ["from": .string($0.oldName), "to": .string($0.newName)] }),
    ]
  }
}

extension SkippedItem {
  /// The item as `--json` has it.
  package var json: JSONValue {
    ["name": .string(name), "code": .string(reason.code.rawValue), "reason": .string(reason.shown)]
  }
}

extension ChangesetReport {
  /// The report as `--json` has it.
  package var json: JSONValue {
    let tables = tables.map { table -> JSONValue in
      [
        "name": .string(table.name), "inserted": .number(table.inserted), "updated": .number(table.updated),
        "deleted": .number(table.deleted),
      ]
    }
    let members: [JSONObject.Member] = [
      JSONObject.Member("version", 1), JSONObject.Member("id", .text(id?.description)),
      JSONObject.Member("path", .text(path)), JSONObject.Member("bytes", .number(bytes)),
      JSONObject.Member("tables", .array(tables)),
      JSONObject.Member("warnings", warnings.sentences), JSONObject.Member("warningCodes", warnings.json),
      JSONObject.Member("seconds", .real(seconds)),
    ]
    return .object(JSONObject(members + (rebase?.json ?? [])))
  }
}

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
      "table": .string(table),
      "key": .object(JSONObject(key.map { JSONObject.Member($0.column, $0.value?.json ?? .null) })),
      "kind": .string(kind.rawValue), "columns": .strings(columns),
      "winner": .string(winner == .keepLocal ? "local" : "incoming"),
    ]
  }
}

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
      .init("schemaChanges", .strings(schemaChanges)),
      .init("changedTables", .strings(changedTables)),
      .init("skipped", .array(skipped.map(\.json))),
      .init("warnings", warnings.sentences), .init("warningCodes", warnings.json),
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

extension VerifyReport {
  /// The report as `--json` has it.
  package var json: JSONValue {
    let files = files.map { file -> JSONValue in
      [
        "path": .string(file.path),
        "id": .text(file.id?.description),
        "ok": .bool(file.isGood),
        "sender": .string(file.sender),
        "signature": .string(file.signature.rawValue),
        "encrypted": .bool(file.isEncrypted),
        "reason": .text(file.reason),
        "code": .text(file.code?.rawValue),
      ]
    }
    return ["version": 1, "files": .array(files), "misnamed": .strings(misnamed)]
  }
}

extension SnapshotReport {
  /// The report as `--json` has it.
  package var json: JSONValue {
    ["version": 1, "path": .string(path), "bytes": .integer(bytes), "replaced": .bool(isReplacement)]
  }
}
