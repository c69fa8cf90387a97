import SQLiteConnections

/// Processes answers to invitations before the files beside them, whose senders are contacts then.
///
/// The sender of an answer is unknown. The proof of the invitation's secret admits them, under any trust mode.
struct AnswerRun {
  /// The options for applying.
  let options: ApplyOptions
  /// The home with the contacts.
  let home: BuckiaHome
  /// The present time, in milliseconds since 1970.
  let time: Int64
  /// True if the database is in a transaction of the app, which may still roll back.
  let isInsideAnother: Bool

  /// Processes the answers of a listing. A file that has vanished meanwhile is skipped.
  ///
  /// - Parameter path: The database.
  /// - Throws: What is not a file's fault: the database locked, contacts that cannot be written.
  func run(
    _ listing: InboundListing, for path: String, on connection: borrowing SQLiteConnection
  ) throws -> [InvitationAnswer] {
    guard !listing.answers.isEmpty else { return [] }
    return try connection.withDurableCommits { try takeAll(listing, for: path, on: connection) }
  }

  private func takeAll(
    _ listing: InboundListing, for path: String, on connection: borrowing SQLiteConnection
  ) throws -> [InvitationAnswer] {
    let replica = try Replica.read(on: connection)?.id
    let removal =
      options.isDryRun
      ? InboundRemoval.none
      : InboundRemoval(
        options, of: listing.items + listing.answers, appliedTo: path, replica: replica, home: home)
    var answers: [InvitationAnswer] = []
    for item in listing.answers {
      guard let (answer, identity) = try take(item, on: connection) else { continue }
      answers.append(answer)
      guard answer.state == .accepted || answer.state == .alreadyAccepted, removal.removes(item, .applied),
        let identity
      else { continue }
      let outcome = FileRemoval(path: item.path, name: item.name, identity: identity).run()
      answers[answers.endIndex - 1].isRemoved = outcome == .removed
    }
    return answers
  }

  /// Processes one answer; nil if its file is missing.
  private func take(
    _ item: InboundItem, on connection: borrowing SQLiteConnection
  ) throws -> (answer: InvitationAnswer, identity: FileIdentity?)? {
    var opened: OpenedFile?
    var sender = ""
    do {
      let file = try item.open().file
      opened = file
      let acceptance = try Acceptance(verifying: file.input.invitationText(item.path))
      sender = acceptance.card.key
      let answer = try take(acceptance, from: item, on: connection)
      try forget(file, answer, on: connection)
      return (answer, file.identity)
    } catch let error as DiffFileError {
      if item.isFromFolder, error.code == .unreadable, !FileSystem.exists(item.path) { return nil }
      let isRecorded = error.refusal?.isRecorded == true
      return (
        try refuse(item, error, opened, recordedAs: isRecorded ? sender : nil, on: connection), opened?.identity
      )
    } catch let error as IdentityError where error.isAboutTheDocument {
      return (try refuse(item, error, opened, recordedAs: sender, on: connection), opened?.identity)
    } catch let error as BuckiaError where Self.refusals.contains(error.code) {
      // Inside a transaction of the app, the error is not the file's fault.
      let isRecorded = error.code != .misuse
      return (
        try refuse(item, error, opened, recordedAs: isRecorded ? sender : nil, on: connection), opened?.identity
      )
    }
  }

  /// Says why an answer is refused, and writes it down as for any other file.
  ///
  /// - Parameter sender: The verified key, empty for none; nil to record nothing.
  private func refuse(
    _ item: InboundItem, _ error: any Error, _ opened: OpenedFile?, recordedAs sender: String?,
    on connection: borrowing SQLiteConnection
  ) throws -> InvitationAnswer {
    let answer = refusal(of: item, error)
    // A database without a ledger has no invitations.
    guard let sender, let opened, !options.isDryRun, try Ledger.exists(on: connection) else { return answer }
    let transaction = try SQLiteTransaction(.immediate, on: connection)
    try Ledger.prepare(on: connection)
    try RefusedFiles.record(
      digest: FileDigest.sha256(of: opened).sha256.bytes, id: nil, sender: sender, state: .rejected,
      reason: EscapedText.line(answer.reason ?? ""), file: item.name, at: time, on: connection)
    try transaction.commit()
    return answer
  }

