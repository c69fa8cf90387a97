/// INSERTs that wait to go in together: one statement for several rows saves most of what a statement costs.
///
/// A batch ends at a row that a constraint refuses, and where rows are refused one after the other, batches only cost. So
/// they are given up for a while: longer each time, until a whole while has gone by without a refusal.
struct InsertBatch {
  /// How many parameters a statement gets at most: more rows gain nothing, and wide tables keep their statements short.
  private static let parameterLimit = 512
  /// The sizes that are used, the larger first, so that few statements serve every number of rows.
  private static let sizes = [32, 8]
  /// The longest while without batches, in rows.
  private static let pauseLimit = 8_192

  private var starts: [Int] = []
  private let sizes: [Int]
  /// How long the present while without batches is, and what is left of it.
  private var pause = 0
  private var pauseLeft = 0
  private var isRefusing = false

  /// - Parameters:
  ///   - columns: How many parameters a row takes.
  ///   - limit: The most parameters that a statement may have; 1 for no batches at all.
  init(columns: Int, limit: Int) {
    sizes = Self.sizes.filter { $0 * columns <= min(limit, Self.parameterLimit) }
    starts.reserveCapacity(sizes.first ?? 0)
  }

  /// Whether there are batches.
  var isUsed: Bool { !sizes.isEmpty }
  var isEmpty: Bool { starts.isEmpty }
  var isFull: Bool { starts.count == sizes[0] }
  var count: Int { starts.count }

  /// Adds the INSERT that stands at an offset.
  mutating func add(_ start: Int) { starts.append(start) }

  func start(_ index: Int) -> Int { starts[index] }

  func starts(_ range: Range<Int>) -> ArraySlice<Int> { starts[range] }

  mutating func removeAll() { starts.removeAll(keepingCapacity: true) }

  /// How many rows from an index on go in with the next statement.
  func rows(from index: Int) -> Int {
    guard pauseLeft == 0 else { return 1 }
    let left = starts.count - index
    return sizes.first { $0 <= left } ?? 1
  }

  /// Says that a batch was refused.
  mutating func noteRefusal(of rows: Int) {
    pause = min(max(2 * pause, rows), Self.pauseLimit)
    pauseLeft = pause
    isRefusing = false
  }

  /// Says that a row went in, or did not, by itself.
  mutating func noteSingle(wasRefused: Bool) {
    guard pauseLeft > 0 else { return }
    if wasRefused { isRefusing = true }
    pauseLeft -= 1
    guard pauseLeft == 0 else { return }
    if isRefusing { pauseLeft = pause } else { pause = 0 }
    isRefusing = false
  }
}
