import BuckiaApply
import BuckiaBytes
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// A table of an exchange, and what its rows say.
final class LiveTable {
  /// What the value of a column says.
  private enum Role {
    /// Itself.
    case value
    /// The row of a table that has it as its key.
    case reference(TableName)
    /// Nothing: it is the row's own key.
    case ownKey
  }

  let definition: TableDefinition
  let name: TableName
  /// The columns that count.
  let columns: [String]
  /// What tells rows of this database apart: the key, and the rowid where that can be NULL.
  let identity: [String]
  /// The column of the key, where this replica gives it out itself; nil for any other key.
  let ownKey: String?
  private let keyCount: Int
  private let roles: [Role]
  private let seeds: [StreamRowHash.Seed]
  /// Rows that others refer to by their key, and other rows that refer to any.
  private let keyed: LiveNodes
  private let others: LiveNodes
  /// True if rows of the exchange may refer to rows of this table by their key.
  private var isReferredTo = false
  /// The sums of the rows that need no others to be known.
  private let state: TableState
  /// The hashes of the identities that have come, where a row can come twice.
  private var seen: Set<UInt64> = []

  /// - Parameters:
  ///   - columns: The columns that count.
  ///   - targets: Which columns hold keys that replicas give out themselves.
  ///   - key: What makes the hashes differ from those of others.
  init(_ definition: TableDefinition, columns: [String], _ targets: KeyColumns, hashing key: [UInt8]) {
    let name = TableName(definition.name)
    self.definition = definition
    self.name = name
    self.columns = columns
    let keys = definition.isKeyedByRowID ? [] : definition.primaryKey.map { definition.columns[$0].name }
    keyCount = keys.count
    let rowID = keys.isEmpty || definition.hasNullKeySQL != nil ? definition.rowIDName : nil
    identity = keys + [rowID].compactMap { $0 }
    let ownKey = keys.count == 1 ? keys.first { targets.table(in: name, column: $0) == name } : nil
    self.ownKey = ownKey
    roles = columns.map { column in
      if let ownKey, ASCIIName.matches(ownKey, column) { return .ownKey }
      return targets.table(in: name, column: column).map { .reference($0) } ?? .value
    }
    seeds = columns.map { StreamRowHash.Seed(of: $0) }
    var out: [StreamRowHash.Seed] = []
    var back: [StreamRowHash.Seed] = []
    for (place, role) in roles.enumerated() {
      guard case .reference = role else { continue }
      out.append(seeds[place])
      back.append(StreamRowHash.Seed(of: "\(name.text).\(columns[place])"))
    }
    keyed = LiveNodes(out, back)
    others = LiveNodes(out, back)
    state = TableState(.share(0), stream: key, name, columns: columns)
  }

  /// The columns of a query for its rows, as ``add(_:isFromSeveral:)`` wants them.
  var results: String { (identity + columns).map { SQLText.identifier($0) }.joined(separator: ", ") }

  var nodes: [LiveNodes] { [keyed, others] }

  /// Finds the tables that its columns refer to.
  func connect(to tables: [TableName: LiveTable]) {
    for role in roles {
      guard case .reference(let name) = role, let table = tables[name] else { continue }
      table.isReferredTo = true
      keyed.targets.append(table.keyed)
      others.targets.append(table.keyed)
    }
  }

  // MARK: Rows

  /// Adds a row, unless it has come before.
  ///
  /// - Parameters:
  ///   - row: The columns of its identity, and those that count.
  ///   - isFromSeveral: True if it may have come before.
  func add(_ row: borrowing SQLiteStatement, isFromSeveral: Bool) {
    let hasKey = keyCount > 0 && !(0..<keyCount).contains { row.isNull(at: $0) }
    let isOwn = ownKey != nil && row.storageClass(at: 0) == .integer
    if isOwn, isReferredTo {
      let key = row.integer(at: 0)
      if keyed.place(of: key) != nil { return }
      let (content, references) = read(row, isOwn: true)
      keyed.append(key, content, references)
      return
    }
    let identity =
      isFromSeveral || hasKey
      ? row.record(of: 0..<(hasKey ? keyCount : self.identity.count)) : []
    if isFromSeveral {
      let hash = identity.withRawSpan { StreamRowHash.hash(of: $0, LiveNodes.plainSeed) }
      if !seen.insert(hash).inserted { return }
    }
    let (content, references) = read(row, isOwn: isOwn)
    if !others.targets.isEmpty {
      others.append(nil, content, references)
    } else {
      // A row without a key of its own is known by what it says.
      add(content, knownBy: hasKey && ownKey == nil ? identity : nil)
    }
  }

