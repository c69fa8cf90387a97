import SQLiteChangesets
import SQLiteConnections

extension ConflictLog {
  /// Records how a conflict was resolved; at once.
  ///
  /// - Parameters:
  ///   - conflict: The number of the conflict.
  ///   - answer: The answer.
  ///   - name: Who has decided.
  ///   - time: When, in milliseconds since 1970.
  ///   - layout: The columns of the rows.
  ///   - before: The row before, a value for each column; nil when there was none.
  ///   - after: The row afterwards; nil when there is none.
  package func recordResolution(
    of conflict: Int64, _ answer: ConflictAnswer.Kind, by name: String, at time: Int64, _ layout: RecordedRowLayout,
    before: [UInt8]?, after: [UInt8]?
  ) throws {
    func compacted(_ record: [UInt8]?) throws -> [UInt8]? {
      guard let record, record.count > LargeValues.byteLimit else { return record }
      var unlimited: Int?
      return try record.withRawSpan { try LargeValues.compacted($0, room: &unlimited, on: connection) }
    }
    try connection.run(
      cached: """
        INSERT INTO main.buckia_resolution(conflict, answer, decided_by, decided_at, layout, before, after)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
        """, conflict, answer.rawValue, name, time, try number(of: layout), try compacted(before),
      try compacted(after))
  }
}
