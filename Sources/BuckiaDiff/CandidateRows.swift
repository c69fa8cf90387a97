import SQLiteSchemas

/// The rows of a table that may differ: elsewhere they are not looked at.
package enum CandidateRows: Equatable, Sendable {
  /// None.
  case none
  /// Those with a key, one integer, in an interval.
  case within(KeyIntervals)
  /// Those with a key in a list.
  case listed(in: KeyList)
}

/// A TEMP table with keys of another table.
package struct KeyList: Equatable, Sendable {
  /// Its name in the schema `temp`.
  package let name: String
  /// How many columns the key has.
  package let columnCount: Int

  package init(name: String, columnCount: Int) {
    self.name = name
    self.columnCount = columnCount
  }

  /// The column that has a column of the key. No other table has one with this name.
  package static func column(_ place: Int) -> String { "buckia_key_\(place)" }

  /// The list as SQL.
  package var sql: String { "temp.\(SQLText.identifier(name))" }
  /// Its columns as SQL, in the order of the key.
  package var columns: [String] { (0..<columnCount).map(Self.column) }
}
