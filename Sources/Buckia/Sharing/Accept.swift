import SQLiteConnections

extension DatabaseManager {
  /// Accepts an invitation: trusts its author, and writes the answer that makes them send.
  ///
  /// Show the ``Invitation/card``'s fingerprint and the ``Invitation/scope`` first, and let a person confirm both.
  ///
  /// ```swift
  /// let invitation = try Invitation(contentsOf: "anna.invitation")
  /// let report = try database.accept(invitation, answer: .folder("outbox"), as: home.identity())
  /// print(report.path ?? "")
  /// ```
  ///
  /// The accepted invitation and the answer are recorded in the database: a second call only delivers an answer that a
  /// crash has held up.
  ///
  /// - Parameters:
  ///   - invitation: The invitation.
  ///   - name: The local name of its author; nil for the name on the card.
  ///   - output: The destination of the answer.
  ///   - identity: The identity that accepts.
  /// - Throws: `BuckiaError`: `expiredInvitation`; `ownKey` for one's own; `endedKey` for an author who was removed;
  ///   `contactExists` when another contact has the name; `misuse` for a borrowed database inside a transaction of the app.
  ///   Nothing has been changed then. When the answer cannot be written, the next call writes it.
  public func accept(
    _ invitation: Invitation, named name: String? = nil, answer output: DiffOutput, as identity: Identity
  ) throws -> AcceptanceReport {
    try accept(invitation, named: name, answer: output, as: identity, at: WallClock.unixMilliseconds)
  }

  /// The same at a time of one's own, in milliseconds since 1970.
  package func accept(
    _ invitation: Invitation, named name: String? = nil, answer output: DiffOutput, as identity: Identity,
    at time: Int64
  ) throws -> AcceptanceReport {
    guard invitation.card.key != identity.card.key else {
      throw BuckiaError(.ownKey, "the invitation is your own; send it to the person it is for")
    }
    return try withWriter { connection in
      try requireOwnTransaction(or: "no invitation can be accepted", on: connection)
      if let entry = try AcceptedEntry.find(invitation.idBytes, on: connection) {
        return try finish(entry, of: invitation, to: output, on: connection)
      }
      try invitation.requireValidity(at: time)
      let transaction = try SQLiteTransaction(.immediate, on: connection)
      try Ledger.prepare(on: connection)
      let registration = ReplicaRegistration(of: connection, in: home)
      let settled = try registration.settle(on: connection)
      let (id, clockWarning) = try home.next(after: [])
      let answer = try invitation.answer(by: identity, replica: settled.replica?.id, at: time)
      let entry = AcceptedEntry(
        invitation: invitation.idBytes, digest: invitation.digest, inviter: invitation.card.key,
        stream: invitation.stream.stream.bytes, acceptedAt: time, file: DiffFileName.acceptance(id), answer: answer.text
      )
      try entry.insert(on: connection)
      // The last step that can fail, because a contact is not in the database, and is not rolled back with it.
      let inviter = try home.change { contacts in
        try contacts.trustInviter(invitation.card, named: name, besides: identity.card, at: time)
      }
      try transaction.commit()
      var report = AcceptanceReport(
        inviter: inviter, acceptedAt: time, wasAccepted: false, answer: answer.text,
        warnings: settled.warnings + (clockWarning.map { [$0] } ?? []))
      report.path = try deliver(entry, to: output, on: connection)
      try registration.noteProgress(on: connection, in: &report.warnings)
      return report
    }
  }

  /// Goes on with an invitation that was accepted before.
  private func finish(
    _ entry: AcceptedEntry, of invitation: Invitation, to output: DiffOutput, on connection: borrowing SQLiteConnection
  ) throws -> AcceptanceReport {
    guard entry.digest == invitation.digest else {
      throw BuckiaError(
        .usedInvitation, "another invitation with its number was accepted here; ask its author for a new one")
    }
    var report = AcceptanceReport(acceptedAt: entry.acceptedAt, wasAccepted: true, answer: entry.answer)
    if !entry.isDelivered { report.path = try deliver(entry, to: output, on: connection) }
    return report
  }

  private func deliver(
    _ entry: AcceptedEntry, to output: DiffOutput, on connection: borrowing SQLiteConnection
  ) throws -> String? {
    let file = try output.file(named: entry.file)
    try file.write(TemporaryBuffer(Array("\(entry.answer)\n".utf8)), madeFrom: connection.path)
    let transaction = try SQLiteTransaction(on: connection)
    try entry.markDelivered(on: connection)
    try transaction.commit()
    return file.path
  }
}

extension Invitation {
  /// Requires that it is still taken.
  ///
  /// - Parameter time: The present time, in milliseconds since 1970.
  /// - Throws: `BuckiaError` with `expiredInvitation`.
  fileprivate func requireValidity(at time: Int64) throws(BuckiaError) {
    guard time >= expiresAt else { return }
    throw BuckiaError(.expiredInvitation, "the invitation has expired; ask its author for a new one")
  }
}

/// What ``DatabaseManager/accept(_:named:answer:as:)`` did.
public struct AcceptanceReport: Hashable, Codable, Sendable {
  /// Who has invited: a trusted contact now. Nil where the invitation was accepted before.
  public internal(set) var inviter: Contact?
  /// When it was accepted, in milliseconds since 1970.
  public let acceptedAt: Int64
  /// True if it was accepted before this call, which has then changed nothing.
  public let wasAccepted: Bool
  /// The answer as one line of text, for its author.
  public let answer: String
  /// The file with the answer that was written now; nil for a stream, and if it was delivered before.
  public internal(set) var path: String?
  /// Warnings about it.
  public internal(set) var warnings: [Warning] = []
}
