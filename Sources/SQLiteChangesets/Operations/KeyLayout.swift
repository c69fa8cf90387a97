/// Where the key of a table's changes stands in their bytes, and how keys compare.
///
/// Changes are given by the offset of their operation byte, in bytes that a `ChangesetReader` has walked over without an
/// error. Sorting asks these questions millions of times: nothing is allocated when the key is in column order, and no
/// walk is longer than its record, whatever the header claims.
struct KeyLayout: Sendable {
  /// The key columns in key order: by their ordinals when the header gives them, else as they stand in the table.
  let columns: [Int]
  /// The same columns, counted among the key columns only: their places in the DELETE of a patchset.
  private let ranks: [Int]
  /// The indices of `columns` in the order in which a record holds them.
  private let indicesInColumnOrder: [Int]
  private let isInColumnOrder: Bool
  private let format: ChangesetFormat

  init(_ table: ChangesetTable) {
    let inTableOrder = table.keyFlags.indices.filter { table.isKey($0) }
    let byOrdinal = inTableOrder.indices.sorted {
      table.keyFlags[inTableOrder[$0]] < table.keyFlags[inTableOrder[$1]]
    }
    let areOrdinals = byOrdinal.enumerated().allSatisfy { Int(table.keyFlags[inTableOrder[$1]]) == $0 + 1 }
    ranks = areOrdinals ? byOrdinal : Array(inTableOrder.indices)
    columns = ranks.map { inTableOrder[$0] }
    let ranks = ranks
    indicesInColumnOrder = ranks.indices.sorted { ranks[$0] < ranks[$1] }
    isInColumnOrder = ranks.elementsEqual(inTableOrder.indices)
    format = table.format
  }

  /// Compares the keys of two changes by value: negative, zero or positive.
  func order(_ one: Int, _ other: Int, in bytes: RawSpan) -> Int {
    guard isInColumnOrder else {
      let (mine, theirs) = (values(of: one, in: bytes), values(of: other, in: bytes))
      for place in columns.indices {
        let order = mine[place].order(against: theirs[place], in: bytes)
        if order != 0 { return order }
      }
      return 0
    }
    let (myPlaces, theirPlaces) = (places(in: one, bytes), places(in: other, bytes))
    var (mine, theirs) = (RecordWalk(of: one), RecordWalk(of: other))
    for place in columns.indices {
      let order = mine.value(at: myPlaces[place], in: bytes)
        .order(against: theirs.value(at: theirPlaces[place], in: bytes), in: bytes)
      if order != 0 { return order }
    }
    return 0
  }

  /// True if the keys of two changes are the same: kinds and bytes.
  func isSame(_ one: Int, _ other: Int, in bytes: RawSpan) -> Bool {
    zip(values(of: one, in: bytes), values(of: other, in: bytes))
      .allSatisfy { $0.isIdentical(to: $1, in: bytes, otherIn: bytes) }
  }

  /// The start of a change's key, as ``ValueSlice/orderPrefix(in:)`` gives it.
  func prefix(of change: Int, in bytes: RawSpan) -> UInt64 {
    var walk = RecordWalk(of: change)
    let isShort = format == .patchset && bytes.byte(at: change) == ChangeOperation.delete.rawValue
    return walk.value(at: isShort ? ranks[0] : columns[0], in: bytes).orderPrefix(in: bytes)
  }

  /// The values of a change's key, in key order.
  func values(of change: Int, in bytes: RawSpan) -> [ValueSlice] {
    let places = places(in: change, bytes)
    var values = [ValueSlice](repeating: .undefined, count: columns.count)
    var walk = RecordWalk(of: change)
    for index in indicesInColumnOrder { values[index] = walk.value(at: places[index], in: bytes) }
    return values
  }

  /// At which places of its first record a change holds its key.
  ///
  /// That is the old record of UPDATE and DELETE, the new one of INSERT and of a patchset's UPDATE.
  private func places(in change: Int, _ bytes: RawSpan) -> [Int] {
    format == .patchset && bytes.byte(at: change) == ChangeOperation.delete.rawValue ? ranks : columns
  }
}

/// Walks from value to value of the first record of a change.
private struct RecordWalk {
  private var place = 0
  private var position: Int

