import BuckiaBytes
import SQLiteSchemas
import SQLiteConnections

/// What goes wrong only where several people write: keys that each copy gives out by itself, and counts that each keeps.
extension DoctorReport {
  /// Names the tables whose integer keys SQLite gives out, those that others refer to first.
  ///
  /// - Parameter usesRanges: Whether AUTOINCREMENT tables have ranges of their own.
  mutating func lookAtIntegerKeys(of tables: [TableDefinition], usingRanges usesRanges: Bool) {
    let parents = Set(tables.flatMap { $0.foreignKeys.map { TableName($0.parent) } })
    let names = tables.filter(\.givesOutKeys).map(\.name)
    let autoIncrement = Set(tables.filter(\.isAutoIncrement).map(\.name))
    let ordered = names.filter { parents.contains(TableName($0)) } + names.filter { !parents.contains(TableName($0)) }
    warnings +=
      usesRanges
      ? ordered.filter { !autoIncrement.contains($0) }.map { Remark(.noKeyRange, $0) }
      : ordered.map { Remark(.integerKeys, $0) }
  }

  /// Names the columns that triggers keep: counts of what other tables hold, and times of changes.
  mutating func lookAtCounters(_ schema: SchemaReader) throws {
    warnings += try schema.columnsKeptByTriggers().map {
      Remark($0.isTime ? .timesKept : .counters, $0.table, $0.column)
    }
  }
}

extension TableDefinition {
  /// Whether SQLite gives the rows their keys: an INTEGER PRIMARY KEY that is no other table's key
  /// (<https://sqlite.org/autoinc.html>).
  var givesOutKeys: Bool {
    guard primaryKey.count == 1, !isWithoutRowID, module == nil else { return false }
    let key = columns[primaryKey[0]]
    let refers = foreignKeys.contains { $0.columns.contains { ASCIIName.matches($0, key.name) } }
    return ASCIIName.matches(key.declaredType, "INTEGER") && !refers
  }
}