  /// Deletes the record of an earlier refusal.
  private func forget(
    _ file: OpenedFile, _ answer: InvitationAnswer, on connection: borrowing SQLiteConnection
  ) throws {
    guard answer.state != .notOurs, !options.isDryRun, !isInsideAnother else { return }
    try RefusedFiles.remove(digest: FileDigest.sha256(of: file).sha256.bytes, on: connection)
  }

  /// The errors that an answer is to blame for.
  private static let refusals: Set<BuckiaErrorCode> = [
    .wrongProof, .usedInvitation, .expiredInvitation, .voidInvitation, .endedKey, .contactExists, .misuse,
  ]

  private func refusal(of item: InboundItem, _ error: any Error) -> InvitationAnswer {
    var answer = InvitationAnswer(path: item.path, state: .refused)
    let wrapped = BuckiaError.wrapped(error) as? BuckiaError
    answer.reason = (error as? IdentityError)?.message ?? wrapped?.message ?? "\(error)"
    answer.code = wrapped?.code
    return answer
  }

  // MARK: Deciding

  private func take(
    _ acceptance: Acceptance, from item: InboundItem, on connection: borrowing SQLiteConnection
  ) throws -> InvitationAnswer {
    let own = try BuckiaError.wrapping { try home.ownCard() }
    guard acceptance.card.key != own?.key else { return InvitationAnswer(path: item.path, state: .notOurs) }
    guard try InvitationEntry.find(acceptance.invitation.bytes, on: connection) != nil else {
      return InvitationAnswer(path: item.path, state: .notOurs)
    }
    guard !isInsideAnother else {
      throw BuckiaError(
        .misuse,
        "it cannot be taken inside a transaction of the app, which may still roll back; apply it outside of one")
    }
    let transaction = try SQLiteTransaction(.immediate, on: connection)
    try Ledger.prepare(on: connection)
    // The transaction keeps other processes from deciding about the same invitation.
    guard let entry = try InvitationEntry.find(acceptance.invitation.bytes, on: connection) else {
      return InvitationAnswer(path: item.path, state: .notOurs)
    }
    let contacts = try home.contacts()
    try require(acceptance, of: entry, contacts)
    if entry.use != nil {
      guard let contact = contacts.contact(with: acceptance.card) else {
        throw BuckiaError(.usedInvitation, "the invitation has been used, and its sender is no contact any more")
      }
      return self.answer(item, .alreadyAccepted, contact, entry)
    }
    try requireOpen(entry, on: connection)
    let contact = try admit(acceptance.card, of: entry, besides: own, contacts)
    let scope = try ShareScope(json: entry.scope)
    try prepareShare(of: scope, entry, with: contact, acceptance, on: connection)
    try entry.markUsed(by: acceptance.card.key, at: time, on: connection)
    // A restored backup does not make a used invitation valid again: see `requireOpen`.
    try LedgerProgress.note(made: home.next(after: LedgerProgress.knownIDs(on: connection)).id, on: connection)
    var answer = self.answer(item, .accepted, contact, entry)
    answer.scope = scope
    if options.isDryRun {
      transaction.rollback()
      return answer
    }
    try transaction.commit()
    return answer
  }

  private func answer(
    _ item: InboundItem, _ state: InvitationAnswer.State, _ contact: Contact, _ entry: InvitationEntry
  ) -> InvitationAnswer {
    var answer = InvitationAnswer(path: item.path, state: state)
    answer.contact = contact
    answer.invitedAt = entry.madeAt
    return answer
  }

  /// Requires that the answer proves the secret, that its sender may be admitted, and that it is the first.
  private func require(_ acceptance: Acceptance, of entry: InvitationEntry, _ contacts: Contacts) throws {
    guard let key = InvitationProofKey(entry.proofKey),
      acceptance.proves(key, ofInvitationWith: entry.digest),
      acceptance.stream.stream.bytes == entry.stream, acceptance.stream.incarnation.bytes == entry.incarnation
    else {
      throw BuckiaError(
        .wrongProof,
        "its sender does not prove that they have the invitation: the answer was forged, or the invitation or the "
          + "answer")
    }
    if let ended = contacts.ending(of: acceptance.card) {
      throw BuckiaError(
        .endedKey,
        "it is from \(EscapedText.quoted(ended.name)), whose key was \(ended.reason.rawValue): nothing is taken from that key "
          + "any more")
    }
    guard let use = entry.use, use.key != acceptance.card.key else { return }
    let name = contacts.all.first { $0.card.key == use.key }.map { EscapedText.quoted($0.name) } ?? "another key"
    throw BuckiaError(
      .usedInvitation,
      "the invitation was used by \(name) before, and admits one person. The sender of this answer had it, too: if \(name) is not whom you "
        + "have invited, remove them with `buckia contact remove`")
  }

