import SQLiteSchemas

/// The table and the columns of the rows in conflict records. Made once for a table.
package final class RecordedRowLayout {
  /// The table.
  package let table: TableName
  /// The names of the columns, in the order of a row's values.
  package let columns: [String]
  /// The places of the key among them.
  package let key: [Int]
  /// The layout's number in the database, once it is known, and the rewind count of the log at that time.
  var known: (number: Int64, rewinds: Int)?

  /// Makes a layout.
  package init(table: TableName, columns: [String], key: [Int]) {
    self.table = table
    self.columns = columns
    self.key = key
  }
}
