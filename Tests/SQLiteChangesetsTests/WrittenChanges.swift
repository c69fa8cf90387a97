import BuckiaBytes
import SQLiteChangesets
import Testing

/// A value as written in tests.
enum TestValue: ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral, ExpressibleByStringLiteral,
  ExpressibleByNilLiteral, ExpressibleByArrayLiteral
{
  case undefined, null, integer(Int64), real(Double), text(String), blob([UInt8])

  init(integerLiteral value: Int64) { self = .integer(value) }
  init(floatLiteral value: Double) { self = .real(value) }
  init(stringLiteral value: String) { self = .text(value) }
  init(nilLiteral: ()) { self = .null }
  init(arrayLiteral elements: UInt8...) { self = .blob(elements) }
}

/// A change as written in tests.
enum TestChange {
  case insert([TestValue], indirect: Bool = false)
  case delete([TestValue], indirect: Bool = false)
  case update(old: [TestValue], new: [TestValue], indirect: Bool = false)
  /// The one record of a patchset's UPDATE, or the key of its DELETE.
  case patchUpdate([TestValue], indirect: Bool = false)
  case patchDelete([TestValue], indirect: Bool = false)
}

extension ChangesetWriter {
  mutating func append(_ value: TestValue) {
    switch value {
    case .undefined: appendUndefined()
    case .null: appendNull()
    case .integer(let number): append(integer: number)
    case .real(let number): append(real: number)
    case .text(let text): append(text: text)
    case .blob(let bytes): bytes.withUnsafeBytes { append(.blob, $0) }
    }
  }

  mutating func append(_ change: TestChange) {
    switch change {
    case .insert(let values, let isIndirect):
      beginChange(.insert, isIndirect: isIndirect)
      for value in values { append(value) }
    case .delete(let values, let isIndirect), .patchDelete(let values, let isIndirect):
      beginChange(.delete, isIndirect: isIndirect)
      for value in values { append(value) }
    case .update(let old, let new, let isIndirect):
      beginChange(.update, isIndirect: isIndirect)
      for value in old + new { append(value) }
    case .patchUpdate(let values, let isIndirect):
      beginChange(.update, isIndirect: isIndirect)
      for value in values { append(value) }
    }
  }
}

/// The bytes of a changeset of one table.
func changeset(
  _ name: String, key: [UInt8] = [1, 0], format: ChangesetFormat = .changeset, _ changes: TestChange...
) -> [UInt8] {
  changeset(ChangesetTable(name: name, format: format, keyFlags: key), changes)
}

/// The bytes of a changeset of the table "notes".
func changeset(key: [UInt8] = [1, 0], format: ChangesetFormat = .changeset, _ changes: TestChange...) -> [UInt8] {
  changeset(ChangesetTable(name: "notes", format: format, keyFlags: key), changes)
}

func changeset(_ table: ChangesetTable, _ changes: [TestChange]) -> [UInt8] {
  var writer = ChangesetWriter()
  writer.beginTable(table)
  for change in changes { writer.append(change) }
  return writer.bytes
}

/// Changeset bytes as text, a line for each change: `notes INSERT - | 1 'a'`, `*` for indirect, `.` for undefined.
func lines(_ bytes: [UInt8]) throws -> [String] {
  try bytes.withRawSpan { span in
    var reader = ChangesetReader()
    var lines: [String] = []
    while let change = try reader.next(in: span) {
      var line = (reader.table?.name ?? "") + " \(change.operation)".uppercased() + (change.isIndirect ? "*" : "")
      for values in [reader.old, reader.new] {
        line += values.contains(where: \.isDefined) ? " |" : " -"
        guard values.contains(where: \.isDefined) else { continue }
        for value in values {
          switch ChangesetValue(value, in: span) {
          case nil: line += " ."
          case .null?: line += " NULL"
          case .integer(let number)?: line += " \(number)"
          case .real(let number)?: line += " \(number)"
          case .text(let text)?: line += " '\(text)'"
          case .blob(let blob)?: line += " x\(blob)"
          }
        }
      }
      lines.append(line)
    }
    return lines
  }
}

/// The bytes of each change, preceded by the header of its table: equal sets have equal effect.
func wholeChanges(_ bytes: [UInt8]) throws -> [[UInt8]] {
  try bytes.withRawSpan { span in
    var reader = ChangesetReader()
    var changes: [[UInt8]] = []
    while let change = try reader.next(in: span) {
      changes.append(span.array(reader.headerRange) + span.array(change.range))
    }
    return changes
  }
}

extension TemporaryBuffer {
  /// Creates a buffer with a file that is read in small windows; the last bytes are still in memory.
  convenience init(_ bytes: [UInt8], windowBytes: Int) throws {
    self.init(memoryLimit: 0, windowBytes: windowBytes)
    try write(bytes)
  }
}

extension ChangesetSummary {
  /// The summary of changes in memory.
  static func of(_ bytes: [UInt8]) throws -> ChangesetSummary { try of(TemporaryBuffer(bytes)) }
}

extension Changesets {
  static func concatenated(_ changesets: [UInt8]...) throws -> [UInt8] { try concatenated(changesets) }
}

/// The sections of changeset bytes, each with its header, in reverse order.
func sectionsReversed(_ bytes: [UInt8]) throws -> [UInt8] {
  var starts: [Int] = []
  try bytes.withRawSpan { span in
    var reader = ChangesetReader()
    while let change = try reader.next(in: span) {
      if change.startsTable { starts.append(reader.headerRange.lowerBound) }
    }
  }
  let ends = starts.dropFirst() + [bytes.count]
  return zip(starts, ends).reversed().flatMap { bytes[$0..<$1] }
}

/// `Changesets` with files, small windows and sorted runs of a few changes.
enum Spilled {
  private static let limits = ChangeSorter.Limits(changes: 5)

  static func inverted(_ bytes: [UInt8]) throws -> [UInt8] {
    let output = TemporaryBuffer(memoryLimit: 0)
    try Changesets.invert(TemporaryBuffer(bytes, windowBytes: 64), into: output, limits: limits)
    return try output.allBytes()
  }

  static func sorted(_ bytes: [UInt8]) throws -> [UInt8] {
    let output = TemporaryBuffer(memoryLimit: 0)
    let input = try TemporaryBuffer(bytes, windowBytes: 64)
    try Changesets.sort(input, ChangesetSummary.of(input), into: output, limits: limits)
    return try output.allBytes()
  }

  static func rebased(_ local: [UInt8], onto incoming: [UInt8], _ policy: RebasePolicy) throws -> [UInt8] {
    let output = TemporaryBuffer(memoryLimit: 0)
    _ = try Changesets.rebase(
      TemporaryBuffer(local, windowBytes: 64), onto: TemporaryBuffer(incoming, windowBytes: 64), policy, into: output,
      limits: limits)
    return try output.allBytes()
  }

  static func concatenated(_ changesets: [[UInt8]]) throws -> [UInt8] {
    let output = TemporaryBuffer(memoryLimit: 0, windowBytes: 64)
    try Changesets.concatenate(
      changesets.map { try TemporaryBuffer($0, windowBytes: 64) }, into: output, limits: limits)
    return try output.allBytes()
  }
}

/// The code and offset of the `ChangesetError` that `body` throws; nil if it throws none.
func changesetError(of body: () throws -> Void) -> ChangesetError? {
  do { try body() } catch let error as ChangesetError { return error } catch {
    Issue.record("not a ChangesetError: \(error)")
  }
  return nil
}
