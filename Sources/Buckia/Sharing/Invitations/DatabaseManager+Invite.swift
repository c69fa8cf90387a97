import BuckiaFormat
import BuckiaBytes
import BuckiaLedger
import SQLiteSchemas
import BuckiaSharing
import SQLiteConnections

extension DatabaseManager {
  /// Invites one person to get a part of the database.
  ///
  /// The invitation goes to that person, by a way that others do not read: whoever answers it first is taken for them. Their answer is a
  /// small file, which `processInboundChanges` takes: then they are a trusted contact, and
  /// ``share(_:to:output:options:signedBy:progress:)`` with this scope and them makes what they get.
  ///
  /// ```swift
  /// let scope = ShareScope(name: "summer") { SharedTable("album").where("id = 7") }
  /// let invitation = try database.invite(scope, as: home.identity()).invitation
  /// print(invitation.text)
  /// ```
  ///
  /// - Parameters:
  ///   - scope: What they are going to get.
  ///   - options: Whom it is for, where the files are going to be, and how long it is taken.
  ///   - identity: Who invites.
  /// - Throws: `BuckiaError`: as ``share(_:to:output:options:signedBy:progress:)`` for the scope; `invalidInvitation` when it is
  ///   too long to be said; `contactExists` and `invalidName` for the recipient; `misuse` for a borrowed database inside a
  ///   transaction of the app. Nobody is invited then.
  public func invite(
    _ scope: ShareScope, options: InvitationOptions = InvitationOptions(), as identity: Identity
  ) throws -> InvitationReport {
    try invite(scope, options: options, as: identity, at: WallClock.unixMilliseconds)
  }

  /// The same at a time of one's own, in milliseconds since 1970.
  package func invite(
    _ scope: ShareScope, options: InvitationOptions = InvitationOptions(), as identity: Identity,
    at time: Int64
  ) throws -> InvitationReport {
    guard (1...365).contains(options.days) else {
      throw BuckiaError(.invalidInvitation, "an invitation is taken for 1 to 365 days")
    }
    if let name = options.recipient, let contact = try home.contacts().contact(named: name) {
      throw BuckiaError(
        .contactExists,
        "\(EscapedText.quoted(contact.name)) is a contact already, and needs no invitation: share with them")
    }
    return try withWriter { connection in
      guard !isBorrowed || !connection.isInTransaction else {
        throw BuckiaError(
          .misuse, "an invitation cannot be made inside a transaction of the app, which may still roll back")
      }
      let transaction = try SQLiteTransaction(.immediate, on: connection)
      try Ledger.prepare(on: connection)
      let registration = ReplicaRegistration(of: connection, in: home)
      let settled = try registration.settle(on: connection)
      guard let replica = settled.replica else {
        throw BuckiaError(
          .unwritable, "it cannot be settled which replica this database is, and nobody is invited before",
          path: connection.path)
      }
      // What cannot be shared is not offered.
      let rows = try ScopeRows(scope, on: connection, SchemaReader(connection))
      let words = InvitedScope(
        scope, tables: rows.tables,
        parents: Dictionary(uniqueKeysWithValues: rows.parentTables.map { ($0.name, $0.omitted) }))
      try rows.removeTables()
      var random = SystemRandomNumberGenerator()
      let stream = (0..<16).map { _ in UInt8.random(in: 0...255, using: &random) }
      let invitation = try Invitation(
        from: identity, to: options.recipient, scope: words, folder: options.folder,
        stream: InvitedStream(stream: stream, incarnation: replica.incarnation.bytes), at: time,
        until: time + Int64(options.days) * 86_400_000, using: &random)
      try InvitationEntry(
        id: invitation.idBytes, digest: invitation.digest, proofKey: invitation.proofKey.bytes,
        recipient: options.recipient, scope: scope.json, stream: stream, incarnation: replica.incarnation.bytes,
        madeAt: time, expiresAt: invitation.expiresAt
      ).insert(on: connection)
      try transaction.commit()
      var report = InvitationReport(invitation: invitation, warnings: settled.remarks)
      if let remark = try registration.noteProgress(on: connection), !report.warnings.contains(remark) {
        report.warnings.append(remark)
      }
      return report
    }
  }
}
