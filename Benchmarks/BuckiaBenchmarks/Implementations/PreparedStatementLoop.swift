import SQLiteChangesets
import SQLiteConnections

/// One prepared statement for each kind of change, stepped for each row in one transaction, without conflict handling,
/// checks or a ledger: about the minimum with SQLite's statements.
enum PreparedStatementLoop {
  /// Applies changes of the table `t`, whose key is its first column, in the order of the changeset.
  ///
  /// Every UPDATE must change the same columns.
  static func apply(_ changeset: [UInt8], to connection: borrowing SQLiteConnection) throws {
    let transaction = try SQLiteTransaction(on: connection)
    try changeset.withRawSpan { bytes in
      let updated = try updatedColumns(in: bytes)
      let insert = try connection.prepare("INSERT INTO t VALUES (?, ?, ?, ?, ?)", isPersistent: true)
      let delete = try connection.prepare("DELETE FROM t WHERE k = ?", isPersistent: true)
      let assignments = updated.isEmpty ? ["a"] : updated.map { Self.columns[$0] }
      let update = try connection.prepare(
        "UPDATE t SET \(assignments.map { "\($0) = ?" }.joined(separator: ", ")) WHERE k = ?", isPersistent: true)
      var reader = ChangesetReader()
      while let change = try reader.next(in: bytes) {
        switch change.operation {
        case .insert:
          for index in reader.new.indices { try bind(reader.new[index], of: bytes, to: insert, at: index) }
          try insert.run()
        case .update:
          for (place, column) in updated.enumerated() {
            try bind(reader.new[column], of: bytes, to: update, at: place)
          }
          try bind(reader.old[0], of: bytes, to: update, at: updated.count)
          try update.run()
        case .delete:
          try bind(reader.old[0], of: bytes, to: delete, at: 0)
          try delete.run()
        }
      }
    }
    try transaction.commit()
  }

  private static let columns = ["k", "a", "b", "c", "d"]

  /// The columns that the first UPDATE changes.
  private static func updatedColumns(in bytes: RawSpan) throws -> [Int] {
    var reader = ChangesetReader()
    while let change = try reader.next(in: bytes) {
      if change.operation == .update { return reader.new.indices.filter { reader.new[$0].isDefined } }
    }
    return []
  }

  private static func bind(
    _ value: ValueSlice, of bytes: RawSpan, to statement: borrowing SQLiteStatement, at index: Int
  ) throws {
    // Sound: the bytes stay where they are until the loop ends.
    let payload = bytes.extracting(value.payloadRange).withUnsafeBytes { $0 }
    switch value.kind {
    case .undefined, .null: try statement.bindNull(at: index)
    case .integer: try statement.bind(value.integer(in: bytes), at: index)
    case .real: try statement.bind(value.real(in: bytes), at: index)
    case .text: try statement.bind(textNoCopy: payload, at: index)
    case .blob: try statement.bind(blobNoCopy: payload, at: index)
    }
  }
}
