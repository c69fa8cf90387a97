import BuckiaBytes

extension Changesets {
  /// Turns a changeset of any size into the one that undoes it; see ``inverted(_:)``.
  ///
  /// - Parameters:
  ///   - changeset: The changeset.
  ///   - output: Where the result is added.
  ///   - limits: How much is held in memory.
  ///   - keepsOrder: True if the order of a table's changes means something, though it changes each row once: to triggers and
  ///     foreign-key actions. Then it is reversed.
  ///   - poll: Is called every few thousand changes. May throw to stop.
  /// - Returns: The tables whose changes are DELETEs, UPDATEs and INSERTs now, each in key order.
  /// - Throws: `ChangesetError`, as ``inverted(_:)``, before anything is written; `ByteStreamError` when the input cannot be
  ///   read or the output cannot be written; whatever `poll` throws. The output may then hold a part of the result.
  @discardableResult
  package static func invert(
    _ changeset: TemporaryBuffer, into output: TemporaryBuffer, limits: ChangeSorter.Limits = ChangeSorter.Limits(),
    keepsOrder: (ChangesetTable) -> Bool = { _ in false }, poll: () throws -> Void = {}
  ) throws -> [ChangesetTable] {
    let summary = try invertibleSummary(of: changeset, poll: poll)
    let sections = summary.sectionsByTable
    var reversal = SectionReversal(of: changeset, summary)
    var tablesInKeyOrder: [ChangesetTable] = []
    var isWritten = [Bool](repeating: false, count: summary.tables.count)
    var previous: Int?
    for place in summary.sections.indices.reversed() {
      let number = summary.sections[place].table
      guard !isWritten[number] else { continue }
      let table = summary.tables[number].table
      if number != previous { try output.write(summary.tables[number].header) }
      previous = number
      if !reversal.holds(number) {
        if !keepsOrder(table),
          let parts = try ChangeSorter(table, sections: sections[number], of: changeset, limits: limits, poll: poll)
            .parts(of: table, .equalKeysUnlessReplaced, like: changeset, poll: poll)
        {
          for part in [parts.inserts, parts.updates, parts.deletes] {
            try invert(part, of: table, into: output, poll: poll)
          }
          isWritten[number] = true
          tablesInKeyOrder.append(table)
          continue
        }
        try reversal.add(number, poll: poll)
      }
      try reversal.write(place, to: output)
    }
    return tablesInKeyOrder
  }

  /// Inverts changes of one table in the order in which they stand.
  private static func invert(
    _ changes: TemporaryBuffer, of table: ChangesetTable, into output: TemporaryBuffer, poll: () throws -> Void
  ) throws {
    var inverter = ChangeInverter(table)
    try changes.forEachChange(in: [0..<changes.count], of: table, poll: poll) { change, end, bytes in
      try inverter.write(change, endingAt: end, in: bytes, to: output)
    }
    try inverter.flush(to: output)
  }

  /// Reads and checks a changeset that is to be inverted.
  private static func invertibleSummary(
    of changeset: TemporaryBuffer, poll: () throws -> Void
  ) throws -> ChangesetSummary {
    var builder = ChangesetSummary.Builder()
    var scan = ChangesetScan(changeset)
    while try scan.advance() {
      try poll()
      try scan.window.withBytes { bytes in
        while let change = try scan.next(in: bytes) {
          try checkInvertible(change, scan.reader)
          try builder.add(change, scan.reader, in: bytes, endingAt: scan.range(of: change).upperBound)
        }
      }
    }
    return builder.finish(byteCount: changeset.count)
  }

  private static func checkInvertible(_ change: Change, _ reader: ChangesetReader) throws(ChangesetError) {
    if change.startsTable, let table = reader.table, table.format == .patchset {
      throw ChangesetError(
        .needsChangeset, offset: reader.base + reader.headerRange.lowerBound, table: table.name)
    }
    if reader.lacksOldValues {
      throw ChangesetError(
        .misplacedValue, offset: reader.base + change.range.lowerBound, table: reader.table?.name)
    }
  }
}

/// Writes the inverses of changes of one table.
struct ChangeInverter {
  /// How many bytes are gathered before they are written.
  private static let writeBytes = 64 << 10

  private var reader: ChangesetReader
  private var writer = ChangesetWriter()

  init(_ table: ChangesetTable) { reader = ChangesetReader(at: 0, in: table) }

  /// Writes the inverse of a change, or gathers it. INSERT becomes DELETE and the other way round; an UPDATE swaps its values,
  /// with the key staying on the old side.
  mutating func write(
    _ change: ChangePlace, endingAt end: Int, in bytes: RawSpan, to output: TemporaryBuffer
  ) throws {
    let isIndirect = change.isIndirect(in: bytes)
    switch change.operation {
    case .insert, .delete:
      writer.beginChange(change.operation == .insert ? .delete : .insert, isIndirect: isIndirect)
      if end - change.values >= Self.writeBytes {
        try flush(to: output)
        try output.write(bytes.extracting(change.values..<end))
      } else {
        writer.append(change.values..<end, of: bytes)
      }
    case .update:
      reader.move(to: change.start)
      _ = try reader.next(in: bytes)
      writer.beginChange(.update, isIndirect: isIndirect)
      for (old, new) in zip(reader.old, reader.new) {
        // Only a key column has an old value and no new one.
        try append(new.isDefined ? new : old, of: bytes, to: output)
      }
      for (old, new) in zip(reader.old, reader.new) {
        try append(new.isDefined ? old : .undefined, of: bytes, to: output)
      }
    }
    if writer.count >= Self.writeBytes { try flush(to: output) }
  }

  private mutating func append(_ value: ValueSlice, of bytes: RawSpan, to output: TemporaryBuffer) throws {
    if value.count >= Self.writeBytes {
      try flush(to: output)
      try output.write(bytes.extracting(value.encoded))
    } else {
      writer.append(value, of: bytes)
    }
  }

  /// Writes what has been gathered.
  mutating func flush(to output: TemporaryBuffer) throws(ByteStreamError) {
    try output.write(writer.bytes)
    writer.removeAll()
  }
}

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

  /// True if a table has been added.
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
