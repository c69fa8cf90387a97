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
  private static let roundSeed = StreamRowHash.Seed(of: "")

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
          node.colours[row] = StreamRowHash.hash(of: node.colours[row] &+ node.sums[row], roundSeed)
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
