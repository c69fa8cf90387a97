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
      "warnings": .array(warnings.map { .string($0.shown) }),
      "remarks": .array(warnings.map(\.json)),
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
      "newColumns": .array(newColumns.map { .string($0) }),
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
