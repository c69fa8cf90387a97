import SQLiteChangesets
import SQLiteConnections

/// The table `buckia_conflict_detail`: what is known of a few conflicts beyond their record.
///
/// Most conflicts have none of it, and can come by the million: so it stands in a table of its own.
enum ConflictDetails {
  static let definition = """
    CREATE TABLE main.buckia_conflict_detail(
      conflict INTEGER PRIMARY KEY,
      written BLOB,
      rule INTEGER,
      others BLOB
    );
    """

  /// Adds the details of the record that was inserted last.
  static let insertion = "INSERT INTO main.buckia_conflict_detail VALUES (last_insert_rowid(), ?1, ?2, ?3)"

  /// Adds to records what else is known of them, and how they were resolved.
  final class Reader {
    private let connection: SQLiteConnection

    init(on connection: borrowing SQLiteConnection) { self.connection = SQLiteConnection(sharing: connection) }

    func add(to record: inout ConflictRecord) throws {
      let query = try connection.cached("SELECT rule, others FROM main.buckia_conflict_detail WHERE conflict = ?1")
      try query.statement.bind(record.id, at: 0)
      if try query.statement.step() {
        record.rule = query.statement.isNull(at: 0) ? nil : query.statement.integer(at: 0)
        record.others = try Self.keys(query.statement.blob(at: 1), record.key.map(\.column))
      }
      query.statement.reset()
      record.resolution = try ResolutionRecord.last(of: record.id, on: connection)
    }

    /// Takes keys apart that stand one after the other.
    private static func keys(_ record: [UInt8], _ columns: [String]) throws -> [[ConflictRecord.Cell]] {
      let values = try ChangesetValue.record(record)
      guard !columns.isEmpty else { return [] }
      return stride(from: 0, to: values.count - columns.count + 1, by: columns.count).map { start in
        columns.enumerated().map { ($1, values[start + $0]) }
      }
    }
  }
}
