import BuckiaLedger
import SQLiteChangesets

/// An earlier version of a row, put together from later ones.
///
/// Only the hash of the version is known. It is the sum of the hashes of its values (``StreamRowHash``), and each value is one that a later
/// version still has unless it has changed in all of them. So the values are found by trying.
struct RecoveredRow {
  /// The values in the columns of the changeset, in its format.
  let values: [[UInt8]]

  /// How many combinations are tried at most.
  private static let limit = 1 << 16

  /// Finds the version that both an incoming row and the one here come from, or which somebody has deleted.
  ///
  /// - Parameters:
  ///   - version: Its hash.
  ///   - row: The incoming row; nil for a deleted one.
  ///   - here: The row as it is here.
  ///   - sent: The row as it was sent last; nil where it was not.
  /// - Returns: nil where a value has changed in all of them.
  init?(_ version: UInt64, of row: [[UInt8]]?, _ table: KeyedTable, beside here: LocalRow, _ sent: PeerShadow.SentRow?)
  {
    var choices: [[[UInt8]]] = []
    var hashes: [[UInt64]] = []
    for place in table.columns.indices {
      let mine = here.encoded(place)
      // A column that was not sent is no part of the version.
      if let sent, sent.values[place] == nil {
        choices.append([mine])
        hashes.append([0])
        continue
      }
      var values: [[UInt8]] = []
      for value in [sent?.values[place], mine, row?[place]] {
        if let value, !values.contains(value) { values.append(value) }
      }
      var found = values.map { StreamRowHash(ofEncoded: $0, table.seeds[place]).value }
      // A column that is NULL here may have come with another stream only: then it is no part of the version, either.
      if here.slices[place].kind == .null, sent == nil {
        values.append(mine)
        found.append(0)
      }
      choices.append(values)
      hashes.append(found)
    }
    var chosen = [Int](repeating: 0, count: choices.count)
    var sum = hashes.reduce(sent?.otherColumns ?? 0) { $0 &+ $1[0] }
    let open = choices.indices.filter { choices[$0].count > 1 }
    var attempts = 0
    // Counts through the combinations like an odometer.
    while sum != version {
      attempts += 1
      guard attempts < Self.limit else { return nil }
      var index = 0
      while true {
        guard index < open.count else { return nil }
        let place = open[index]
        sum &-= hashes[place][chosen[place]]
        chosen[place] = (chosen[place] + 1) % choices[place].count
        sum &+= hashes[place][chosen[place]]
        if chosen[place] != 0 { break }
        index += 1
      }
    }
    values = choices.indices.map { choices[$0][chosen[$0]] }
  }

  /// The columns outside of the key in which another row has other values.
  func changedPlaces(_ row: [ValueSlice], _ bytes: RawSpan, _ header: ChangesetTable) -> [Int] {
    row.indices.filter { !header.isKey($0) && values[$0] != bytes.array(row[$0].encoded) }
  }
}
