import BuckiaKSUID
import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Changes that may be applied: their sender is trusted, their id has its time, and they are not in the ledger yet.
///
/// Only ``ReceiverGate`` makes them, and ``ApplyPlan`` takes nothing else.
package struct AdmittedChanges {
  let changes: IncomingChanges

  fileprivate init(_ changes: IncomingChanges) { self.changes = changes }

  /// Changes that stand for these in what follows: a part of them, or several admitted ones in one.
  func replaced(by changes: IncomingChanges) -> AdmittedChanges { AdmittedChanges(changes) }

  /// Changes of a diff that was admitted before, as the database has held them since.
  init(held part: HeldPart, on connection: borrowing SQLiteConnection) throws {
    changes = try IncomingChanges(
      key: LedgerKey(sender: "", id: part.diff, digest: [], isRaw: true), file: "", definitions: [part.definition],
      changeset: part.changeset(on: connection))
  }
}

/// Decides whether verified changes may be applied to a database now. There is no other way to ``AdmittedChanges``.
package struct ReceiverGate: Sendable {
  /// What the gate says of some changes.
  package enum Admission {
    /// They may be applied.
    case admitted(AdmittedChanges)
    /// They were applied, or are held, already.
    case alreadyRecorded
    /// They may not be applied, or not yet.
    case refused(Refusal)
  }

  /// Who is trusted.
  package let trust: TrustMode

  private let hasLedger: Bool

  /// Makes the gate of a database. One without ledger tables has applied nothing, and trusts any sender.
  ///
  /// - Throws: `SQLiteError`; `LedgerError` for a newer ledger.
  package init(on connection: borrowing SQLiteConnection) throws {
    hasLedger = try Ledger.exists(on: connection)
    trust = hasLedger ? try LedgerSettings.trust(on: connection) : .any
  }

  /// Decides about changes whose digests, structure and signature have been verified.
  ///
  /// - Parameters:
  ///   - changes: The changes.
  ///   - time: The present time, in milliseconds since 1970.
  ///   - connection: The database, in the transaction that will apply the changes.
  /// - Throws: `SQLiteError` when the ledger cannot be read.
  package func admit(
    _ changes: IncomingChanges, at time: Int64, on connection: borrowing SQLiteConnection
  ) throws -> Admission {
    switch hasLedger ? try LedgerEntries.standing(of: changes.key, on: connection) : .unknown {
    case .recorded(.waiting), .unknown: break
    case .recorded: return .alreadyRecorded
    case .equivocation: return .refused(.equivocation)
    }
    guard trust == .any else { return .refused(.untrusted) }
    let seconds = time / 1_000
    if let id = changes.key.id, id.unixSeconds > seconds + KSUIDClock.tolerance {
      return .refused(.waiting(seconds: id.unixSeconds - seconds))
    }
    return .admitted(AdmittedChanges(changes))
  }
}
