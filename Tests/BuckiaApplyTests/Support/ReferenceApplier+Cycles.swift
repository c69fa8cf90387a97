import SQLiteConnections

/// Refused changes that wait for each other. They are found by trying each with each, and applied by deleting all of
/// their rows first.
extension ReferenceApplier {
  /// Exchanges the rows of as many refused changes as possible: all are deleted and inserted changed. A row that cannot
  /// be inserted stays unchanged, and the others are tried again without it. Of two changes that want one value, the
  /// one in a cycle takes precedence: only then can the others of the cycle be applied.
  func resolveCycles(_ table: Table, on connection: borrowing SQLiteConnection) throws -> Bool {
    var items = deferred.indices.filter { deferred[$0].isCrowdedOut && deferred[$0].operation != .delete }
    var isOrdered = false
    while !items.isEmpty {
      var failed: Set<Int> = []
      try connection.execute("SAVEPOINT reference_exchange")
      var rows: [(item: Int, values: [RawValue])] = []
      for item in items {
        let change = deferred[item]
        guard let local = try localRow(change, table, on: connection) else {
          if change.operation == .update { failed.insert(item) }
          continue
        }
        if change.operation == .insert, !change.isDecided {
          // The change waits for a row that nothing deletes.
          failed.insert(item)
          continue
        }
        _ = try delete(
          change.operation == .insert ? change.new : change.old, table, comparesAll: false, on: connection)
        rows.append((item, local))
      }
      for item in items where !failed.contains(item) {
        let change = deferred[item]
        let row = rows.first { $0.item == item }?.values
        let values = table.columns.indices.map { change.new[$0] ?? row?[$0] }
        let locals = row.map { Array($0.dropFirst(table.columns.count)) }
        if try insert(values, table, locals: locals, on: connection) != nil { failed.insert(item) }
      }
      guard !failed.isEmpty else {
        try connection.execute("RELEASE reference_exchange")
        let resolved = Set(items)
        deferred = deferred.indices.filter { !resolved.contains($0) }.map { deferred[$0] }
        return true
      }
      try connection.execute("ROLLBACK TO reference_exchange; RELEASE reference_exchange")
      guard isOrdered else {
        isOrdered = true
        let cycles = try membersOfCycles(items, table, on: connection)
        items = items.filter(cycles.contains) + items.filter { !cycles.contains($0) }
        continue
      }
      items.removeAll { failed.contains($0) }
    }
    return false
  }

  /// The changes whose rows block each other in a cycle.
  ///
  /// - Parameter items: Places of refused changes in `deferred`.
  private func membersOfCycles(_ items: [Int], _ table: Table, on connection: borrowing SQLiteConnection) throws -> Set<
    Int
  > {
    try connection.execute("SAVEPOINT reference_cycles")
    var rows: [Int: [RawValue]] = [:]
    for item in items {
      guard let row = try localRow(deferred[item], table, on: connection) else { continue }
      rows[item] = row
      let change = deferred[item]
      _ = try delete(
        change.operation == .insert ? change.new : change.old, table, comparesAll: false, on: connection)
    }
    var remaining = Set(rows.keys)
    var blockers: [Int: Set<Int>] = [:]
    for item in items where remaining.contains(item) {
      blockers[item] = []
      for other in items where other != item {
        guard let row = rows[other] else { continue }
        if try blocks(row, deferred[item], of: rows[item], table, on: connection) {
          blockers[item, default: []].insert(other)
        }
      }
    }
    try connection.execute("ROLLBACK TO reference_cycles; RELEASE reference_cycles")
    // A change that waits for none of the others, or that none of the others waits for, is in no cycle.
    while true {
      let outside = remaining.filter { item in
        blockers[item, default: []].isDisjoint(with: remaining)
          || !remaining.contains { blockers[$0, default: []].contains(item) }
      }
      guard !outside.isEmpty else { return remaining }
      remaining.subtract(outside)
    }
  }

  /// True if a row blocks a change while neither is in the table.
  private func blocks(
    _ row: [RawValue], _ change: Change, of own: [RawValue]?, _ table: Table, on connection: borrowing SQLiteConnection
  ) throws -> Bool {
    try connection.execute("SAVEPOINT reference_blocks")
    let count = table.columns.count
    var isBlocked =
      try insert(Array(row.prefix(count)), table, locals: Array(row.dropFirst(count)), on: connection) == nil
    if isBlocked {
      let values = table.columns.indices.map { change.new[$0] ?? own?[$0] }
      isBlocked = try insert(values, table, locals: own.map { Array($0.dropFirst(count)) }, on: connection) != nil
    }
    try connection.execute("ROLLBACK TO reference_blocks; RELEASE reference_blocks")
    return isBlocked
  }
}
