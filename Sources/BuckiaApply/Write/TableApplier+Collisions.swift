import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections

/// Changes whose key, or the key that they refer to, belongs to another row here than their author means.
extension TableApplier {
  /// What is said of a change that means another row than the local one.
  private static let isOfAnotherRow = Array(
    "its sender means another row: one with this key arrived before, and a different row with this key is here".utf8)

  /// Tries a change of a table that is known to have such changes.
  func attempt(_ bytes: RawSpan, beside known: KnownCollisions) throws -> Refused? {
    if change.operation != .delete, let reason = try known.missingParent(of: change, bytes) {
      return try attempt(bytes, withoutParent: reason, known)
    }
    // Where the later diff wins, a key means one row to everybody.
    guard try !followsClock && known.isContested(change, bytes) else { return try attempt(bytes) }
    return change.operation == .insert ? try insertContested(bytes, known) : try changeContested(bytes, known)
  }

  /// Settles a change by which a row would refer to another than its author means: a conflict, whether a local row equals it or
  /// not.
  private func attempt(
    _ bytes: RawSpan, withoutParent reason: String, _ known: KnownCollisions
  ) throws -> Refused? {
    let local = try writer.currentRow(bytes)
    let incident = ConflictIncident(kind: .foreignKey, change: change, local: local, message: Array(reason.utf8))
    switch try resolve(incident, bytes) {
    case .write(let values):
      defer { local?.release() }
      return try write(values, incident, bytes)
    case .keepLocal, .merge:
      defer { local?.release() }
      try record(incident, .keptLocal, bytes)
      return nil
    case .takeIncoming:
      try record(incident, .tookIncoming, bytes)
      local?.release()
      // It is asked about once, also where a constraint puts it off.
      try known.take(change, bytes)
      return try attempt(bytes)
    }
  }

  /// The row that had the key may be gone: then the key is free for its author's row.
  private func insertContested(_ bytes: RawSpan, _ known: KnownCollisions) throws -> Refused? {
    let before = counts
    let refused = try attempt(bytes)
    if counts.inserted > before.inserted, counts.conflicts == before.conflicts { try known.endContest(change, bytes) }
    return refused
  }

  /// Settles an UPDATE or DELETE of a row that is not here, while another one has its key.
  private func changeContested(_ bytes: RawSpan, _ known: KnownCollisions) throws -> Refused? {
    guard change.operation == .delete || !change.changed.isEmpty else { return try attempt(bytes) }
    guard let local = try writer.currentRow(bytes) else {
      try known.endContest(change, bytes)
      return try attempt(bytes)
    }
    defer { local.release() }
    var incident = ConflictIncident(kind: .data, change: change, local: local, message: Self.isOfAnotherRow)
    incident.isOfAnotherRow = true
    let written = counts.updated + counts.deleted
    let refused = try resolveChanged(incident, bytes) {
      change.operation == .update
        ? try writer.update(bytes, guardedBy: .none) : try writer.delete(bytes, guardedBy: .none)
    }
    // When the incoming version was taken, or its author's row is no more, the key means one row.
    let isOver = counts.updated + counts.deleted > written || (change.operation == .delete && refused == nil)
    if isOver { try known.endContest(change, bytes) }
    return refused
  }

  /// Notes what the conflict of an INSERT means for others.
  func noteCollision(
    _ incident: ConflictIncident, _ outcome: ConflictOutcome, _ bytes: RawSpan, in found: FoundCollisions
  ) throws {
    // A row that both sides made alike is one row.
    if let local = incident.local, decider.asksAboutEverything, holdsNew(local, bytes) { return }
    switch outcome {
    case .keptLocal, .merged, .omitted:
      if incident.kind != .foreignKey {
        try found.noteRefused(change, bytes, incident.kind == .constraint ? .constraint : .keyTaken)
      }
      if incident.local != nil { try found.noteContested(change, bytes, isTaken: false) }
    case .tookIncoming:
      guard incident.kind == .conflict, let local = incident.local else { return }
      try found.noteReplaced(local)
      try found.noteContested(change, bytes, isTaken: true)
    case .resolved, .reported: break
    }
  }
}
