import BuckiaBytes

/// Sections of a changeset from the last change to the first, each change inverted: what undoes a sequence of changes.
///
/// A section is turned around in stretches, each as much as is in memory at once. The stretches are put together from the last
/// to the first.
struct SectionReversal {
  private let summary: ChangesetSummary
  private let window: ChangesetWindow
  /// The stretches that have been turned around, and where each of them lies.
  private let turned: TemporaryBuffer
  private var stretches: [Range<Int>] = []
  /// The sections of each table.
  private var sectionsOfTables: [[Int]]
  /// For each section which of the stretches are its own; empty until its table is added.
  private var stretchesOfSections: [Range<Int>]
  private var isAdded: [Bool]

  init(of changeset: TemporaryBuffer, _ summary: ChangesetSummary) {
    self.summary = summary
    window = ChangesetWindow(changeset)
    turned = changeset.makeEmpty()
    stretchesOfSections = Array(repeating: 0..<0, count: summary.sections.count)
    sectionsOfTables = Array(repeating: [], count: summary.tables.count)
    for (place, section) in summary.sections.enumerated() { sectionsOfTables[section.table].append(place) }
    isAdded = Array(repeating: false, count: summary.tables.count)
  }

  /// Whether a table has been added.
  func holds(_ table: Int) -> Bool { isAdded[table] }

  /// Turns all sections of a table around.
  mutating func add(_ table: Int, poll: () throws -> Void) throws {
    isAdded[table] = true
    let header = summary.tables[table].table
    var inverter = ChangeInverter(header)
    var walk = ChangeStretches(0..<0, of: header, in: window)
    for place in sectionsOfTables[table] {
      let first = stretches.count
      walk.begin(summary.sections[place].changes)
      while try walk.advance() {
        try poll()
        let start = turned.count
        try window.withBytes { bytes in
          var changes: [(place: ChangePlace, end: Int)] = []
          while let change = walk.next(in: bytes) { changes.append((change, walk.changeEnd)) }
          for change in changes.reversed() {
            try inverter.write(change.place, endingAt: change.end, in: bytes, to: turned)
          }
          try inverter.flush(to: turned)
        }
        stretches.append(start..<turned.count)
      }
      stretchesOfSections[place] = first..<stretches.count
    }
  }

  /// Writes a section of a table that was added, without a header.
  func write(_ section: Int, to output: TemporaryBuffer) throws {
    for stretch in stretches[stretchesOfSections[section]].reversed() {
      try turned.forEachPiece(stretch) { try output.write($0) }
    }
  }
}
