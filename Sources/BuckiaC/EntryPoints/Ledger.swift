import Buckia
import CBuckia

@c @implementation
package func buckia_log(
  _ database: OpaquePointer?, _ newest: Int64, _ json: TextPlace, _ error: ErrorPlace
) -> buckia_status {
  call(error, on: database, json) { database in
    let entries = try database.with { manager -> [LedgerEntry] in
      guard let count = limit(newest) else { return try manager.log() }
      return try count == 0 ? [] : manager.log(newest: count).entries
    }
    return ["version": 1, "entries": .array(entries.map(\.json))]
  }
}

@c @implementation
package func buckia_each_log_entry(
  _ database: OpaquePointer?, _ item: buckia_item_callback?, _ context: UnsafeMutableRawPointer?, _ error: ErrorPlace
) -> buckia_status {
  call(error, on: database) { database in
    guard let item else { throw Arguments.misuse("item is NULL") }
    try database.with { manager in
      try manager.forEachLogEntry { try Results.give($0.json, to: item, context) }
    }
  }
}

@c @implementation
package func buckia_undo(
  _ database: OpaquePointer?, _ diffs: CStrings, _ diff_count: Int, _ options: UnsafePointer<buckia_undo_options>?,
  _ json: TextPlace, _ error: ErrorPlace
) -> buckia_status {
  call(error, on: database, json) { database in
    let given = try Arguments.options(options, buckia_undo_options())
    let diffs = try Arguments.texts(diffs, diff_count, "diffs")
    let senders = try Arguments.texts(given.senders, given.sender_count, "senders")
    guard !diffs.isEmpty || !senders.isEmpty else { throw Arguments.misuse("it is not said what to take back") }
    let options = UndoOptions(
      conflicts: ConflictPolicies(try ConflictPolicy(given.on_conflict)), isDryRun: given.dry_run)
    let subjects = try diffs.map { .diff($0) } + UndoSubject.senders(named: senders, in: database.home)
    let watch = CallWatch(given.progress, given.progress_context, given.cancellation)
    try watch.check()
    return try database.with(watch) { try $0.undo(subjects, options: options) }.json
  }
}

@c @implementation
package func buckia_conflicts(
  _ database: OpaquePointer?, _ filter: UnsafePointer<buckia_conflict_filter>?, _ newest: Int64, _ json: TextPlace,
  _ error: ErrorPlace
) -> buckia_status {
  call(error, on: database, json) { database in
    let filter = try ConflictFilter(filter)
    return try database.with { manager in
      let counts = try manager.conflictCounts(matching: filter)
      var items: [JSONValue] = []
      if newest != 0 {
        try manager.forEachConflict(matching: filter, newest: limit(newest)) { items.append($0.json) }
      }
      return ["version": 1, "summary": counts.json, "conflicts": .array(items)]
    }
  }
}

@c @implementation
package func buckia_each_conflict(
  _ database: OpaquePointer?, _ filter: UnsafePointer<buckia_conflict_filter>?, _ newest: Int64,
  _ item: buckia_item_callback?, _ context: UnsafeMutableRawPointer?, _ error: ErrorPlace
) -> buckia_status {
  call(error, on: database) { database in
    guard let item else { throw Arguments.misuse("item is NULL") }
    let filter = try ConflictFilter(filter)
    guard newest != 0 else { return }
    try database.with { manager in
      try manager.forEachConflict(matching: filter, newest: limit(newest)) {
        try Results.give($0.json, to: item, context)
      }
    }
  }
}

/// The maximum number of items; nil for all.
func limit(_ newest: Int64) -> Int? { newest < 0 ? nil : Int(clamping: newest) }

@c @implementation
package func buckia_resolve(
  _ database: OpaquePointer?, _ conflicts: UnsafePointer<Int64>?, _ conflict_count: Int,
  _ choice: buckia_version_choice, _ options: UnsafePointer<buckia_resolve_options>?, _ json: TextPlace,
  _ error: ErrorPlace
) -> buckia_status {
  call(error, on: database, json) { database in
    let conflicts = Array(try Arguments.array(conflicts, conflict_count, "conflicts"))
    let (answer, options, watch) = try decision(choice, options)
    return try database.with(watch) { try $0.resolve(conflicts, taking: answer, options: options) }.json
  }
}

@c @implementation
package func buckia_resolve_all(
  _ database: OpaquePointer?, _ filter: UnsafePointer<buckia_conflict_filter>?, _ choice: buckia_version_choice,
  _ options: UnsafePointer<buckia_resolve_options>?, _ json: TextPlace, _ error: ErrorPlace
) -> buckia_status {
  call(error, on: database, json) { database in
    let filter = try ConflictFilter(filter)
    let (answer, options, watch) = try decision(choice, options)
    return try database.with(watch) { try $0.resolve(matching: filter, taking: answer, options: options) }.json
  }
}

/// The decision of a call.
private func decision(
  _ choice: buckia_version_choice, _ options: UnsafePointer<buckia_resolve_options>?
) throws -> (ConflictAnswer, ResolveOptions, CallWatch) {
  let given = try Arguments.options(options, buckia_resolve_options())
  let values = try ChangesetValue.values(given.values, given.value_count)
  guard values.isEmpty == (choice != BUCKIA_RESOLVE_VALUES) else {
    throw Arguments.misuse("values belong to BUCKIA_RESOLVE_VALUES, and to that alone")
  }
  let answer: ConflictAnswer =
    switch choice {
    case BUCKIA_RESOLVE_LOCAL: .local
    case BUCKIA_RESOLVE_INCOMING: .incoming
    case BUCKIA_RESOLVE_VALUES: .values(values)
    case BUCKIA_RESOLVE_BOTH: .both
    case BUCKIA_RESOLVE_SAME: .same
    default: throw Arguments.misuse("\(choice.rawValue) is no choice")
    }
  let options = ResolveOptions(
    decidedBy: try Arguments.optionalText(given.decided_by, "decided_by") ?? "", isForced: given.force,
    remembers: given.remember, isDryRun: given.dry_run)
  let watch = CallWatch(given.progress, given.progress_context, given.cancellation)
  try watch.check()
  return (answer, options, watch)
}

@c @implementation
package func buckia_rules(_ database: OpaquePointer?, _ json: TextPlace, _ error: ErrorPlace) -> buckia_status {
  call(error, on: database, json) { database in
    let rules = try database.with { try $0.conflictRules() }
    return ["version": 1, "rules": .array(rules.map(\.json))]
  }
}

@c @implementation
package func buckia_forget_rule(_ database: OpaquePointer?, _ rule: Int64, _ error: ErrorPlace) -> buckia_status {
  call(error, on: database) { database in
    try database.with { try $0.forgetConflictRule(rule) }
  }
}