  private func add(_ content: UInt64, knownBy key: [UInt8]?) {
    state.replace(key ?? withUnsafeBytes(of: content.bigEndian) { Array($0) }, nil, by: content)
  }

  /// The hash of what a row says by itself, and the keys that it refers to.
  private func read(_ row: borrowing SQLiteStatement, isOwn: Bool) -> (content: UInt64, references: [Int64]) {
    var references: [Int64] = []
    let values = row.record(of: identity.count..<identity.count + columns.count)
    let content = values.withRawSpan { bytes in
      var hash = StreamRowHash()
      var position = 0
      for place in columns.indices {
        let value = ValueSlice(verified: bytes, at: &position)
        let isInteger = value.kind == .integer
        switch roles[place] {
        case .ownKey where isOwn: continue
        case .reference:
          let key = isInteger ? value.integer(in: bytes) : LiveNodes.none
          references.append(key)
          if key != LiveNodes.none { continue }
        default: break
        }
        hash.add(value, bytes, seeds[place])
      }
      return hash.value
    }
    return (content, references)
  }

  /// Ends what has been added by one source: a row that comes again is known from now on.
  ///
  /// - Parameter isCounted: True if the rows are part of the exchange.
  func endSource(isCounted: Bool = true) {
    keyed.endSegment(isCounted: isCounted)
    others.endSegment(isCounted: true)
  }

  /// The keys that rows of some tables refer to, and that have not come.
  func missingKeys(in tables: [LiveTable]) -> Set<Int64> {
    var missing: Set<Int64> = []
    for table in tables {
      for nodes in table.nodes { nodes.addMissing(of: keyed, to: &missing) }
    }
    return missing
  }

  /// The sums of all rows that are part of the exchange.
  func sums() -> StateSums {
    for nodes in nodes { nodes.forEachCounted { add($0, knownBy: nil) } }
    return state.sums
  }
}

/// Rows that refer to others by integer keys, or are referred to, as nodes of a graph: a row is what it says, what it refers to, and what refers
/// to it.
///
/// Each node has a colour, at first the hash of what it says by itself. In each of a number of rounds it becomes the hash of itself, of the colours
/// that it refers to, and of those that refer to it, as in the refinement of Weisfeiler and Leman. So equal colours mean equal surroundings,
/// whatever the keys are, and cycles are no special case. `Schemas/digests.md` specifies it.
///
/// A node takes 24 bytes, and 8 for each of its references.
final class LiveNodes {
  /// How many steps from a row count as its surroundings.
  private static let rounds = 8
  /// Stands for no reference.
  static let none = Int64.min
  /// For what is no value of a column.
  static let plainSeed = StreamRowHash.Seed(of: "")

  /// Rows of one source: their keys are found by a binary search.
  private struct Segment {
    let rows: Range<Int>
    /// The places of the rows in the order of their keys; nil where that is the order that they have.
    let order: [UInt32]?
    let isCounted: Bool
  }

  /// The rows that each reference leads to.
  var targets: [LiveNodes] = []
  private let seeds: [StreamRowHash.Seed]
  private let backSeeds: [StreamRowHash.Seed]
  private var keys: [Int64] = []
  private var colours: [UInt64] = []
  private var sums: [UInt64] = []
  /// The keys that the rows refer to, row by row; once they are resolved, the places of these rows.
  private var references: [Int64] = []
  private var segments: [Segment] = []
  private var searched = 0..<0

  /// - Parameters:
  ///   - seeds: Those of the columns that refer to others.
  ///   - backSeeds: The same for those that are referred to.
  init(_ seeds: [StreamRowHash.Seed], _ backSeeds: [StreamRowHash.Seed]) {
    self.seeds = seeds
    self.backSeeds = backSeeds
  }

