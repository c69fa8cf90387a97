import SQLiteSchemas
import SQLiteChangesets
import SQLiteConnections

/// Gathers the rows that refer, by one foreign key, to others that are not there, or are others than before.
struct BrokenRows {
  /// A row that refers to another.
  struct Row {
    /// The values of its key, in the format of changesets.
    let key: [UInt8]
    /// The values by which it refers to the other row.
    let values: [UInt8]
    /// True if the changes have taken away a row with these values.
    let isTaken: Bool
    /// What tells it apart.
    fileprivate let number: UInt64
  }

  let check: ForeignKeyCheck
  /// True while the rows that are added refer to values that the changes have taken away.
  var areTaken = false
  /// The rows that refer to nothing, each once.
  private(set) var missing: [Row] = []
  /// The rows that refer to another row than before.
  private(set) var replaced: [Row] = []
  /// True while the rows that are added refer to another row than before.
  var areReplaced = false
  private var numbers: Set<UInt64> = []
  private var replacedNumbers: Set<UInt64> = []

  init(_ check: ForeignKeyCheck) { self.check = check }

  /// Adds the row that a statement of the check stands on.
  mutating func add(_ prepared: PreparedStatement) {
    let keys = check.child.keyIndexes.count
    let references = check.childColumns.count
    let number = RowNumber.read(prepared.statement, from: keys + references)
    guard areReplaced ? replacedNumbers.insert(number).inserted : numbers.insert(number).inserted else { return }
    func record(_ columns: Range<Int>) -> [UInt8] {
      var writer = ChangesetWriter()
      for column in columns { writer.append(column: column, of: prepared.statement) }
      return writer.bytes
    }
    let row = Row(
      key: record(0..<keys), values: record(keys..<(keys + references)), isTaken: areTaken, number: number)
    if areReplaced { replaced.append(row) } else { missing.append(row) }
  }
}

extension ForeignKeyCheck {
  /// The row that some values refer to, for people.
  func name(ofParent values: [UInt8]) throws -> RowName {
    RowName(
      table: parent.name, columns: parentColumnNames, values: try ChangesetValue.record(values))
  }

  /// The row of the child with a key, for people.
  func name(ofChild key: [UInt8]) throws -> RowName {
    RowName(
      table: child.name, columns: child.keyIndexes.map { child.changesetColumns[$0] },
      values: try ChangesetValue.record(key))
  }
}
