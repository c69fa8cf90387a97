import SQLiteChangesets
import TestSupport

extension ChangesetWriter {
  /// Adds a random change that is well-formed but need not make sense.
  mutating func appendArbitraryChange(of table: ChangesetTable, _ random: inout SeededGenerator) {
    let isPatchset = table.format == .patchset
    let columns = table.keyFlags.indices
    switch Int.random(in: 0..<3, using: &random) {
    case 0:
      beginChange(.insert)
      for _ in columns { appendArbitraryValue(&random) }
    case 1:
      beginChange(.delete)
      for column in columns where !isPatchset || table.isKey(column) { appendArbitraryValue(&random) }
    default:
      beginChange(.update)
      let isSet = columns.map { _ in Bool.random(using: &random) }
      if !isPatchset {
        for column in columns {
          if isSet[column] || table.isKey(column) { appendArbitraryValue(&random) } else { appendUndefined() }
        }
      }
      for column in columns {
        let isThere = table.isKey(column) ? isPatchset : isSet[column]
        if isThere { appendArbitraryValue(&random) } else { appendUndefined() }
      }
    }
  }

  /// Adds a random value, in most cases one that some row has.
  mutating func appendArbitraryValue(_ random: inout SeededGenerator) {
    switch Int.random(in: 0..<12, using: &random) {
    case 0: appendNull()
    case 1: append(real: [1, 1.5, -0.0, .infinity, 0x1p63, 4e18].randomElement(using: &random) ?? 0)
    case 2: append(integer: [.min, .max, 0, -1].randomElement(using: &random) ?? 0)
    case 3: append(text: ["", "a", "A", "b", "1", "1e400", "x\0y"].randomElement(using: &random) ?? "")
    case 4: [UInt8]([0xff, 0xfe]).withUnsafeBytes { append(.text, $0) }
    case 5: [UInt8]([0]).withUnsafeBytes { append(.blob, $0) }
    case 6: append(.blob, UnsafeRawBufferPointer(start: nil, count: 0))
    // SQLite never writes NaN, but other programs can.
    case 7: append(real: .nan)
    default: append(integer: Int64.random(in: 1...4, using: &random))
    }
  }
}
