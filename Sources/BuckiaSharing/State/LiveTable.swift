import BuckiaApply
import BuckiaBytes
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// A table of an exchange, with the hashes of its rows.
final class LiveTable {
  /// What a column contributes to the hash of a row.
  private enum Role {
    /// The value.
    case value
    /// The row whose key the value is.
    case reference(TableName)
    /// Nothing, because the value is the row's own key.
    case ownKey
  }

  let definition: TableDefinition
  let name: TableName
  /// The columns that count.
  let columns: [String]
  /// The columns that identify local rows: the key, and the rowid if the key can be NULL.
  let identity: [String]
  /// The key column if this replica assigns the keys; nil for other keys.
  let ownKey: String?
  private let keyCount: Int
  private let roles: [Role]
  private let seeds: [StreamRowHash.Seed]
  /// The rows with references to or from other rows, as nodes of a graph.
  private let keyed: LiveNodes
  private let others: LiveNodes
  /// True if rows of the exchange may refer to rows of this table by their key.
  private var isReferredTo = false
  /// The sums of the rows without references.
  private let state: TableState
  /// The hashes of the rows that were added, if a row can be added twice.
  private var seen: Set<UInt64> = []

  /// - Parameters:
  ///   - columns: The columns that count.
  ///   - targets: The columns with keys that replicas assign themselves.
  ///   - key: The key of the hashes.
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

  /// The result columns of a query whose rows go to ``add(_:isFromSeveral:)``.
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

  /// Adds a row, unless it was added before.
  ///
  /// - Parameters:
  ///   - row: The identifying columns, followed by the columns that count.
  ///   - isFromSeveral: True if the row may have been added before.
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
      // A row without a key is identified by its content.
      add(content, knownBy: hasKey && ownKey == nil ? identity : nil)
    }
  }

  private func add(_ content: UInt64, knownBy key: [UInt8]?) {
    state.replace(key ?? withUnsafeBytes(of: content.bigEndian) { Array($0) }, nil, by: content)
  }

  /// The hash of a row without its references, and the keys to which it refers.
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

  /// Ends the rows of one source. From now on, rows that are added again are recognized.
  ///
  /// - Parameter isCounted: True if the rows are part of the exchange.
  func endSource(isCounted: Bool = true) {
    keyed.endSegment(isCounted: isCounted)
    others.endSegment(isCounted: true)
  }

  /// The keys to which rows of some tables refer and that were not added.
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

/// Rows with references by integer keys, as nodes of a graph. A row is characterized by its values, the rows that it
/// refers to, and the rows that refer to it.
///
/// Each node has a colour, at first the hash of its values. In each of a number of rounds, the new colour is a hash of
/// the node's own colour, the colours that it refers to, and those that refer to it, as in the colour refinement of
/// Weisfeiler and Leman. Equal colours mean equal surroundings, whatever the keys are, and cycles are no special case.
/// `Schemas/digests.md` specifies it.
///
/// A node takes 24 bytes, and 8 for each of its references.
final class LiveNodes {
  /// The number of rounds: the distance in steps up to which rows count as surroundings.
  private static let rounds = 8
  /// The value for a missing reference.
  static let none = Int64.min
  /// The seed for hashes that are not of a column.
  static let plainSeed = StreamRowHash.Seed(of: "")

  /// The rows of one source. Keys are found by binary search.
  private struct Segment {
    let rows: Range<Int>
    /// The places of the rows in the order of their keys; nil if the rows are in that order.
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
  /// The keys to which the rows refer, row by row; after ``resolve()``, the places of these rows.
  private var references: [Int64] = []
  private var segments: [Segment] = []
  private var searched = 0..<0

  /// - Parameters:
  ///   - seeds: The seeds of the referring columns.
  ///   - backSeeds: The seeds for the opposite direction.
  init(_ seeds: [StreamRowHash.Seed], _ backSeeds: [StreamRowHash.Seed]) {
    self.seeds = seeds
    self.backSeeds = backSeeds
  }

  // MARK: Gathering

  /// Adds a row.
  ///
  /// - Parameters:
  ///   - key: The key; nil if no reference leads to the row.
  ///   - content: The hash of the row without its references.
  ///   - references: The keys to which the row refers, or ``none``.
  func append(_ key: Int64?, _ content: UInt64, _ references: [Int64]) {
    if let key { keys.append(key) }
    colours.append(content)
    self.references.append(contentsOf: references)
  }

  /// Ends the rows of one source. From now on their keys are found.
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

  /// Begins the search for the parents of the rows that were added since the last search.
  func beginSearch() { searched = searched.upperBound..<colours.count }

  /// Adds the keys that are referred to and missing.
  func addMissing(of target: LiveNodes, to missing: inout Set<Int64>) {
    for (column, other) in targets.enumerated() where other === target {
      for row in searched {
        let key = references[row * targets.count + column]
        if key != Self.none, target.place(of: key) == nil { missing.insert(key) }
      }
    }
  }

  // MARK: Colours

  /// Resolves references to rows. A reference to a missing row counts as a value of the row.
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

  /// Refines the colours of all rows.
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

  /// Calls `body` with the colour of each row that is part of the exchange.
  func forEachCounted(_ body: (UInt64) -> Void) {
    for segment in segments where segment.isCounted {
      for row in segment.rows { body(colours[row]) }
    }
  }
}
