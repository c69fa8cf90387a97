import SQLiteConnections

/// The numbers of a row's stamps, as the clocks store them: one as an integer, several as a blob of varints.
package enum StampList: Hashable, Sendable {
  case one(Int64)
  case several([Int64])

  /// The numbers; nil for none.
  package init?(_ numbers: [Int64]) {
    guard let first = numbers.first else { return nil }
    self = numbers.count == 1 ? .one(first) : .several(numbers)
  }

  /// The numbers.
  package var numbers: [Int64] {
    switch self {
    case .one(let number): [number]
    case .several(let numbers): numbers
    }
  }

  /// Reads what a statement has found.
  package init?(_ row: borrowing SQLiteStatement, at column: Int) {
    if row.storageClass(at: column) == .integer {
      self = .one(row.integer(at: column))
      return
    }
    var numbers: [Int64] = []
    var number: Int64 = 0
    for byte in row.blobBytes(at: column) {
      number = number << 7 | Int64(byte & 0x7f)
      guard byte < 0x80 else { continue }
      numbers.append(number)
      number = 0
    }
    self.init(numbers)
  }

  /// Binds the list to a parameter.
  package func bind(to statement: borrowing SQLiteStatement, at index: Int) throws(SQLiteError) {
    switch self {
    case .one(let number): try statement.bind(number, at: index)
    case .several(let numbers): try statement.bind(Self.bytes(numbers), at: index)
    }
  }

  private static func bytes(_ numbers: [Int64]) -> [UInt8] {
    var bytes: [UInt8] = []
    for number in numbers {
      var digits = [UInt8(number & 0x7f)]
      var rest = number >> 7
      while rest > 0 {
        digits.append(UInt8(rest & 0x7f) | 0x80)
        rest >>= 7
      }
      bytes += digits.reversed()
    }
    return bytes
  }
}
