import BuckiaSchemaPlans
import SQLiteConnections
import SQLiteSchemas

extension DatabaseManager {
  /// Says what of the database would replicate, what would not and why, and what is worth knowing.
  ///
  /// - Throws: `BuckiaError` when there is no such database, or it cannot be read.
  public func examine() throws -> DoctorReport {
    try withReader { connection in
      let transaction = try SQLiteTransaction(.deferred, on: connection)
      let schema = try SchemaReader(connection)
      var examination = Examination()
      for entry in schema.entries {
        if Replicability.isOwn(entry.name) || schema.isInside(entry) { continue }
        if let reason = Replicability.refusal(of: entry) {
          examination.skip(entry.name.text, reason)
          continue
        }
        try examination.look(at: schema.definition(of: entry), createdBy: entry.sql, on: connection)
      }
      try examination.lookAtTriggers(connection)
      try examination.lookAtWhatIsKept(connection)
      try examination.lookForDamage(connection)
      transaction.rollback()
      return DoctorReport(
        replicates: examination.replicates, skipped: examination.skipped, warnings: examination.warnings)
    }
  }
}
