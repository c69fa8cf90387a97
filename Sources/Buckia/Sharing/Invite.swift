import SQLiteConnections

extension DatabaseManager {
  /// Invites one person to get a part of the database.
  ///
  /// Send the invitation to that person by a private way: the first person to answer it becomes the contact. Their
  /// answer is a small file, which `processInboundChanges` reads. It makes them a trusted contact, and
  /// ``share(_:to:output:options:signedBy:progress:)`` with this scope and contact makes their files.
  ///
  /// ```swift
  /// let scope = ShareScope(name: "summer") { SharedTable("album").where("id = 7") }
  /// let invitation = try database.invite(scope, as: home.identity()).invitation
  /// print(invitation.text)
  /// ```
  ///
  /// - Parameters:
  ///   - scope: The offered scope.
  ///   - options: The person's name, the folder of the files, and the time of expiry.
  ///   - identity: The inviting identity.
  /// - Throws: `BuckiaError`: as ``share(_:to:output:options:signedBy:progress:)`` for the scope; `invalidInvitation` when it is
  ///   too long to be said; `contactExists` and `invalidName` for the recipient; `misuse` for a borrowed database inside a
  ///   transaction of the app. No invitation is made then.
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
      try requireOwnTransaction(or: "an invitation cannot be made", on: connection)
      let transaction = try SQLiteTransaction(.immediate, on: connection)
      try Ledger.prepare(on: connection)
      let registration = ReplicaRegistration(of: connection, in: home)
      let settled = try registration.settle(on: connection)
      guard let replica = settled.replica else {
        throw BuckiaError(
          .unwritable, "it cannot be settled which replica this database is, and an invitation needs that",
          path: connection.path)
      }
      // What cannot be shared is not offered.
      let rows = try ScopeRows(scope, on: connection, SchemaReader(connection))
      let words = InvitedScope(
        scope, tables: rows.tables,
        parents: Dictionary(uniqueKeysWithValues: rows.parentTables.map { ($0.name, $0.omitted) }))
      try rows.removeTables()
      var random = SystemRandomNumberGenerator()
      let stream = StreamID(checked: (0..<16).map { _ in UInt8.random(in: 0...255, using: &random) })
      let invitation = try Invitation(
        from: identity, to: options.recipient, scope: words, folder: options.folder,
        stream: InvitedStream(stream: stream, incarnation: replica.incarnation), at: time,
        until: time + Int64(options.days) * 86_400_000, using: &random)
      try InvitationEntry(
        id: invitation.idBytes, digest: invitation.digest, proofKey: invitation.proofKey.bytes,
        recipient: options.recipient, scope: scope.json, stream: stream.bytes, incarnation: replica.incarnation.bytes,
        madeAt: time, expiresAt: invitation.expiresAt
      ).insert(on: connection)
      try transaction.commit()
      var report = InvitationReport(invitation: invitation, warnings: settled.warnings)
      try registration.noteProgress(on: connection, in: &report.warnings)
      return report
    }
  }
}

/// Options for an invitation.
public struct InvitationOptions: Sendable {
  /// The local name of the invited person; nil for the name on their card.
  public var recipient: String?
  /// The place of both sides' files: a folder or a URL, at most 1,024 bytes. It is only shown, and used for the answer
  /// if it is a folder there.
  public var folder: String?
  /// The number of days until the invitation expires, from 1 to 365.
  public var days = 7

  /// Creates options.
  public init() {}
}

/// What ``DatabaseManager/invite(_:options:as:)`` did.
public struct InvitationReport: Hashable, Codable, Sendable {
  /// The invitation.
  public let invitation: Invitation
  /// Warnings about it.
  public internal(set) var warnings: [Warning] = []
}

extension InvitedScope {
  /// Says a scope in words.
  ///
  /// - Parameters:
  ///   - scope: The scope.
  ///   - tables: All tables of the scope: the named ones, and those whose rows come along because others refer to them.
  ///   - parents: The tables whose rows come along because others refer to them, and the columns that these leave out.
  init(_ scope: ShareScope, tables: [TableName], parents: [TableName: [String]]) {
    self.init(
      name: scope.name,
      tables: tables.map { name in
        guard let shared = scope.tables.first(where: { $0.name == name }) else {
          return Table(
            name: name.text, rows: "rows that the others refer to", omittedColumns: parents[name] ?? [],
            rewrittenColumns: [])
        }
        return Table(
          name: name.text, rows: shared.words, omittedColumns: shared.omittedColumns,
          rewrittenColumns: shared.rewrittenColumns.keys.sorted())
      })
  }
}

extension SharedTable {
  /// A description of the rows.
  fileprivate var words: String {
    var parts: [String] = []
    if let condition { parts.append("rows where \(condition)") }
    if !parents.isEmpty {
      var words = "rows that refer to shared rows of \(parents.map(\.text).joined(separator: " or "))"
      if let childCondition { words += " where \(childCondition)" }
      if let depth { words += ", up to \(depth) \(depth == 1 ? "step" : "steps") away" }
      parts.append(words)
    }
    let only = columns.map { ", of them the key and \($0.joined(separator: ", "))" } ?? ""
    guard !parts.isEmpty else { return "all rows\(only)" }
    let values = parameters.sorted { $0.key < $1.key }.map { "\($0.key) = \($0.value)" }
    let given = values.isEmpty ? "" : " (\(values.joined(separator: ", ")))"
    return parts.joined(separator: ", and ") + given + only
  }
}

extension Invitation {
  /// Reads an invitation and verifies its signature. ``DatabaseManager/accept(_:named:answer:as:)`` checks if it has
  /// expired.
  ///
  /// - Parameter text: The line that begins with `buckia-invitation-1:`. White space in it is ignored.
  /// - Throws: `BuckiaError`: `invalidInvitation`, `badSignature`, or `unsupportedFormat` for one of a newer version.
  public init(_ text: String) throws {
    self = try BuckiaError.wrapping { try Invitation(verifying: text) }
  }

  /// Reads the invitation in a file.
  ///
  /// - Throws: As ``init(_:)``; `BuckiaError` when the file cannot be read.
  public init(contentsOf path: String) throws {
    self = try BuckiaError.wrapping {
      do {
        return try Invitation(verifying: PosixFile(reading: path).invitationText(path))
      } catch let error as IdentityError {
        throw error.naming(path: path)
      }
    }
  }

  /// The named folder, if it exists here. A relative path would be another folder than the author's.
  package var localFolder: String? { folder.flatMap { $0.hasPrefix("/") && FileSystem.isFolder($0) ? $0 : nil } }

  /// Writes the line to a file that only its owner can read, because anybody who has the line can answer it.
  ///
  /// - Parameters:
  ///   - path: The file.
  ///   - replacing: True if a file that is there already may be replaced.
  /// - Throws: `BuckiaError`: `alreadyExists`; when it cannot be written.
  public func write(to path: String, replacing: Bool = false) throws {
    try BuckiaError.wrapping {
      let file = try AtomicFileOutput(at: path, replacing: replacing, isPrivate: true)
      try file.write(Array("\(text)\n".utf8))
      try file.publish()
    }
  }
}

extension ByteInput {
  /// The text of a file that can only be an invitation, or the answer to one.
  ///
  /// - Throws: `IdentityError` with code `invalidInvitation` for more bytes than an invitation or an answer can have;
  ///   `ByteStreamError`.
  func invitationText(_ path: String) throws -> String {
    guard let bytes = try contents(limit: Int(Invitation.textByteLimit)) else {
      throw IdentityError(
        .invalidInvitation, "it is neither an invitation nor the answer to one: neither is that long", path: path)
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}