  // MARK: Gathering

  /// Adds a row.
  ///
  /// - Parameters:
  ///   - key: Its key; nil where no reference leads to it.
  ///   - content: The hash of what it says by itself.
  ///   - references: The keys that it refers to, or ``none``.
  func append(_ key: Int64?, _ content: UInt64, _ references: [Int64]) {
    if let key { keys.append(key) }
    colours.append(content)
    self.references.append(contentsOf: references)
  }

  /// Ends the rows of one source, whose keys are found from now on.
  func endSegment(isCounted: Bool) {
    let start = segments.last?.rows.upperBound ?? 0
    guard start < colours.count else { return }
    let rows = start..<colours.count
    let isSorted = keys.isEmpty || rows.dropFirst().allSatisfy { keys[$0 - 1] < keys[$0] }
    let order = isSorted ? nil : rows.map { UInt32($0) }.sorted { keys[Int($0)] < keys[Int($1)] }
    segments.append(Segment(rows: rows, order: order, isCounted: isCounted))
  }

  /// The place of the row with a key; nil for none.
  func place(of key: Int64) -> Int? {
    for segment in segments {
      var (low, high) = (0, segment.rows.count)
      while low < high {
        let middle = (low + high) / 2
        let place = segment.order.map { Int($0[middle]) } ?? segment.rows.lowerBound + middle
        if keys[place] == key { return place }
        if keys[place] < key { low = middle + 1 } else { high = middle }
      }
    }
    return nil
  }

  /// Begins to look for the parents of the rows that have come since the last search.
  func beginSearch() { searched = searched.upperBound..<colours.count }

  /// Adds the keys of rows that are referred to, and are not there.
  func addMissing(of target: LiveNodes, to missing: inout Set<Int64>) {
    for (column, other) in targets.enumerated() where other === target {
      for row in searched {
        let key = references[row * targets.count + column]
        if key != Self.none, target.place(of: key) == nil { missing.insert(key) }
      }
    }
  }

  // MARK: Colours

  /// Finds the rows that are referred to. A reference that leads to nothing is part of what a row says.
  func resolve() {
    for (column, target) in targets.enumerated() {
      for row in colours.indices {
        let index = row * targets.count + column
        guard references[index] != Self.none else { continue }
        if let place = target.place(of: references[index]) {
          references[index] = Int64(place)
        } else {
          references[index] = Self.none
          colours[row] &+= StreamRowHash.hash(of: .max, seeds[column])
        }
      }
    }
  }

  /// Makes the colours of rows those of their surroundings.
  static func refine(_ nodes: [LiveNodes]) {
    guard nodes.contains(where: { !$0.targets.isEmpty && !$0.colours.isEmpty }) else { return }
    for _ in 0..<rounds {
      for node in nodes { node.sums = Array(repeating: 0, count: node.colours.count) }
      for node in nodes {
        for column in node.targets.indices {
          node.lookForwards(column)
          node.lookBackwards(column)
        }
      }
      for node in nodes {
        for row in node.colours.indices {
          node.colours[row] = StreamRowHash.hash(of: node.colours[row] &+ node.sums[row], plainSeed)
        }
      }
    }
  }

  private func lookForwards(_ column: Int) {
    let theirs = targets[column].colours
    for row in colours.indices {
      let place = references[row * targets.count + column]
      if place != Self.none { sums[row] &+= StreamRowHash.hash(of: theirs[Int(place)], seeds[column]) }
    }
  }

  private func lookBackwards(_ column: Int) {
    let target = targets[column]
    for segment in segments where segment.isCounted {
      for row in segment.rows {
        let place = references[row * targets.count + column]
        guard place != Self.none else { continue }
        target.sums[Int(place)] &+= StreamRowHash.hash(of: colours[row], backSeeds[column])
      }
    }
  }

  /// Gives the colour of each row that is part of the exchange.
  func forEachCounted(_ body: (UInt64) -> Void) {
    for segment in segments where segment.isCounted {
      for row in segment.rows { body(colours[row]) }
    }
  }
}
