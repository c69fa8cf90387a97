import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Applies refused changes of one table that block each other: the UNIQUE value for one row belongs to another, which
/// is to get that of a third, and so on.
///
/// The resolver follows each change to the row that blocks it, and from there to the change of that row, until one can
/// be applied; then all changes that wait for it can, in turn. A path that leads back to itself is a cycle: one of its
/// rows is parked, which lets the others move up, and gets its new values last. If the path ends at a row that no
/// change moves, all changes on it are stuck. Each change is visited a few times, however many there are.
struct UniqueCycleResolver {
  private enum State: UInt8 {
    case waiting
    /// On the path that is being followed.
    case open
    case applied
    case stuck
  }

  /// A parked row.
  private enum Parked {
    /// The row was removed from the table. `new` is its form when it comes back.
    case removed(RowCopy, new: RowCopy)
    /// The row is in the table with values that no row is likely to have.
    case moved(RowCopy)
  }

  private let applier: TableApplier
  private let unique: UniqueIndexes
  private let items: [DeferredChange]
  private let window: ChangesetWindow
  private var states: [State]
  /// The numbers of the changed rows; 0 for rows without one.
  private var numbers: [UInt64]
  /// The changes whose rows can block others, in the order of the rows' numbers.
  private var holders: [Int32] = []
  /// The change in hand.
  private let change: DecodedChange
  /// The column in the changeset of each place of the local layout; -1 for columns that only exist here.
  private let sources: [Int]
  /// True if a row can be deleted and inserted again without a trigger that sees it.
  private let allowsUnseenDeletes: Bool

  /// The changes that wait for each other, each for the next one.
  private var path: [Int32] = []
  /// The parked rows of the path. There is a savepoint while there is any.
  private var parked: [Int32: Parked] = [:]
  /// The changes that were applied since the savepoint, and the counts before.
  private var appliedSince: [Int32] = []
  private var countsBefore = ApplyCounts()
  private var effectsBefore = 0
  private var gatheredBefore = 0
  /// Numbers for values that no row is likely to have.
  private var parkedValues = 0
  private var steps = 0

  /// Creates a resolver for the deferred changes of a table.
  init(_ applier: TableApplier, _ window: ChangesetWindow) throws {
    self.applier = applier
    self.window = window
    items = applier.deferred
    unique = try UniqueIndexes(applier.statements)
    states = [State](repeating: .waiting, count: items.count)
    numbers = [UInt64](repeating: 0, count: items.count)
    change = applier.change
    allowsUnseenDeletes = try !applier.hasTriggers.get()
    var sources = [Int](repeating: -1, count: applier.statements.layout.count)
    for (index, place) in applier.statements.match.columns.enumerated() { sources[place] = index }
    self.sources = sources
    for index in items.indices where items[index].isUniqueViolation {
      let found = try window.withChange(at: items[index].offset, applier.walk) { place, bytes in
        change.read(place, in: bytes)
        return try number(bytes)
      }
      guard let number = found ?? nil else { continue }
      if change.operation == .insert, !items[index].isDecided {
        // It is to take the place of a row that a trigger keeps from going.
        states[index] = .stuck
      } else {
        numbers[index] = number
        holders.append(Int32(index))
      }
    }
    holders.sort { [numbers] in numbers[Int($0)] < numbers[Int($1)] }
  }

  /// Applies changes as far as possible; the rest stays deferred.
  ///
  /// - Returns: True if anything was applied.
  /// - Throws: `SQLiteError`; what a resolver or `poll` throws. The transaction must be rolled back then.
  mutating func run(poll: () throws -> Void) throws -> Bool {
    // Parked rows may be rolled back.
    let contents = applier.writer.contents
    contents.mayMakeIndexes = false
    defer { contents.mayMakeIndexes = true }
    var again: [Int32] = []
    for index in items.indices where items[index].isUniqueViolation {
      again.append(Int32(index))
      // Rolled-back changes come first, because every later change would follow them again.
      while let root = again.popLast() {
        guard states[Int(root)] == .waiting else { continue }
        again += try follow(root, poll: poll)
      }
    }
    applier.deferred = items.indices.filter { states[$0] != .applied }.map { items[$0] }
    return applier.deferred.count < items.count
  }

