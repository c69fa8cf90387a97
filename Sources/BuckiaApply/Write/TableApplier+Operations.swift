import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Applies the present change: it is written, it equals the local state, or it meets another state.
extension TableApplier {
  func insert(_ bytes: RawSpan) throws -> Refused? {
    if expectsConflict, !writer.keepsMessages {
      if let local = try writer.currentRow(bytes) {
        defer { local.release() }
        return try mustWait(bytes) ? Refused(refusal: .taken) : meet(local, bytes)
      }
      expectsConflict = false
    }
    if followsClock, let clock, try isDeletedLater(by: clock, bytes) { return try omitDeleted(bytes) }
    guard let refusal = try writer.insert(bytes) else {
      try didInsert(bytes)
      return nil
    }
    guard let local = try writer.currentRow(bytes) else {
      return Refused(refusal: refusal)
    }
    defer { local.release() }
    // The DELETE that it waits for may have to be tried again, too.
    if mustWait(bytes) { return Refused(refusal: refusal) }
    if !expectsConflict { expectsConflict = try !hasTriggers.get() }
    return try meet(local, bytes)
  }

  /// An INSERT meets a row with its key.
  private func meet(_ local: CurrentRow, _ bytes: RawSpan) throws -> Refused? {
    if try exposeEdit(bytes) {
      local.release()
      return try attempt(bytes)
    }
    if !decider.asksAboutEverything, holdsNew(local, bytes) {
      counts.unchanged += 1
      try clock?.rowVersion(columns.subtracting(later), of: change, bytes)
      return nil
    }
    let incident = ConflictIncident(kind: .conflict, change: change, local: local)
    switch try resolve(incident, bytes) {
    case .keepLocal: try record(incident, .keptLocal, bytes)
    case .merge(let policy): return try merge(incident, by: policy, bytes)
    case .write(let values): return try write(values, incident, bytes)
    case .takeIncoming where !ignored.isEmpty: return try merge(incident, by: .takeIncoming, bytes)
    case .takeIncoming:
      if let refused = try replace(local, bytes) { return refused }
      try writer.noteReplacement(bytes)
      try clock?.rowVersion(columns, of: change, bytes)
      try record(incident, .tookIncoming, bytes)
    }
    return nil
  }

  /// Writes the row of an INSERT in the place of the one that has its key.
  private func replace(_ local: CurrentRow, _ bytes: RawSpan) throws -> Refused? {
    if try !hasTriggers.get() {
      let refusal = try writer.overwrite(bytes)
      return refusal.map { Refused(refusal: $0, isDecided: true) }
    }
    let old = try local.copied()
    let new = try old.replacing(change.newRow, in: bytes, columns: statements.match.columns)
    let failed = try writer.replace(old, by: new, bytes)
    return failed.map { Refused(refusal: $0.refusal, isDecided: $0.wasDeleted) }
  }

  func update(_ bytes: RawSpan) throws -> Refused? {
    // Only the key changed, to one that compares equal. SQLite writes such changes and never applies them.
    guard !change.changed.isEmpty else {
      counts.unchanged += 1
      return nil
    }
    if later.isEmpty {
      switch try writer.update(bytes, guardedBy: .oldValues) {
      case .written:
        try clock?.rowVersion(change.changed, of: change, bytes)
        return nil
      case .refused(let refusal): return Refused(refusal: refusal)
      case .noRow: break
      }
    }
    if try exposeEdit(bytes) { return try attempt(bytes) }
    let context = change.compared.subtracting(change.changed)
    let isOther = try !context.isEmpty && isOtherRow(besides: context, bytes)
    if !context.isEmpty, !isOther {
      change.leaveOut(context)
      return try update(bytes)
    }
    let local = isOther ? nil : try writer.currentRow(bytes)
    defer { local?.release() }
    if let local, !decider.asksAboutEverything {
      if holdsNew(local, bytes) {
        counts.unchanged += 1
        try clock?.rowVersion(change.changed.subtracting(later), of: change, bytes)
        return nil
      }
      if let others = try undisputedColumns(local, bytes) {
        switch try writer.update(others, bytes) {
        case .written:
          try clock?.rowVersion(change.changed.subtracting(later), of: change, bytes)
          return nil
        case .refused(let refusal): return Refused(refusal: refusal)
        case .noRow: break
        }
      }
    }
    var incident = ConflictIncident(kind: local == nil ? .notFound : .data, change: change, local: local)
    if local == nil, followsClock, let clock { incident.message = try keepForLater(by: clock, bytes) }
    return try resolveChanged(incident, bytes) {
      let result = try writer.update(bytes, guardedBy: .none)
      if case .written = result { try clock?.rowVersion(change.changed, of: change, bytes) }
      return result
    }
  }

  /// True if the rowid of an UPDATE belongs to another row now: most of the unchanged columns have other values.
  private func isOtherRow(besides context: ColumnMask, _ bytes: RawSpan) throws -> Bool {
    let unchanged = try writer.unchangedColumns(bytes)
    let places = (0..<statements.columnCount).filter { context.contains($0) }
    return places.count { unchanged.contains($0) } * 2 < places.count
  }

  /// The columns that only the author has set, if both sides have set all others alike; nil if any differs, or there is
  /// no such column.
  private func undisputedColumns(_ local: CurrentRow, _ bytes: RawSpan) throws -> ColumnMask? {
    var others = ColumnMask()
    var hasAlike = false
    for column in 0..<statements.columnCount where change.changed.contains(column) {
      if holds(local, change.new(column), at: column, bytes) {
        hasAlike = true
      } else if later.contains(column) {
        return nil
      } else {
        others.insert(column)
      }
    }
    // Without one that is alike, the row would have been found, or there is a dispute.
    guard hasAlike, !others.isEmpty else { return nil }
    let unchanged = try writer.unchangedColumns(bytes)
    for column in 0..<statements.columnCount where others.contains(column) && !unchanged.contains(column) { return nil }
    return others
  }

  func delete(_ bytes: RawSpan) throws -> Refused? {
    if followsClock, let clock {
      if try clock.isInsertedLater(change, bytes) { return try keepInserted(bytes) }
      if !clock.isTrivial { try keepLaterColumns(by: clock, bytes) }
    }
    switch try writer.delete(bytes, guardedBy: .oldValues) {
    case .written:
      try clock?.recordDeletion(of: change, bytes)
      return nil
    case .refused(let refusal): return Refused(refusal: refusal)
    case .noRow: break
    }
    let local = try writer.currentRow(bytes)
    defer { local?.release() }
    if local == nil, !decider.asksAboutEverything {
      counts.unchanged += 1
      try clock?.recordDeletion(of: change, bytes)
      return nil
    }
    let incident = ConflictIncident(kind: local == nil ? .notFound : .data, change: change, local: local)
    return try resolveChanged(incident, bytes) {
      let result = try writer.delete(bytes, guardedBy: .none)
      if case .written = result { try clock?.recordDeletion(of: change, bytes) }
      return result
    }
  }
}