  init(of change: Int) { position = change + 2 }

  /// The value at a place, which must be behind the ones asked for before.
  mutating func value(at wanted: Int, in bytes: RawSpan) -> ValueSlice {
    while place < wanted {
      _ = ValueSlice(verified: bytes, at: &position)
      place += 1
    }
    place += 1
    return ValueSlice(verified: bytes, at: &position)
  }
}

/// The order of values: NULL, then numbers, then text, then blobs, as in
/// <https://sqlite.org/datatype3.html#sort_order>, with text and blobs byte by byte.
extension ValueSlice {
  /// Compares two values of the same bytes: negative, zero or positive.
  ///
  /// Integers and reals are compared as numbers, exactly: 1 and 1.0 are equal, 2^53 + 1 is greater than 2^53 as a real.
  func order(against other: ValueSlice, in bytes: RawSpan) -> Int {
    let (mine, theirs) = (sortClass, other.sortClass)
    if mine != theirs { return Int(mine) - Int(theirs) }
    switch (kind, other.kind) {
    case (.integer, .integer):
      return Self.order(integer(in: bytes), other.integer(in: bytes))
    case (.integer, .real):
      return Self.order(integer(in: bytes), against: other.real(in: bytes))
    case (.real, .integer):
      return -Self.order(other.integer(in: bytes), against: real(in: bytes))
    case (.real, .real):
      return Self.order(real(in: bytes), other.real(in: bytes))
    case (.text, _), (.blob, _):
      return bytes.extracting(payloadRange).byteOrder(against: bytes.extracting(other.payloadRange))
    default:
      return 0
    }
  }

  /// A number whose order never contradicts ``order(against:in:)``: a smaller one belongs to a smaller value, equal ones
  /// say nothing.
  ///
  /// Two bits of class, then the double nearest to a number or the first bytes of text or blob. Integers below 2^51
  /// in size have numbers of their own, so sorting by an ordinary integer key hardly ever looks further.
  func orderPrefix(in bytes: RawSpan) -> UInt64 {
    let content: UInt64
    switch kind {
    case .undefined, .null: content = 0
    case .integer: content = Self.orderedBits(Double(integer(in: bytes)))
    case .real: content = Self.orderedBits(real(in: bytes))
    case .text, .blob:
      if count >= 8 {
        content = UInt64(bigEndian: bytes.loadEightBytes(at: payload))
      } else {
        var gathered: UInt64 = 0
        for index in 0..<8 {
          gathered = gathered << 8 | (index < count ? UInt64(bytes.byte(at: payload + index)) : 0)
        }
        content = gathered
      }
    }
    return UInt64(sortClass) << 62 | content >> 2
  }

  private var sortClass: UInt8 {
    switch kind {
    case .undefined, .null: 0
    case .integer, .real: 1
    case .text: 2
    case .blob: 3
    }
  }

  private static func order<Value: Comparable>(_ one: Value, _ other: Value) -> Int {
    one < other ? -1 : (one == other ? 0 : 1)
  }

  /// NaN, which SQLite never stores, comes before all numbers and equals itself: any bytes have an order.
  private static func order(_ one: Double, _ other: Double) -> Int {
    if one.isNaN || other.isNaN { return (one.isNaN ? 0 : 1) - (other.isNaN ? 0 : 1) }
    return one < other ? -1 : (one == other ? 0 : 1)
  }

  /// Compares an integer with a real as numbers: negative, zero or positive. The integer is not rounded to a double, which
  /// would make neighbours equal.
  package static func order(_ integer: Int64, against real: Double) -> Int {
    if real.isNaN || real < -0x1p63 { return 1 }
    if real >= 0x1p63 { return -1 }
    let whole = real.rounded(.towardZero)
    let order = order(integer, Int64(whole))
    if order != 0 { return order }
    return whole < real ? -1 : (whole == real ? 0 : 1)
  }

  /// The bits of a double turned so that they order as the numbers do.
  private static func orderedBits(_ value: Double) -> UInt64 {
    if value.isNaN { return 0 }
    // Adding zero makes -0.0 and 0.0, which are equal, one number.
    let bits = (value + 0).bitPattern
    return bits >> 63 == 0 ? bits | 1 << 63 : ~bits
  }
}
