import BuckiaBytes
import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// The result for a diff whose held parts have been tried.
package struct ReleasedDiff: Sendable {
  /// The diff's ledger entry.
  let entry: Int64
  /// The outcome of the diff.
  private(set) var outcome: DiffOutcome
  /// True if any part of it has been applied.
  private(set) var isApplied = false
  private var counts = ApplyCounts()
  /// The parts that could not be applied, although there is a place for them.
  private(set) var failures: [Warning] = []

  init(_ part: HeldPart, from senders: KnownSenders) {
    entry = part.entry
    outcome = DiffOutcome(id: part.diff, path: part.file, sender: senders.shown(part.senderKey), state: .applied)
    outcome.senderKey = LedgerEntries.verifiedKey(of: part.senderKey)
  }

  /// Adds the result of applying a part.
  mutating func add(_ part: ApplyCounts, changedTables: [String], warnings: [Warning]) {
    isApplied = true
    counts += part
    outcome.set(counts)
    outcome.changedTables += changedTables
    outcome.warnings += warnings
  }

  /// Adds that a part cannot be applied, although there is a place for it.
  mutating func add(_ refusal: Refusal, of part: HeldPart) {
    outcome.code = refusal.code
    failures.append(Warning(.heldNotApplied, part.file, part.table, EscapedText.line(refusal.reason)))
  }

  /// The warnings about this diff in the report of the file before which it was released.
  var warnings: [Warning] {
    (isApplied ? [Warning(.heldAppliedFirst, outcome.path)] : []) + failures
  }

  /// Sets the parts that stay held, after all have been tried.
  mutating func finish(holding held: [HeldSummary]) {
    if !held.isEmpty {
      outcome.state = .held
      outcome.heldParts = held.reduce(0) { $0 + $1.partCount }
    }
    var reasons = isApplied ? ["what was kept of it has found its place"] : []
    reasons += failures.map(\.description)
    if !held.isEmpty { reasons.append(HeldSummary.reason(held)) }
    outcome.reason = EscapedText.line(reasons.joined(separator: "; "))
  }
}
