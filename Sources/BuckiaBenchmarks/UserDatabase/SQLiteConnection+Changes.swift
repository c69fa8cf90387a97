import SQLiteChangesets
import SQLiteConnections

extension SQLiteConnection {
  /// Opens a copy to write to, without triggers, foreign-key actions and waiting for the disk.
  static func withoutSideEffects(opening database: String) throws(SQLiteError) -> SQLiteConnection {
    let connection = try SQLiteConnection(opening: database, as: .readWrite)
    try connection.execute("PRAGMA foreign_keys = OFF; PRAGMA synchronous = OFF")
    try connection.enableTriggers(false)
    return connection
  }
}

extension ChangesetValue {
  /// Copies a value of a row.
  init(_ row: borrowing SQLiteStatement, at column: Int) {
    switch row.storageClass(at: column) {
    case .null: self = .null
    case .integer: self = .integer(row.integer(at: column))
    case .real: self = .real(row.real(at: column))
    case .text: self = .text(row.text(at: column) ?? "")
    case .blob: self = .blob(row.blob(at: column))
    }
  }
}

extension SQLiteStatement {
  /// Binds values to consecutive parameters.
  func bind(_ values: [ChangesetValue], from start: Int) throws(SQLiteError) {
    for (offset, value) in values.enumerated() {
      switch value {
      case .null: try bindNull(at: start + offset)
      case .integer(let number): try bind(number, at: start + offset)
      case .real(let number): try bind(number, at: start + offset)
      case .text(let text): try bind(text, at: start + offset)
      case .blob(let bytes): try bind(bytes, at: start + offset)
      }
    }
  }
}
