import SQLiteConnections

extension StockChangesets {
  /// Applies a copy of a changeset, with an answer to each conflict by its kind and table.
  package static func apply(
    _ changeset: [UInt8], to connection: borrowing SQLiteConnection,
    decide: @escaping (ConflictKind, String) -> Answer
  ) throws(SQLiteError) {
    try apply(changeset, to: connection, answering: { decide($0.kind, $0.table) })
  }

  /// Applies a copy of a changeset.
  package static func apply(
    _ changeset: [UInt8], to connection: borrowing SQLiteConnection, where takes: ((String) -> Bool)? = nil,
    answering answer: @escaping (borrowing Question) -> Answer
  ) throws(SQLiteError) {
    var changeset = changeset
    try changeset.withUnsafeMutableBufferPointer { (bytes) throws(SQLiteError) in
      try apply(UnsafeMutableRawBufferPointer(bytes), to: connection, where: takes, answering: answer)
    }
  }

  /// Applies a copy of a changeset, and returns the rebase buffer.
  package static func resolutions(
    of changeset: [UInt8], appliedTo connection: borrowing SQLiteConnection,
    answering answer: @escaping (borrowing Question) -> Answer
  ) throws(SQLiteError) -> [UInt8] {
    var changeset = changeset
    return try changeset.withUnsafeMutableBufferPointer { (bytes) throws(SQLiteError) in
      try resolutions(of: UnsafeMutableRawBufferPointer(bytes), appliedTo: connection, answering: answer)
    }
  }
}
