import BuckiaLedger
import SQLiteSchemas
import SQLiteChangesets
import SQLiteConnections

/// Decides changes that meet another row than their author saw, or that a constraint finally refuses.
extension TableApplier {
  /// Settles an UPDATE or DELETE whose row has other values than its author had.
  ///
  /// - Parameter overwrite: Writes all that came in.
  func resolveChanged(
    _ incident: ConflictIncident, _ bytes: RawSpan, overwrite: () throws -> RowWriter.Result
  ) throws -> Refused? {
    switch (try resolve(incident, bytes), incident.local != nil) {
    case (.write(let values), _): return try write(values, incident, bytes)
    case (_, false): try record(incident, .omitted, bytes)
    case (.keepLocal, true): try record(incident, .keptLocal, bytes)
    case (.merge(let policy), true): return try merge(incident, by: policy, bytes)
    case (.takeIncoming, true):
      switch try overwrite() {
      case .refused(let refusal): return Refused(refusal: refusal, isDecided: true)
      case .noRow: try omitUnwritten(incident, bytes)
      case .written: try record(incident, .tookIncoming, bytes)
      }
    }
    return nil
  }

  /// A trigger has kept the row from being written. SQLite treats it like a missing row.
  private func omitUnwritten(_ incident: ConflictIncident, _ bytes: RawSpan) throws {
    let missing = ConflictIncident(kind: .notFound, change: incident.change, local: nil)
    _ = try decider.decide(missing, layout, bytes)
    try record(missing, .omitted, bytes)
  }

  /// Merges base, local and incoming row: a column that only the author has changed gets the incoming value; one that both
  /// have changed follows its policy.
  ///
  /// - Parameter policy: The policy for all columns; nil for that of each.
  func merge(_ incident: ConflictIncident, by policy: ConflictPolicy?, _ bytes: RawSpan) throws -> Refused? {
    guard let local = incident.local else { return nil }
    var taken = ColumnMask()
    if change.operation == .update { taken = try writer.unchangedColumns(bytes).subtracting(later) }
    // The columns that have the change's values already.
    var settled = ColumnMask()
    var isAllTaken = true
    for column in 0..<statements.columnCount where !taken.contains(column) {
      let incoming = change.new(column)
      guard incoming.isDefined, !statements.isKey[column] else { continue }
      guard !holds(local, incoming, at: column, bytes) else {
        if !later.contains(column) { settled.insert(column) }
        continue
      }
      switch policy ?? layout.policy(at: statements.match.columns[column]) {
      case .abort: throw ConflictDecider.refusal(incident, layout, bytes)
      case .takeIncoming: taken.insert(column)
      case .keepLocal: isAllTaken = false
      case .latest: if later.contains(column) { isAllTaken = false } else { taken.insert(column) }
      }
    }
    if change.operation == .insert, followsClock { try taken.formUnion(otherKeyColumns(local, bytes)) }
    guard !taken.isEmpty else {
      try clock?.rowVersion(settled, of: change, bytes)
      try record(incident, .keptLocal, bytes)
      return nil
    }
    switch try writer.update(taken, bytes) {
    case .refused(let refusal): return Refused(refusal: refusal)
    case .noRow: try omitUnwritten(incident, bytes)
    case .written:
      try clock?.rowVersion(taken.union(settled), of: change, bytes)
      try record(incident, isAllTaken ? .tookIncoming : .merged, bytes)
    }
    return nil
  }

  /// Writes a row that a resolver has given.
  func write(_ values: [String: ChangesetValue], _ incident: ConflictIncident, _ bytes: RawSpan) throws -> Refused? {
    var places: [Int: ChangesetValue] = [:]
    for (column, value) in values {
      guard let place = layout.place(of: column) else {
        throw ReplicationError(
          .columnsDiffer, "a resolver gave a value for \"\(layout.name).\(column)\", and there is no such column here",
          table: layout.name.text, column: column)
      }
      places[place] = value
    }
    let refusal: SQLiteRefusal?
    if let local = incident.local {
      for place in layout.key where places[place].map({ $0 != local.value(at: place) }) == true {
        throw ReplicationError(
          .columnsDiffer, "a resolver gave a row of table \"\(layout.name)\" another key than it has",
          table: layout.name.text, column: layout.columns[place])
      }
      for place in layout.key { places[place] = nil }
      refusal = try writer.update(places, bytes)
    } else {
      refusal = try writer.insert(places, bytes)
    }
    if let refusal, !writer.keepsMessages { return Refused(refusal: refusal) }
    var incident = incident
    if refusal == nil {
      incident.written = try writer.recordOfRow(bytes)
      if change.operation != .delete {
        try clock?.rowVersion(change.operation == .insert ? columns : change.changed, of: change, bytes)
      }
    }
    try record(incident, refusal == nil ? .resolved : .omitted, bytes)
    return nil
  }

