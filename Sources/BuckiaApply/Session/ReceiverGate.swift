import BuckiaBytes
import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Changes that may be applied: their sender is trusted, their id has its time, and they are not in the ledger yet.
///
/// ``ApplyPlan`` takes nothing else. Only ``ReceiverGate`` creates them; other stages derive others from them.
package struct AdmittedChanges {
  let changes: IncomingChanges

  fileprivate init(_ changes: IncomingChanges) { self.changes = changes }

  /// Admitted changes that a stage has derived: a part of the changes, several files in one, or the same changes in the
  /// keys and columns of this database.
  func replaced(by changes: IncomingChanges) -> AdmittedChanges { AdmittedChanges(changes) }
}

/// Decides if verified changes may be applied to a database now. There is no other way to ``AdmittedChanges``.
package struct ReceiverGate: Sendable {
  /// The decision of the gate.
  package enum Admission {
    /// They may be applied.
    case admitted(AdmittedChanges)
    /// They were applied, or are held, already.
    case alreadyRecorded
    /// All of the changes were applied with the snapshot with this id.
    case contained(in: KSUID)
    /// They may not be applied, or not yet.
    case refused(Refusal)
  }

  /// The trust mode.
  package let trust: TrustMode

  private let senders: KnownSenders
  private let hasLedger: Bool
  /// True if a database that belongs to no dataset takes the diffs of one, and belongs to it then.
  private let adoptsDataset: Bool

  /// Creates the gate of a database. A database without ledger tables has applied nothing, and trusts any sender.
  ///
  /// - Parameters:
  ///   - connection: The database.
  ///   - senders: The known senders.
  ///   - trust: The trust mode; nil for that of the database.
  ///   - adoptsDataset: True if a database that belongs to no dataset takes the diffs of one, and belongs to it then.
  /// - Throws: `SQLiteError`; `LedgerError` for a newer ledger.
  package init(
    on connection: borrowing SQLiteConnection, senders: KnownSenders, trust: TrustMode? = nil,
    adoptsDataset: Bool = false
  ) throws {
    self.senders = senders
    self.adoptsDataset = adoptsDataset
    hasLedger = try Ledger.exists(on: connection)
    self.trust = try trust ?? (hasLedger ? LedgerSettings.trust(on: connection) : .any)
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
    if let snapshot = try snapshot(after: changes, on: connection) { return .contained(in: snapshot) }
    if let refusal = refusal(of: changes.key.sender, isRaw: changes.key.isRaw) { return .refused(refusal) }
    if let refusal = try refusal(ofDataset: changes.dataset, on: connection) { return .refused(refusal) }
    let seconds = time / 1_000
    if let id = changes.key.id, id.unixSeconds > seconds + KSUIDClock.tolerance {
      return .refused(.waiting(until: id.unixSeconds, seconds))
    }
    if let refusal = try refusal(ofAncient: changes, on: connection) { return .refused(refusal) }
    let changes = try believed(changes, on: connection)
    if let refusal = refusal(ofClaim: changes) { return .refused(refusal) }
    guard let place = changes.place else { return .admitted(AdmittedChanges(changes)) }
    return try admit(changes, at: place, on: connection)
  }

  /// True if diff files of a sender may be applied as far as that depends on the sender.
  ///
  /// - Parameter sender: The verified key in hex, as the ledger has it; empty for unsigned diffs.
  package func takes(from sender: String) -> Bool { refusal(of: sender, isRaw: false) == nil }

  /// Decides about a part of a diff that was admitted before, and that the database has held since.
  ///
  /// - Throws: `SQLiteError`; as ``IncomingChanges``.
  func admit(held part: HeldPart, on connection: borrowing SQLiteConnection) throws -> Admission {
    if let refusal = refusal(ofHeld: part) { return .refused(refusal) }
    return .admitted(
      AdmittedChanges(
        try IncomingChanges(
          key: LedgerKey(sender: "", id: part.diff, digest: [], isRaw: true), file: "", definitions: [part.definition],
          changeset: part.changeset(on: connection))))
  }

  /// The reason not to apply a held part now; nil if it may be applied.
  func refusal(ofHeld part: HeldPart) -> Refusal? {
    refusal(of: part.senderKey, isRaw: part.isRaw, isHeld: true)
  }

  /// Admits changes that undo a diff of this database's ledger.
  static func admit(_ changes: IncomingChanges, takingBack diff: AppliedDiff) -> AdmittedChanges {
    AdmittedChanges(changes)
  }

  /// The reason to refuse a sender now; nil to accept.
  ///
  /// - Parameters:
  ///   - sender: The verified key in hex, as the ledger has it.
  ///   - isRaw: True if the changes came as a raw changeset.
  ///   - isHeld: True if the diff was taken before, and the database has held this part of it since.
  private func refusal(of sender: String, isRaw: Bool, isHeld: Bool = false) -> Refusal? {
    switch senders.standing(of: sender) {
    // That a key has ended counts whatever is trusted otherwise.
    case .removed(let name): .removedSender(name)
    // When the diff was taken, the key counted.
    case .replaced(let name): isHeld ? nil : .replacedKey(of: name)
    case .trusted, .own: nil
    case .seen(let name, let fingerprint):
      trust == .any ? nil : .unconfirmed(name, fingerprint: fingerprint)
    case .stranger:
      if trust == .any || sender == LedgerEntries.ownSender {
        nil
      } else {
        isRaw ? .rawOfNobody : sender.isEmpty ? .unsigned : .stranger(key: sender)
      }
    }
  }

  /// The reason to refuse a key that signs as a trusted contact's replica; nil if it may. It is probably the contact's new key. Until a
  /// person has confirmed that, its snapshot would be taken beside the contact's rows instead of in their place.
  private func refusal(ofClaim changes: IncomingChanges) -> Refusal? {
    let key = changes.key.sender
    guard !key.isEmpty, let first = changes.claims.firstSigner else { return nil }
    switch senders.standing(of: key) {
    case .stranger, .seen: break
    case .trusted, .own, .removed, .replaced: return nil
    }
    switch senders.standing(of: first) {
    case .trusted(let name), .replaced(let name): return .unconfirmedKey(key, of: name)
    case .stranger, .seen, .own, .removed: return nil
    }
  }

  /// The reason to refuse changes of another dataset; nil if they belong to this one, or to none.
  ///
  /// Looked up each time: a file that was applied just now may have been the first of its dataset.
  private func refusal(ofDataset dataset: [UInt8]?, on connection: borrowing SQLiteConnection) throws -> Refusal? {
    guard let dataset else { return nil }
    guard let own = hasLedger ? try LedgerSettings.dataset(on: connection) : nil else {
      return adoptsDataset ? nil : .dataset(dataset, insteadOf: nil)
    }
    return own == dataset ? nil : .dataset(dataset, insteadOf: own)
  }

  /// The changes under the replica that the sender is believed to be.
  private func believed(
    _ changes: IncomingChanges, on connection: borrowing SQLiteConnection
  ) throws -> IncomingChanges {
    // The claims of an unsigned diff outside of streams are ignored.
    let counts =
      !changes.key.sender.isEmpty || changes.place != nil || !changes.claims.acknowledgements.isEmpty
    guard hasLedger, counts, let claimed = changes.claims.replica else { return changes }
    var changes = changes
    (changes.claims.replica, changes.claims.firstSigner) = try ReplicaSigners.believed(
      claimed, from: changes.key.sender, senders, on: connection)
    return changes
  }

  /// Decides about acceptable changes by their stream: a diff comes after those that it builds on.
  private func admit(
    _ changes: IncomingChanges, at place: StreamPlace, on connection: borrowing SQLiteConnection
  ) throws -> Admission {
    guard hasLedger else {
      guard let follows = place.follows, !place.isSnapshot else { return .admitted(AdmittedChanges(changes)) }
      return .refused(.missing(follows.id, sequence: place.sequence - 1))
    }
    return switch try StreamEntries.standing(of: place, changes.key, on: connection) {
    case .next:
      try isBehind(changes, at: place, on: connection)
        ? .refused(.behindDeletions) : .admitted(AdmittedChanges(changes))
    case .contained(let snapshot): .contained(in: snapshot)
    case .missing(let id, let sequence):
      .refused(
        .missing(
          id, sequence: sequence, wasRefused: try RefusedFiles.contain(id, of: changes.key.sender, on: connection)))
    case .fork(let other): .refused(.fork(from: other))
    case .otherPredecessor(let id): .refused(.otherPredecessor(id))
    case .ended(let snapshot): .refused(.ended(by: snapshot))
    }
  }

  /// The snapshot that contains changes which were signed with a replaced key and were still on their way; nil if none
  /// was applied.
  private func snapshot(after changes: IncomingChanges, on connection: borrowing SQLiteConnection) throws -> KSUID? {
    let keys = senders.otherKeys(of: changes.key.sender)
    guard hasLedger, !keys.isEmpty, let place = changes.place, let id = changes.key.id,
      let snapshot = try StreamEntries.snapshot(replacing: place.stream, signedBy: keys, on: connection), id < snapshot
    else { return nil }
    return snapshot
  }

  // MARK: Deletions that are forgotten

  /// The reason to refuse changes outside of streams: they may contain rows whose deletion is forgotten here.
  private func refusal(ofAncient changes: IncomingChanges, on connection: borrowing SQLiteConnection) throws -> Refusal?
  {
    guard hasLedger, changes.place == nil, let id = changes.key.id, try ForgottenDeletions.exist(on: connection),
      let forgotten = try ForgottenDeletions.newest(in: tables(of: changes), on: connection), id < forgotten
    else { return nil }
    return .beforeDeletions
  }

  /// True if the sender may have lacked deletions that are forgotten here when making the changes.
  private func isBehind(
    _ changes: IncomingChanges, at place: StreamPlace, on connection: borrowing SQLiteConnection
  ) throws -> Bool {
    guard try ForgottenDeletions.exist(on: connection) else { return false }
    let sender = changes.key.sender
    // A restored backup is another replica than it was.
    let restored = try place.replaces.flatMap { try OriginKeyEntry.author(of: $0, from: sender, on: connection) }
    return try ForgottenDeletions.requirements(
      of: sender, restored ?? changes.claims.replica, in: tables(of: changes), on: connection
    ).contains { wanted in
      if changes.claims.acknowledgements.contains(where: {
        $0.stream == wanted.stream && $0.incarnation == wanted.incarnation && $0.through >= wanted.through
      }) {
        return false
      }
      return try TombstoneAcknowledgements.acknowledged(wanted.share, in: place.stream, from: sender, on: connection)
        < wanted.through
    }
  }

  private func tables(of changes: IncomingChanges) throws -> [TableName] {
    if let definitions = changes.definitions { return definitions.map { TableName($0.name) } }
    return try changes.feed.summary().tables.map { TableName($0.table.name) }
  }
}