  private func requireOpen(_ entry: InvitationEntry, on connection: borrowing SQLiteConnection) throws {
    guard time < entry.expiresAt else {
      throw BuckiaError(.expiredInvitation, "the invitation has expired; make a new one with `buckia invite`")
    }
    let (replica, standing) = try ReplicaRegistration(of: connection, in: home).look(on: connection)
    guard standing == .same || standing == .moved, replica?.incarnation.bytes == entry.incarnation else {
      throw BuckiaError(
        .voidInvitation,
        "the invitation was made before this database was copied, or restored from a backup, which may have forgotten that it was "
          + "used; make a new one with `buckia invite`")
    }
  }

  // MARK: Admitting

  /// Makes the sender of an answer a contact. A dry run only returns that contact.
  private func admit(
    _ card: IdentityCard, of entry: InvitationEntry, besides own: IdentityCard?, _ contacts: Contacts
  ) throws -> Contact {
    let names = [entry.recipient, card.name].compactMap { $0 }
    func admit(to contacts: inout Contacts) throws(IdentityError) -> Contact {
      try contacts.admit(card, preferring: names, because: .invitation, besides: own, at: time)
    }
    guard options.isDryRun else { return try home.change { try admit(to: &$0) } }
    var copy = contacts
    return try admit(to: &copy)
  }

  /// Creates the share of the scope with the contact, unless there is one. Nothing has been sent of it yet.
  private func prepareShare(
    of scope: ShareScope, _ entry: InvitationEntry, with contact: Contact, _ acceptance: Acceptance,
    on connection: borrowing SQLiteConnection
  ) throws {
    let audience = ShareEntry.audience(of: [contact.name])
    let known = try ShareEntry.all(on: connection).first { share in
      share.audience == audience && share.name == scope.name && (scope.name != nil || share.scope == entry.scope)
    }
    guard known == nil else { return }
    var share = ShareEntry(
      stream: entry.stream, incarnation: entry.incarnation, name: scope.name, scope: entry.scope, audience: audience)
    try share.write(on: connection)
    guard let replica = acceptance.replica?.bytes else { return }
    let key = acceptance.card.key
    let believed = try ReplicaSigners.believed(replica, from: key, home.knownSenders(), on: connection)
    try AcknowledgementEntry.note(0, of: share.number, by: key, believed.replica, on: connection)
  }
}

extension IdentityError {
  /// True if the document is at fault, and not a file of the reader.
  fileprivate var isAboutTheDocument: Bool {
    [.invalidCard, .invalidInvitation, .badSignature, .unsupportedFormat, .endedKey, .ownKey].contains(code)
  }
}

/// What became of the answer to an invitation that has arrived.
public struct InvitationAnswer: Hashable, Codable, Sendable {
  /// What became of it.
  public enum State: String, Codable, Sendable {
    /// The person who has answered is a trusted contact now, and the invitation is used.
    case accepted
    /// It was taken before, from the same person.
    case alreadyAccepted = "already-accepted"
    /// It is refused, and has changed nothing.
    case refused
    /// The answer is for an invitation of another person or database, and is left alone.
    case notOurs = "not-ours"
  }

  /// The file.
  public let path: String
  /// The outcome.
  public let state: State
  /// The local name of the contact who has answered; nil unless it was accepted.
  public internal(set) var contact: Contact?
  /// The time of the invitation, in milliseconds since 1970; nil if unknown.
  public internal(set) var invitedAt: Int64?
  /// The scope that they were invited to; nil unless it was accepted.
  public internal(set) var scope: ShareScope?
  /// Why it was refused.
  public internal(set) var reason: String?
  /// The code of the error behind the reason.
  public internal(set) var code: BuckiaErrorCode?
  /// True if the file has been removed, because all its contents are recorded.
  public internal(set) var isRemoved = false
}
