extension ShareReport {
  /// The report as `--json` has it.
  package var json: JSONValue {
    [
      "version": 1,
      "id": .text(id?.description),
      "path": .text(path),
      "files": .array(files.map(\.json)),
      "bytes": .number(bytes),
      "method": .string(DiffMethod.rows.rawValue),
      "snapshot": .bool(isSnapshot),
      "sequence": .number(sequence),
      "dryRun": .bool(isDryRun),
      "tables": .array(tables.map(\.json)),
      "leftOut": .array(leftOut.map(\.json)),
      "skipped": .array(skipped.map(\.json)),
      "delivered": .array(delivered.map(\.json)),
      "incomplete": .bool(isIncomplete),
      "warnings": .array(warnings.map { .string($0.shown) }),
      "remarks": .array(warnings.map(\.json)),
      "seconds": .real(seconds),
    ]
  }
}

extension LeftOutRows {
  fileprivate var json: JSONValue {
    [
      "table": .string(table), "columns": .array(columns.map { .string($0) }), "parent": .string(parent),
      "reason": .string(reason.rawValue), "count": .number(count),
      "rows": .array(
        rows.map { ["key": .array($0.key.map(\.json)), "values": .array($0.values.map(\.json))] }),
    ]
  }
}

extension ShareReport.Delivery {
  fileprivate var json: JSONValue {
    [
      "id": .string(id.description), "path": .text(path), "bytes": .number(bytes),
      "recipients": .array(recipients.map { .string($0) }),
    ]
  }
}

extension ShareReport.Table {
  fileprivate var json: JSONValue {
    [
      "name": .string(name), "columns": .array(columns.map { .string($0) }), "inserted": .number(inserted),
      "updated": .number(updated), "deleted": .number(deleted), "withdrawn": .number(withdrawn), "kept": .number(kept),
      "method": .string(DiffMethod.rows.rawValue),
      "changes": .array(changes.map { ["op": .string($0.operation.word), "key": .array($0.key.map(\.json))] }),
    ]
  }
}
