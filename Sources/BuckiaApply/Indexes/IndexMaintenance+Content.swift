import BuckiaBytes
import SQLiteConnections
import SQLiteSchemas

extension IndexMaintenance {
  /// Rebuilds the indexes that no trigger maintains, when changes were applied with triggers on.
  ///
  /// - Parameter changed: The tables that were written.
  /// - Returns: Remarks for the report.
  /// - Throws: `SQLiteError` when the database fails.
  static func rebuildIndexesWithoutTriggers(changed: [TableName], in session: ApplySession) throws -> [Remark] {
    guard !changed.isEmpty else { return [] }
    let schema = try session.indexSchema()
    guard schema.indexes.contains(where: { $0.content != nil }) else { return [] }
    let reached = Set(changed)
    var remarks: [Remark] = []
    for index in schema.indexes {
      if let remark = try schema.rebuildWithoutTriggers(index, after: reached, on: session.connection) {
        remarks.append(remark)
      }
    }
    return remarks
  }
}
