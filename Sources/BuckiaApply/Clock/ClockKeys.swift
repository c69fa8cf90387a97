import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Where the changes of a diff have the key by which a clock knows their rows.
struct ClockKeys {
  /// The columns of the changes that are the key, in its order.
  let columns: [Int]
  /// The affinity of each; empty where the order of the keys is not that of their bytes.
  private let affinities: [Affinity]

  /// - Parameters:
  ///   - key: The key as the clock has it.
  ///   - places: For each column of the changes its place in the local layout.
  ///   - storesUTF16: Whether the database stores text as UTF-16, whose order is another.
  init(_ key: ClockKey, places: [Int], storesUTF16: Bool) {
    columns = key.places.compactMap { places.firstIndex(of: $0) }
    let hasText = key.affinities.contains { $0 == .text || $0 == .blob }
    affinities = key.sortsByBytes && !(storesUTF16 && hasText) ? key.affinities : []
  }

  /// How many columns the key has.
  var count: Int { columns.count }

  /// Binds the key of the row that a change is about.
  func bind(
    _ change: DecodedChange, _ bytes: RawSpan, to statement: borrowing SQLiteStatement, from start: Int = 0
  ) throws {
    for (index, column) in columns.enumerated() {
      try statement.bind(change.row(column), in: bytes, at: start + index)
    }
  }

  /// The key of the row that a change is about, as a record.
  func record(of change: DecodedChange, _ bytes: RawSpan, into writer: inout ChangesetWriter) {
    writer.removeAll()
    for column in columns { writer.append(change.row(column), of: bytes) }
  }

  /// Whether the order of the table is known for the key of a change: its column stores the value as it is, and sorts
  /// it by its bytes.
  func isOrdered(_ change: DecodedChange, _ bytes: RawSpan) -> Bool {
    guard !affinities.isEmpty else { return false }
    for (index, column) in columns.enumerated() {
      let isOrdered =
        switch change.row(column).kind {
        case .integer: affinities[index] != .text && affinities[index] != .real
        case .text: affinities[index] == .text || affinities[index] == .blob
        case .blob: true
        case .real, .null, .undefined: false
        }
      guard isOrdered else { return false }
    }
    return true
  }

  /// Whether a key comes before that of a change.
  func precedes(_ key: ClockKeyRecord, _ change: DecodedChange, _ bytes: RawSpan) -> Bool {
    key.bytes.withRawSpan { own in
      var position = 0
      for column in columns {
        let mine = ValueSlice(verified: own, at: &position)
        let theirs = change.row(column)
        if mine.kind != theirs.kind { return mine.kind.rank < theirs.kind.rank }
        if mine.kind == .integer {
          let (one, other) = (mine.integer(in: own), theirs.integer(in: bytes))
          if one != other { return one < other }
          continue
        }
        let order = own.extracting(mine.payloadRange).byteOrder(against: bytes.extracting(theirs.payloadRange))
        if order != 0 { return order < 0 }
      }
      return false
    }
  }

  /// Whether the key of a change is the integer after another.
  func follows(_ change: DecodedChange, _ key: ClockKeyRecord, _ bytes: RawSpan) -> Bool {
    guard columns.count == 1, let last = key.integer, change.row(columns[0]).kind == .integer, last < .max else {
      return false
    }
    return change.row(columns[0]).integer(in: bytes) == last + 1
  }
}

/// A key that is remembered: the values of its columns, as a record.
struct ClockKeyRecord {
  var bytes: [UInt8] = []

  /// The key, if it is one integer.
  var integer: Int64? {
    guard bytes.count == 9, bytes[0] == ValueKind.integer.rawValue else { return nil }
    return bytes.withRawSpan { span in
      var position = 0
      return ValueSlice(verified: span, at: &position).integer(in: span)
    }
  }

  /// Binds the values, copying them.
  func bind(to statement: borrowing SQLiteStatement, from start: Int) throws {
    let row = try RowCopy(record: bytes)
    for place in row.values.indices { try row.bind(place, to: statement, at: start + place) }
  }
}

extension ValueKind {
  /// The order of values of different classes (<https://sqlite.org/datatype3.html#sort_order>).
  fileprivate var rank: Int {
    switch self {
    case .undefined, .null: 0
    case .integer, .real: 1
    case .text: 2
    case .blob: 3
    }
  }
}