  // MARK: Following

  /// Follows a change to its end.
  ///
  /// - Returns: Changes that were applied on the way and taken back.
  private mutating func follow(_ root: Int32, poll: () throws -> Void) throws -> [Int32] {
    path = [root]
    states[Int(root)] = .open
    while let top = path.last {
      steps += 1
      if steps.isMultiple(of: 4_096) { try poll() }
      let number: UInt64?
      switch try window.withChange(at: items[Int(top)].offset, applier.walk, { try attempt(top, $0, $1) }) {
      case .done?:
        try finish(top)
        continue
      case .blockedBy(let other)?: number = other
      case .unable?, nil: number = nil
      }
      guard let number, let next = item(of: number) else { return try giveUp() }
      switch states[Int(next)] {
      case .waiting:
        path.append(next)
        states[Int(next)] = .open
      case .open where parked[next] == nil:
        let isParked = try window.withChange(at: items[Int(next)].offset, applier.walk) { try park(next, $0, $1) }
        guard isParked == true else { return try giveUp() }
      case .open, .applied, .stuck: return try giveUp()
      }
    }
    return []
  }

  /// Applies a change if nothing is in its way.
  private mutating func attempt(_ top: Int32, _ place: ChangePlace, _ bytes: RawSpan) throws -> Exchange {
    change.read(place, in: bytes)
    if let number = try occupant(top, bytes) { return .blockedBy(number) }
    let exchanged = try exchange(top, bytes)
    guard case .unable = exchanged else { return exchanged }
    if try apply(top, bytes) { return .done }
    guard unique.hasOpaque, let number = try probe(top, bytes) else { return .unable }
    return .blockedBy(number)
  }

  private mutating func finish(_ top: Int32) throws {
    states[Int(top)] = .applied
    path.removeLast()
    if !parked.isEmpty { appliedSince.append(top) }
    if parked.removeValue(forKey: top) != nil, parked.isEmpty {
      try applier.statements.connection.execute("RELEASE buckia_park")
      appliedSince.removeAll()
    }
  }

  /// The end of the path cannot be applied, nor can the changes that wait for it.
  private mutating func giveUp() throws -> [Int32] {
    for item in path { states[Int(item)] = .stuck }
    path.removeAll()
    guard !parked.isEmpty else { return [] }
    try applier.statements.connection.execute("ROLLBACK TO buckia_park; RELEASE buckia_park")
    applier.counts = countsBefore
    applier.writer.observer?.rewind(to: effectsBefore)
    try applier.writer.effects?.rewind(to: gatheredBefore)
    applier.decider.rewind()
    applier.clock?.rewind()
    parked.removeAll()
    let undone = appliedSince
    appliedSince.removeAll()
    for item in undone { states[Int(item)] = .waiting }
    return undone
  }

  /// The change of the row with a number.
  private func item(of number: UInt64) -> Int32? {
    var low = 0
    var high = holders.count
    while low < high {
      let middle = (low + high) / 2
      if numbers[Int(holders[middle])] < number { low = middle + 1 } else { high = middle }
    }
    return low < holders.count && numbers[Int(holders[low])] == number ? holders[low] : nil
  }

  /// The number of the local row with the key of the change in hand; nil if there is none.
  private func number(_ bytes: RawSpan) throws -> UInt64? {
    if change.operation == .update, let key = applier.statements.rowIDKey, change.old(key).kind == .integer {
      return UInt64(bitPattern: change.old(key).integer(in: bytes))
    }
    guard !change.hasNullKey else { return nil }
    let query = try applier.statements.numbering.get()
    try applier.statements.bindKey(of: change, bytes, to: query)
    defer { query.statement.reset() }
    return try query.statement.step() ? query.statement.rowNumber() : nil
  }

  // MARK: Blocking rows

