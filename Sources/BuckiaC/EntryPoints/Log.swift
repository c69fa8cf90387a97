import Buckia
import BuckiaBytes
import CBuckia

@c @implementation
package func buckia_log(
  _ database: OpaquePointer?, _ newest: Int64, _ json: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?,
  _ error: UnsafeMutablePointer<OpaquePointer?>?
) -> buckia_status {
  json?.pointee = nil
  return call(error) {
    let database: Database = try Handle.required(database, "database")
    let entries = try database.with { manager -> [LedgerEntry] in
      guard let count = limit(newest) else { return try manager.log() }
      return try count == 0 ? [] : manager.log(newest: count).entries
    }
    try Results.give(["version": 1, "entries": .array(entries.map(\.json))], to: json)
  }
}

@c @implementation
package func buckia_each_log_entry(
  _ database: OpaquePointer?, _ item: buckia_item_callback?, _ context: UnsafeMutableRawPointer?,
  _ error: UnsafeMutablePointer<OpaquePointer?>?
) -> buckia_status {
  call(error) {
    let database: Database = try Handle.required(database, "database")
    guard let item else { throw Arguments.misuse("item is NULL") }
    try database.with { manager in
      try manager.forEachLogEntry { try Results.give($0.json, to: item, context) }
    }
  }
}

@c @implementation
package func buckia_undo(
  _ database: OpaquePointer?, _ diffs: UnsafePointer<UnsafePointer<CChar>?>?, _ diff_count: Int,
  _ options: UnsafePointer<buckia_undo_options>?, _ json: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?,
  _ error: UnsafeMutablePointer<OpaquePointer?>?
) -> buckia_status {
  json?.pointee = nil
  return call(error) {
    let database: Database = try Handle.required(database, "database")
    let given = try Arguments.options(options, buckia_undo_options())
    let diffs = try Arguments.texts(diffs, diff_count, "diffs")
    let senders = try Arguments.texts(given.senders, given.sender_count, "senders")
    guard !diffs.isEmpty || !senders.isEmpty else { throw Arguments.misuse("it is not said what to take back") }
    let options = UndoOptions(
      conflicts: ConflictPolicies(try ConflictPolicy(given.on_conflict)), isDryRun: given.dry_run)
    let subjects = try diffs.map { .diff($0) } + UndoSubject.senders(named: senders, in: database.home)
    let report = try database.with { try $0.undo(subjects, options: options) }
    try Results.give(report.json, to: json)
  }
}
