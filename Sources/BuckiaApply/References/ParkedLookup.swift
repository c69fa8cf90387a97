import BuckiaBytes
import SQLiteChangesets
import SQLiteSchemas

/// The values of a row of a table in the columns of its key, or of a UNIQUE constraint, as the bytes by which parked rows
/// are found: those of the table that have these values, and those that refer to a row with them.
///
/// Values that SQLite compares as equal in these columns, under any affinity, have equal bytes. Some that it does not
/// compare as equal have, too: a row that is found may be another one.
enum ParkedLookup {
  /// The columns of the key and of the UNIQUE constraints of a table.
  static func columns(of table: TableDefinition) -> [[Int]] {
    (table.isKeyedByRowID ? [] : [table.primaryKey]) + table.unique
  }

  /// The bytes that all lookup values of a table begin with.
  static func prefix(of table: TableDefinition) -> [UInt8] { ASCIIName.folded(table.name).utf8 + [0] }

  /// The lookup value of a row; nil if one of its values is NULL or unknown.
  ///
  /// - Parameters:
  ///   - columns: The columns, which may have any order.
  ///   - value: The value of each of them, by its place among them.
  static func value(
    _ columns: [Int], of table: TableDefinition, _ value: (Int) throws -> ChangesetValue?
  ) rethrows -> [UInt8]? {
    var writer = ChangesetWriter()
    writer.append(integer: Int64(columns.count))
    for (place, column) in columns.enumerated().sorted(by: { $0.element < $1.element }) {
      guard let value = try value(place), value != .null else { return nil }
      let definition = table.columns[column]
      writer.append(.text(ASCIIName.folded(definition.name)))
      writer.append(definition.hasKnownCollation ? comparable(value) : .null)
    }
    return prefix(of: table) + writer.bytes
  }

  /// The range of the lookup values of one column of a table.
  static func range(_ column: Int, of table: TableDefinition) -> (from: [UInt8], end: [UInt8]) {
    var writer = ChangesetWriter()
    writer.append(integer: 1)
    writer.append(.text(ASCIIName.folded(table.columns[column].name)))
    let from = prefix(of: table) + writer.bytes
    // No value begins with this byte.
    return (from, from + [.max])
  }

  /// The table that a lookup value is about; nil if there is none any more.
  static func table(of value: [UInt8], in schema: SchemaReader) throws -> TableDefinition? {
    try schema.table(named: TableName(String(decoding: value.prefix { $0 != 0 }, as: UTF8.self)))
  }

  /// The lookup value of what a row refers to by a foreign key.
  ///
  /// - Parameter values: The values by which it refers, in the format of changesets.
  static func value(of check: ForeignKeyCheck, _ values: [UInt8]) throws -> [UInt8]? {
    let values = try ChangesetValue.record(values)
    return value(check.parentColumns, of: check.parent) { values[$0] }
  }

  /// The lookup values of a row.
  ///
  /// - Parameter row: The row, as a record of the table's layout.
  static func values(of row: RowCopy, in table: TableDefinition) -> [[UInt8]] {
    columns(of: table).compactMap { columns in
      value(columns, of: table) { place in
        row.record.withRawSpan { ChangesetValue(row.values[columns[place] + table.columnOffset], in: $0) }
      }
    }
  }

  private static func comparable(_ value: ChangesetValue) -> ChangesetValue {
    switch value {
    case .null, .integer, .blob: return value
    case .real(let number): return Int64(exactly: number).map { .integer($0) } ?? .real(Double(Float(number)))
    case .text(let text):
      let blank: Set<UInt8> = [9, 10, 11, 12, 13, 32]
      let bytes = text.utf8.drop { blank.contains($0) }
      let trimmed = bytes.prefix(bytes.count - bytes.reversed().prefix { blank.contains($0) }.count)
      let number = String(decoding: trimmed, as: UTF8.self)
      if let integer = Int64(number) { return .integer(integer) }
      if let real = Double(number), real.isFinite { return comparable(.real(real)) }
      return .text(ASCIIName.folded(number))
    }
  }
}