  /// The number of the row that has a place which the change gives its own; nil if none has, as far as can be looked up.
  private mutating func occupant(_ item: Int32, _ bytes: RawSpan) throws -> UInt64? {
    let hasRow = change.operation == .update || items[Int(item)].isDecided
    // If an index has an unchanged column, the row's own value counts.
    var local: CurrentRow?
    defer { local?.release() }
    var removed: RowCopy?
    if case .removed(_, let row)? = parked[item] { removed = row }
    return try unique.occupant(
      besides: hasRow ? numbers[Int(item)] : nil,
      moves: { [sources, change] in sources[$0] >= 0 && change.new(sources[$0]).isDefined }
    ) { [sources, change] place, statement, parameter in
      if sources[place] >= 0, change.new(sources[place]).isDefined {
        let value = change.new(sources[place])
        try statement.bind(value, in: bytes, at: parameter)
        return value.kind != .null
      }
      if let removed {
        try removed.bind(place, to: statement, at: parameter)
        return removed.values[place].kind != .null
      }
      if local == nil { local = try applier.writer.currentRow(bytes) }
      guard let local else { return false }
      try local.bind(place, to: statement, at: parameter)
      return !local.isNull(at: place)
    }
  }

  private enum Exchange {
    case done
    case blockedBy(UInt64)
    /// It could not be tried this way.
    case unable
  }

  /// For indexes that cannot be searched, if no trigger sees a delete: replaces the row by its new form, or finds the
  /// row that blocks it.
  private mutating func exchange(_ item: Int32, _ bytes: RawSpan) throws -> Exchange {
    guard unique.hasOpaque, allowsUnseenDeletes, change.operation == .update, parked[item] == nil,
      !items[Int(item)].isDecided, try applier.mayPark(bytes), let local = try applier.writer.currentRow(bytes)
    else { return .unable }
    let old = try local.copied()
    local.release()
    let new = try old.replacing(change.newRow, in: bytes, columns: applier.statements.match.columns)
    try applier.statements.connection.execute("SAVEPOINT buckia_exchange")
    var result = Exchange.unable
    if try applier.writer.remove(bytes, guardedBy: .oldValues) == nil,
      applier.statements.connection.changes == 1,
      let number = try new.probe(with: applier.statements.probing.get())
    {
      if number == numbers[Int(item)] {
        try applier.writer.didUpdateParked(bytes, before: old)
        try applier.didWriteParked(bytes)
        result = .done
      } else if try applier.writer.restore(old) == nil {
        result = .blockedBy(number)
      }
    }
    if case .unable = result { try applier.statements.connection.execute("ROLLBACK TO buckia_exchange") }
    try applier.statements.connection.execute("RELEASE buckia_exchange")
    return result
  }

  /// Like `occupant`, for indexes that cannot be searched: the row is inserted in its new form, and SQLite reports the
  /// blocking row. Everything is rolled back.
  private mutating func probe(_ item: Int32, _ bytes: RawSpan) throws -> UInt64? {
    let row: RowCopy
    var hasOwn = false
    if case .removed(_, let whole)? = parked[item] {
      row = whole
    } else {
      if let local = try applier.writer.currentRow(bytes) {
        defer { local.release() }
        row = try local.copied().replacing(change.newRow, in: bytes, columns: applier.statements.match.columns)
        hasOwn = true
      } else {
        // Columns that only exist here get their defaults, which are unknown here.
        return nil
      }
    }
    try applier.statements.connection.execute("SAVEPOINT buckia_probe")
    var number: UInt64?
    if try !hasOwn || applier.writer.remove(bytes, guardedBy: .none) == nil {
      number = try row.probe(with: applier.statements.probing.get())
    }
    try applier.statements.connection.execute("ROLLBACK TO buckia_probe; RELEASE buckia_probe")
    return number
  }

  // MARK: Applying and parking

  /// Tries a change; false when it is refused.
  private mutating func apply(_ item: Int32, _ bytes: RawSpan) throws -> Bool {
    switch parked[item] {
    case .removed(let old, let new)?:
      guard try applier.writer.restore(new) == nil else { return false }
      try applier.writer.didUpdateParked(bytes, before: old)
      try applier.didWriteParked(bytes)
      return true
    case .moved(let old)?:
      guard try applier.writer.updateParked(bytes, before: old) else { return false }
      try applier.didWriteParked(bytes)
      return true
    case nil:
      applier.isDecided = items[Int(item)].isDecided
      defer { applier.isDecided = false }
      return try applier.attempt(bytes) == nil
    }
  }

