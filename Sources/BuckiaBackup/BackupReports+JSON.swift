import Buckia
import BuckiaBytes

extension BackupPoint {
  /// The point as `--json` has it.
  package var json: JSONValue { .object(fields) }

  fileprivate var fields: JSONObject {
    JSONObject([
      .init("id", .string(id.description)), .init("history", .string(history)), .init("sequence", .integer(sequence)),
      .init("time", .string(UTCTime(unixMilliseconds: time).rfc3339)), .init("note", .text(note)),
      .init("noteEncrypted", .bool(hasEncryptedNote)), .init("databaseBytes", .integer(databaseByteCount)),
      .init("signed", .bool(isSigned)),
    ])
  }
}

extension BackupPoint {
  /// A restored database as `--json` has it.
  package func json(restoredTo path: String, unreadable: Int = 0) -> JSONValue {
    [
      "version": 1, "path": .string(path), "point": json, "bytes": .integer(databaseByteCount),
      "unreadable": .number(unreadable),
    ]
  }

  /// Restored rows as `--json` has them.
  package func json(restoredTo path: String, rows: ApplyReport?, missingColumns: [String]) -> JSONValue {
    [
      "version": 1, "path": .string(path), "point": json, "rows": rows?.json(stoppedBy: nil) ?? .null,
      "missingColumns": .strings(missingColumns),
    ]
  }
}

extension BackupStore {
  /// The points as `--json` has them.
  package static func json(of points: [Entry], unreadable: Int) -> JSONValue {
    ["version": 1, "points": .array(points.map(\.json)), "unreadable": .number(unreadable)]
  }
}

extension BackupStore.Entry {
  package var json: JSONValue {
    var fields = point.fields
    fields.append("bytes", .integer(byteCount))
    fields.append("encrypted", .bool(isEncrypted))
    fields.append("verified", .bool(isVerified))
    fields.append("broken", .bool(isBroken))
    return .object(fields)
  }
}

extension BackupStore.Status {
  /// The status as `--json` has it.
  package var json: JSONValue {
    [
      "store": .string(store), "point": .string(point.id.description),
      "time": .string(UTCTime(unixMilliseconds: point.time).rfc3339),
      "verifiedAt": verifiedAt.map { .string(UTCTime(unixMilliseconds: $0).rfc3339) } ?? .null, "fault": .text(fault),
    ]
  }
}

extension BackupRun {
  /// The reports as `--json` has them.
  package var json: JSONValue {
    var fields = backup.point.fields
    fields.append("bytes", .integer(backup.byteCount))
    fields.append("verified", .bool(drill.map { $0.fault == nil } ?? false))
    return [
      "version": 1, "points": [.object(fields)], "new": .bool(backup.isNew), "complete": .bool(backup.isComplete),
      "pages": .integer(backup.pageCount), "fault": .text(drill?.fault),
      "removed": .array(pruned?.removed.map(\.json) ?? []),
    ]
  }
}

extension PruneReport {
  /// The report as `--json` has it.
  package func json(isDryRun: Bool) -> JSONValue {
    [
      "version": 1, "dryRun": .bool(isDryRun), "id": .text(id?.description), "kept": .number(keptCount),
      "removed": .array(removed.map(\.json)), "needed": .array(needed.map(\.json)),
    ]
  }
}

extension BackupVerification {
  /// The result as `--json` has it.
  package var json: JSONValue {
    [
      "version": 1, "ok": .bool(faults.isEmpty), "points": .array(points.map(\.json)),
      "faults": .array(faults.map { ["path": .string($0.path), "message": .string($0.message)] }),
      "restored": .array(restored.map { .string($0.id.description) }), "signers": .strings(signers.sorted()),
    ]
  }
}
