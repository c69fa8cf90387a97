import BuckiaLedger
import BuckiaSchemaPlans
import SQLiteChangesets
import SQLiteConnections

/// Why a file is not applied: what the report and the ledger say.
package struct Refusal: Error, Sendable {
  /// What becomes of the file.
  package let state: DiffState
  /// The code of the error behind it.
  package let code: BuckiaErrorCode
  /// A sentence for people.
  package let reason: String
  /// Whether the ledger records it: not where only the machine is short of something.
  package let isRecorded: Bool

  /// Makes a refusal.
  package init(_ state: DiffState, code: BuckiaErrorCode, reason: String, isRecorded: Bool = true) {
    self.state = state
    self.code = code
    self.reason = reason
    self.isRecorded = isRecorded
  }
}

/// An error that may be a single file's fault, not the database's or the machine's.
package protocol FileFault: Error {
  /// What to say of the file; nil when it is not to blame.
  var refusal: Refusal? { get }
}

extension Refusal: FileFault {
  package var refusal: Refusal? { self }

  static let equivocation = Refusal(
    .rejected, code: .equivocation,
    reason: "another file with the same sender and id was applied before; its sender made two of them")
  static let untrusted = Refusal(
    .quarantined, code: .untrusted,
    reason: "this database trusts known senders only, and the sender of this file is not one of them")

  static func waiting(seconds: Int64) -> Refusal {
    Refusal(
      .waiting, code: .fromTheFuture,
      reason: "its id lies \(seconds) seconds in the future; it waits until then (is this clock right?)")
  }
}

extension ReplicationError: FileFault {
  package var refusal: Refusal? {
    guard code != .cancelled, code != .transactionLost, code != .deferredViolations else { return nil }
    return Refusal(.rejected, code: code, reason: description)
  }
}

extension ChangesetError: FileFault {
  package var refusal: Refusal? {
    Refusal(.rejected, code: BuckiaErrorCode(rawValue: code.rawValue), reason: description)
  }
}

extension SQLiteError: FileFault {
  package var refusal: Refusal? {
    // The statement is to blame, not the database or the machine: another diff may well succeed.
    guard primaryCode == 1 || isConstraint || isMismatch || isTooBig else { return nil }
    return Refusal(.rejected, code: BuckiaErrorCode(self), reason: description)
  }
}