  /// Parks a row; false if that is impossible.
  ///
  /// The row is deleted if no trigger sees that, and otherwise gets other values by an UPDATE.
  private mutating func park(_ item: Int32, _ place: ChangePlace, _ bytes: RawSpan) throws -> Bool {
    change.read(place, in: bytes)
    guard try applier.mayPark(bytes), let local = try applier.writer.currentRow(bytes) else { return false }
    defer { local.release() }
    let row = try local.copied()
    if parked.isEmpty {
      try applier.decider.mark()
      try applier.clock?.flush()
      countsBefore = applier.counts
      effectsBefore = applier.writer.observer?.mark ?? 0
      gatheredBefore = applier.writer.effects?.mark ?? 0
      try applier.statements.connection.execute("SAVEPOINT buckia_park")
    }
    // A provisional entry, by which giving up restores the row.
    parked[item] = .moved(row)
    if items[Int(item)].isDecided {
      let kind = change.operation == .insert ? ConflictKind.conflict : .data
      let incident = ConflictIncident(kind: kind, change: change, local: local)
      try applier.record(incident, .tookIncoming, bytes)
    }
    // The row must be as the author saw it, unless it has been asked about.
    let guardKind = items[Int(item)].isDecided ? TableStatements.Guard.none : .oldValues
    // An INSERT takes the place of a row by deleting it, wherever that can be seen.
    if change.operation == .insert || allowsUnseenDeletes,
      try applier.writer.remove(bytes, guardedBy: guardKind) == nil, applier.statements.connection.changes == 1
    {
      parked[item] = .removed(
        row, new: try row.replacing(change.newRow, in: bytes, columns: applier.statements.match.columns))
      return true
    }
    guard change.operation == .update else { return false }
    return try moveAside(row, bytes, guardedBy: guardKind)
  }

  /// Gives the row of the present UPDATE values that no row is likely to have, in place of those it is to lose.
  private mutating func moveAside(
    _ row: RowCopy, _ bytes: RawSpan, guardedBy guardKind: TableStatements.Guard
  ) throws -> Bool {
    let columns = applier.statements.match.columns
    var leaving = ColumnMask()
    var places: [Int] = []
    for index in columns.indices where change.new(index).isDefined {
      let isMember = unique.members?.contains(columns[index]) ?? true
      guard isMember, row.values[columns[index]].kind != .null else { continue }
      leaving.insert(index)
      places.append(index)
    }
    guard !leaving.isEmpty else { return false }
    let compared = guardKind == .oldValues ? change.compared : ColumnMask()
    let statement = try applier.statements.update(changed: leaving, compared: compared, nullKeys: change.nullKeys)
    for sign in [-1, 1, 0] {
      for index in places {
        let place = columns[index]
        // NULL comes last, because triggers that add and subtract values lose them with it.
        if sign == 0 {
          try statement.statement.bindNull(at: index)
        } else {
          try bindUnwanted(row.values[place].kind, sign, to: statement.statement, at: index)
        }
      }
      for index in columns.indices where applier.statements.isKey[index] || compared.contains(index) {
        try statement.statement.bind(change.old(index), in: bytes, at: columns.count + index)
      }
      let refusal = try applier.writer.run(statement)
      statement.statement.clearBindings()
      if refusal == nil { return applier.statements.connection.changes == 1 }
    }
    return false
  }

  /// Binds a value of a kind that no row is likely to have; if one has, the statement is refused.
  private mutating func bindUnwanted(
    _ kind: ValueKind, _ sign: Int, to statement: borrowing SQLiteStatement, at index: Int
  ) throws {
    parkedValues += 1
    // Far from what people count, and near enough for sums of it to stay exact.
    let number = Int64(sign) << 48 + Int64(sign * parkedValues)
    switch kind {
    case .integer: try statement.bind(number, at: index)
    case .real: try statement.bind(Double(number), at: index)
    case .blob: try statement.bind(Array("buckia parked \(parkedValues)".utf8), at: index)
    case .text, .null, .undefined: try statement.bind("buckia parked \(parkedValues)", at: index)
    }
  }
}