  /// True if the local row already has the values of the change.
  func holdsNew(_ local: CurrentRow, _ bytes: RawSpan) -> Bool {
    for column in 0..<statements.columnCount where !holds(local, change.new(column), at: column, bytes) { return false }
    return true
  }

  func holds(_ local: CurrentRow, _ value: ValueSlice, at column: Int, _ bytes: RawSpan) -> Bool {
    guard value.isDefined else { return true }
    let place = statements.match.columns[column]
    return local.holds(value, in: bytes, at: place, affinity: statements.affinities[place])
  }

  /// Asks how to resolve a conflict.
  func resolve(_ incident: ConflictIncident, _ bytes: RawSpan) throws -> ConflictResolution {
    guard isDecided else { return try decider.decide(incident, layout, bytes) }
    try decider.recall(incident, layout, bytes)
    return .takeIncoming
  }

  /// Decides a change that a constraint finally refuses: it is left out unless a resolver returns another row, or the
  /// blocking rows give way.
  func giveUp(_ bytes: RawSpan) throws {
    let local = try writer.currentRow(bytes)
    defer { local?.release() }
    if decider.makesRoom, try makeRoom(beside: local, bytes) { return }
    var incident = ConflictIncident(kind: .constraint, change: change, local: local, message: writer.lastMessage)
    incident.others = try blockingRows.find(writer.lastMessage, change, local: local, bytes)
    if case .write(let values) = try resolve(incident, bytes) {
      _ = try write(values, incident, bytes)
    } else if !incident.others.isEmpty, let isHere = try decideByClock(local, bytes) {
      try record(incident, isHere ? .tookIncoming : .omitted, bytes)
    } else {
      // No other answer but "abort" makes a difference: a row that breaks a constraint cannot be written.
      try record(incident, .omitted, bytes)
    }
  }

  /// Deletes the rows that have a UNIQUE value of the change in hand, and writes that.
  ///
  /// - Returns: True if it is written.
  private func makeRoom(beside local: CurrentRow?, _ bytes: RawSpan) throws -> Bool {
    guard change.operation != .delete else { return false }
    let rows = writer.tableRows
    let row = wholeRow(beside: local, bytes)
    while true {
      let others = try blockingRows.find(writer.lastMessage, row: row)
      guard !others.isEmpty else { return false }
      for other in others {
        let before = try rows.row(other)
        guard try rows.write(nil, to: other) == nil else { return false }
        try writer.didWrite(.delete, other, before: before, after: nil)
      }
      if try attempt(bytes) == nil { return true }
    }
  }

  /// The row that the change in hand makes of the local one, as a record of the local layout.
  private func wholeRow(beside local: CurrentRow?, _ bytes: RawSpan) -> [UInt8] {
    var sources = [Int?](repeating: nil, count: statements.layout.count)
    for (column, place) in statements.match.columns.enumerated() { sources[place] = column }
    var writer = ChangesetWriter()
    for (place, column) in sources.enumerated() {
      if let column, change.new(column).isDefined {
        writer.append(change.new(column), of: bytes)
      } else if let local {
        writer.append(local.value(at: place))
      } else if let column, change.row(column).isDefined {
        writer.append(change.row(column), of: bytes)
      } else {
        writer.appendUndefined()
      }
    }
    return writer.bytes
  }

  /// Counts a conflict and writes it down.
  func record(_ incident: ConflictIncident, _ outcome: ConflictOutcome, _ bytes: RawSpan) throws {
    counts.conflicts += 1
    if outcome == .keptLocal || outcome == .omitted { counts.omitted += 1 }
    if decider.rule != nil { counts.decidedByRule += 1 }
    if change.operation == .insert, let found { try noteCollision(incident, outcome, bytes, in: found) }
    try decider.record(incident, outcome, layout, bytes)
  }
}
