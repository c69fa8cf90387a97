import Buckia
import CBuckia

@c @implementation
package func buckia_apply(
  _ database: OpaquePointer?, _ paths: CStrings, _ path_count: Int, _ options: UnsafePointer<buckia_apply_options>?,
  _ counts: UnsafeMutablePointer<buckia_counts>?, _ json: TextPlace, _ error: ErrorPlace
) -> buckia_status {
  json?.pointee = nil
  return call(error, on: database) { database in
    let paths = try Arguments.texts(paths, path_count, "paths")
    let given = try Arguments.options(options, buckia_apply_options())
    try buckia_counts.clear(counts)
    let options = try ApplyOptions(given, in: database.home)
    let watch = CallWatch(given.progress, given.progress_context, given.cancellation)
    try watch.check()
    let resolver: ConflictResolver? = given.resolve.map { callback in
      let callback = ConflictCallback(callback, given.resolve_context)
      return { conflict in try callback.decide(conflict) }
    }
    do {
      let report = try database.with { manager in
        try manager.processInboundChanges(paths, options: options, resolver: resolver, progress: { try watch.tell($0) })
      }
      buckia_counts.give(report, to: counts)
      try Results.give(report.json(stoppedBy: nil), to: json)
    } catch let interruption as ApplyInterruption {
      buckia_counts.give(interruption.report, to: counts)
      try Results.give(interruption.report.json(stoppedBy: FailureReport(reporting: interruption.cause)), to: json)
      throw interruption
    }
  }
}

extension ApplyOptions {
  fileprivate init(_ given: buckia_apply_options, in home: BuckiaHome) throws {
    guard !(given.keep && given.remove) else { throw Arguments.misuse("keep and remove contradict each other") }
    guard given.memory >= 0 else { throw Arguments.misuse("memory is negative") }
    self.init(
      conflicts: try ConflictPolicies(given.on_conflict, given.policies, given.policy_count),
      schema: try SchemaMode(given.schema), triggers: given.triggers, trust: try given.trust.mode,
      keepsFiles: given.keep, removesNamedFiles: given.remove, isDryRun: given.dry_run)
    adoptsDataset = !given.refuse_new_dataset
    snapshot = try Arguments.optionalText(given.snapshot, "snapshot")
    ignoredColumns = try Arguments.columns(given.ignored, given.ignored_count, "ignored")
    matches = try Arguments.columns(given.matches, given.match_count, "matches")
    copies = try CopyPolicy(given.copies)
    if given.memory > 0 { memoryLimit = Int(given.memory) }
    decryption = try FileDecryption.given(given.identities, given.identity_count, given.passphrase, in: home)
  }
}

extension buckia_counts {
  /// Sets all numbers to 0.
  ///
  /// - Throws: `BuckiaError` with `misuse` when the size is none.
  fileprivate static func clear(_ counts: UnsafeMutablePointer<buckia_counts>?) throws {
    guard let counts else { return }
    guard counts.pointee.size >= MemoryLayout<Int>.size, counts.pointee.size <= 4_096 else {
      throw Arguments.misuse("the size of the counts is \(counts.pointee.size); set it to sizeof (buckia_counts)")
    }
    give(buckia_counts(), to: counts)
  }

  /// Counts the results of files, and their rows.
  fileprivate static func give(_ report: ApplyReport, to place: UnsafeMutablePointer<buckia_counts>?) {
    guard let place else { return }
    var counts = buckia_counts()
    for diff in report.diffs {
      switch diff.state {
      case .applied: counts.applied += 1
      case .alreadyApplied: counts.already_applied += 1
      case .waiting: counts.waiting += 1
      case .held: counts.held += 1
      case .quarantined: counts.quarantined += 1
      case .rejected: counts.rejected += 1
      }
      counts.inserted += Int64(diff.inserted)
      counts.updated += Int64(diff.updated)
      counts.deleted += Int64(diff.deleted)
      counts.conflicts += Int64(diff.conflicts)
    }
    give(counts, to: place)
  }

  /// Copies as much as the program has room for.
  private static func give(_ counts: buckia_counts, to place: UnsafeMutablePointer<buckia_counts>) {
    var counts = counts
    counts.size = place.pointee.size
    let room = min(counts.size, MemoryLayout<buckia_counts>.size)
    // Sound: the program states the size of its structure.
    withUnsafeBytes(of: counts) {
      UnsafeMutableRawBufferPointer(start: place, count: room).copyMemory(
        from: UnsafeRawBufferPointer(rebasing: $0[..<room]))
    }
  }
}
