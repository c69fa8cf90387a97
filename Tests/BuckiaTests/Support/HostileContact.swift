import Buckia
import BuckiaBytes
import BuckiaFormat
import Foundation
import SQLiteSchemas
import SQLiteChangesets
import SQLiteConnections
import TestSupport
import Testing

/// A person with keys and contacts who shares a database, signed and encrypted. A hostile one alters the files.
final class HostileContact {
  let name: String
  let path: String
  let home: BuckiaHome
  private let folder: TemporaryFolder
  /// The last altered file for each recipient. The next file follows it, not the file that the database has written.
  private var altered: [String: Manifest.Chain.Predecessor] = [:]

  init(_ name: String, in folder: TemporaryFolder, _ sql: String) throws {
    self.name = name
    self.folder = folder
    path = try TestDatabases.run(sql, on: folder.file("\(name).sqlite"))
    home = BuckiaHome(path: folder.file("home of \(name)"))
    try folder.makeFolder("for \(name)")
    try home.makeIdentity(named: name)
  }

  /// Makes people with the same tables, who all trust each other.
  static func people(_ names: [String], in folder: TemporaryFolder, _ sql: String) throws -> [HostileContact] {
    let people = try names.map { try HostileContact($0, in: folder, sql) }
    for one in people.indices { for other in people[(one + 1)...] { try people[one].meet(other) } }
    return people
  }

  /// Lets both trust each other.
  func meet(_ other: HostileContact) throws {
    for (one, two) in [(self, other), (other, self)] {
      let card = try two.home.identity().card
      _ = try one.home.addContact(card.text)
      _ = try one.home.trustContact(two.name, fingerprint: card.fingerprint)
    }
  }

  /// The id of the database's replica.
  func replica() throws -> ReplicaID {
    let id = try #require(try DatabaseManager(path, home: home).status().replica).id
    return try #require(ReplicaID(hex: id))
  }

  func run(_ sql: String) throws { try TestDatabases.run(sql, on: path) }
  func rows(_ query: String) throws -> [String] { try TestDatabases.texts(query, on: path) }

  /// Shares a scope, and sends a file with other contents if there are alterations.
  ///
  /// - Parameters:
  ///   - widening: The policy for rows that a recipient's change would bring in.
  ///   - changes: The changes of the file, instead of those of the share.
  ///   - alter: Alters other parts of the file, which is signed and encrypted afterwards like an honest one.
  @discardableResult
  func share(
    _ scope: ShareScope, with other: HostileContact, changes: ChangesetWriter? = nil,
    widening: WideningPolicy = .hold, altered alter: ((inout DiffFileDraft) throws -> Void)? = nil
  ) throws -> ShareReport {
    let recipient = try ShareRecipient(home.contact(named: other.name))
    let outbox = folder.file("for \(other.name)")
    guard changes != nil || alter != nil || altered[other.name] != nil else {
      var options = ShareOptions()
      options.widening = widening
      return try DatabaseManager(path, home: home).share(
        scope, to: [recipient], output: .folder(outbox), options: options, signedBy: home.identity())
    }
    var options = ShareOptions()
    options.isUnencrypted = true
    options.acknowledges = true
    let report = try DatabaseManager(path, home: home).share(
      scope, to: [recipient], output: .folder(folder.file("unaltered")), options: options, signedBy: home.identity())
    let diff = try DiffFile.verified(at: try #require(report.path))
    let definitions = try diff.schema.flatMap { $0.isEmpty ? nil : $0 } ?? definitions()
    var draft = DiffFileDraft(manifest: diff.manifest, schema: .included(definitions), annotations: diff.annotations)
    // State digests would only show that the rows are not those of the share.
    draft.manifest.states = []
    if changes != nil, draft.manifest.kind == .ack { draft.manifest.kind = .delta }
    if draft.manifest.chain?.follows != nil, let last = altered[other.name] { draft.manifest.chain?.follows = last }
    try alter?(&draft)
    var writer = DiffFileWriter()
    writer.replacesExisting = true
    writer.signer = try ManifestSigner(home.identity())
    let plain = folder.file("\(draft.manifest.id).bdiff")
    if let changes {
      try writer.write(draft, changeset: TemporaryBuffer(changes.bytes), to: plain)
    } else {
      try writer.write(draft, changeset: diff.changeset, to: plain)
    }
    altered[other.name] = Manifest.Chain.Predecessor(
      id: draft.manifest.id, manifestSHA256: try DiffFile.verified(at: plain).manifestDigest)
    try FileEncryption(to: [#require(recipient.key)]).encrypt(
      plain, to: "\(outbox)/\(DiffFileName.encrypted(draft.manifest.id))")
    return report
  }

  /// Sets the clock, so that the next diff is later than all diffs of earlier seconds.
  ///
  /// - Parameter second: Seconds since `KSUID.epoch`.
  func setClock(_ second: UInt32) throws {
    try Data("\(KSUID(timestamp: second, payloadHigh: 0, payloadLow: 0))\n".utf8)
      .write(to: URL(fileURLWithPath: "\(home.path)/clock"))
  }

  /// Shares with several people at once.
  @discardableResult
  func share(_ scope: ShareScope, withAll others: [HostileContact]) throws -> ShareReport {
    let outbox = folder.file("from \(name)")
    let report = try DatabaseManager(path, home: home).share(
      scope, to: others.map { try ShareRecipient(home.contact(named: $0.name)) }, output: .folder(outbox),
      signedBy: home.identity())
    for delivery in report.files {
      let file = String(delivery.path?.split(separator: "/").last ?? "")
      for other in others { _ = try folder.copy("from \(name)/\(file)", to: "for \(other.name)/\(file)") }
    }
    return report
  }

  private func definitions() throws -> [TableDefinition] {
    let connection = try SQLiteConnection(opening: path, as: .readOnly)
    let schema = try SchemaReader(connection)
    return try schema.entries.filter { $0.kind == .table && !$0.name.text.hasPrefix("buckia_") }.map {
      try schema.definition(of: $0)
    }
  }

  /// Applies the files that have arrived, from known senders only.
  @discardableResult
  func receive(_ policies: ConflictPolicies = .keepLocal) throws -> [DiffOutcome] {
    try DatabaseManager(path, home: home).processInboundChanges(
      [folder.file("for \(name)")], options: ApplyOptions(conflicts: policies, trust: .known)
    ).diffs
  }
}

extension ChangesetWriter {
  /// The changes of one table: each has its operation and, for each column, the old and the new value, or nil.
  init(
    _ table: String, key: [UInt8], _ changes: [(ChangeOperation, old: [ChangesetValue?], new: [ChangesetValue?])]
  ) {
    self.init()
    beginTable(ChangesetTable(name: table, keyFlags: key))
    for (operation, old, new) in changes {
      beginChange(operation)
      for value in (operation == .insert ? [] : old) + (operation == .delete ? [] : new) {
        if let value { append(value) } else { appendUndefined() }
      }
    }
  }
}
