import BuckiaBytes
import SQLiteChangesets
import SQLiteConnections

/// The operation of one diff on rows of one table: the columns that it set, or an insertion or deletion.
///
/// A row version is recorded once, in `buckia_row_version`, and the clocks of all rows to which the diff did this refer to it by
/// its number.
package struct RowVersion: Sendable, Equatable {
  /// Its number.
  package let number: Int64
  /// The diff that made the change first, however often it was passed on.
  package let diff: KSUID
  /// The operation.
  package let operation: ChangeOperation
  /// The columns that were set; none for a DELETE.
  package let columns: ColumnSet
}

/// The row versions of one row: the diffs that wrote its columns last, and the one that inserted or deleted it.
///
/// They summarize all changes of the row that have arrived, in whatever order: a column belongs to the greatest diff
/// that has set it, a row was inserted by the greatest INSERT, and deleted by the greatest DELETE.
package struct VersionVector: Sendable {
  /// The row versions that count, the greatest diff first.
  package private(set) var rowVersions: [RowVersion] = []

  /// Begins with none: the row is as all began with it.
  package init() {}

  /// Creates the row versions of a row from recorded ones.
  package init(_ rowVersions: [RowVersion]) {
    self.rowVersions = rowVersions.sorted { $0.diff > $1.diff }
  }

  /// The diff that has inserted the row; nil for none.
  package var insertion: KSUID? { rowVersions.first { $0.operation == .insert }?.diff }
  /// The diff that has deleted the row; nil for none.
  package var deletion: KSUID? { rowVersions.first { $0.operation == .delete }?.diff }

  /// The diff that has set a column; nil for none.
  package func setter(of position: Int) -> KSUID? { rowVersions.first { $0.columns.contains(position) }?.diff }

  /// Adds the row version of another diff, and removes row versions that no longer count.
  package mutating func add(_ rowVersion: RowVersion) {
    guard rowVersion.operation != .delete else {
      // Columns that were set later are kept elsewhere until the row is there again.
      rowVersions = [
        deletion.map { $0 > rowVersion.diff } == true
          ? rowVersions.first { $0.operation == .delete } ?? rowVersion : rowVersion
      ]
      return
    }
    rowVersions.removeAll { $0.operation == .delete || $0.number == rowVersion.number }
    let place = rowVersions.firstIndex { $0.diff < rowVersion.diff } ?? rowVersions.endIndex
    rowVersions.insert(rowVersion, at: place)
    var covered = ColumnSet()
    var isInserted = false
    rowVersions.removeAll { rowVersion in
      let isInsertion = rowVersion.operation == .insert && !isInserted
      if isInsertion { isInserted = true }
      if !isInsertion, covered.isSuperset(of: rowVersion.columns) { return true }
      covered.formUnion(rowVersion.columns)
      return false
    }
  }
}

/// The numbers of a row's row versions, as the clocks store them: one as an integer, several as a blob of varints.
package enum RowVersionList: Hashable, Sendable {
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

  /// Reads a row version from the row of a statement.
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

/// A set of columns by their positions in a row clock.
package struct ColumnSet: Hashable, Sendable {
  /// A bit for each position, the first in the lowest bit of the first byte, without zero bytes at the end, because
  /// equal sets must have equal bytes.
  package private(set) var bytes: [UInt8]

  /// Creates an empty set.
  package init() { bytes = [] }

  /// Reads a set as the table `buckia_row_version` has it.
  package init(bytes: [UInt8]) {
    self.bytes = bytes
    trim()
  }

  /// True if no column is in it.
  package var isEmpty: Bool { bytes.isEmpty }

  /// Adds a column.
  package mutating func insert(_ position: Int) {
    while bytes.count <= position / 8 { bytes.append(0) }
    bytes[position / 8] |= 1 << UInt8(position % 8)
  }

  /// True if a column is in it.
  package func contains(_ position: Int) -> Bool {
    position / 8 < bytes.count && bytes[position / 8] >> UInt8(position % 8) & 1 != 0
  }

  /// True if the set contains all columns of another set.
  package func isSuperset(of other: ColumnSet) -> Bool {
    other.bytes.count <= bytes.count && zip(other.bytes, bytes).allSatisfy { $0 & ~$1 == 0 }
  }

  /// Adds all columns of another set.
  package mutating func formUnion(_ other: ColumnSet) {
    while bytes.count < other.bytes.count { bytes.append(0) }
    for (index, byte) in other.bytes.enumerated() { bytes[index] |= byte }
  }

  /// The positions, ascending.
  package var positions: [Int] { (0..<8 * bytes.count).filter { contains($0) } }

  private mutating func trim() {
    while bytes.last == 0 { bytes.removeLast() }
  }
}
