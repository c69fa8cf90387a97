import Buckia
import BuckiaLedger
import Foundation
import TestSupport
import Testing

/// A person who shares all notes with others, under the policy `latest`.
final class NotesPerson {
  static let schema = "CREATE TABLE note(id TEXT PRIMARY KEY, title TEXT);"

  let name: String
  let path: String
  private let home: BuckiaHome
  private let folder: TemporaryFolder
  private let isSigning: Bool

  /// - Parameters:
  ///   - ordersIDs: True if each diff has a greater id than all before it. Otherwise, ids of one second have no order.
  ///   - isSigning: True if the person has a home of their own, signs shares, and encrypts them for people met before.
  init(_ name: String, in folder: TemporaryFolder, ordersIDs: Bool = true, isSigning: Bool = false) throws {
    self.name = name
    self.folder = folder
    self.isSigning = isSigning
    path = try TestDatabases.run(Self.schema, on: folder.file("\(name).sqlite"))
    home = BuckiaHome(path: folder.file(ordersIDs && !isSigning ? "home" : "home of \(name)"))
    if isSigning { try home.makeIdentity(named: name) }
    try folder.makeFolder("for \(name)")
    try DatabaseManager(path, home: home).initialize()
    try DatabaseManager(path).keepClocks()
  }

  /// Makes two people who have the same notes, and have received shares from each other.
  ///
  /// - Parameters:
  ///   - notes: The notes of the first one, as VALUES.
  ///   - others: The notes that the second one adds.
  static func acquainted(
    _ first: String, _ second: String, in folder: TemporaryFolder, notes: String, others: String,
    isSigning: Bool = false
  ) throws -> (NotesPerson, NotesPerson) {
    let one = try NotesPerson(first, in: folder, isSigning: isSigning)
    let other = try NotesPerson(second, in: folder, isSigning: isSigning)
    if isSigning { try one.meet(other) }
    try one.run("INSERT INTO note VALUES \(notes)")
    try one.share(with: [other])
    try other.receive()
    try other.run("INSERT INTO note VALUES \(others)")
    try other.share(with: [one])
    try one.receive()
    return (one, other)
  }

  func run(_ sql: String) throws { try TestDatabases.run(sql, on: path) }

  // MARK: Keys

  /// Lets two people who sign know and trust each other's keys.
  func meet(_ other: NotesPerson) throws {
    for (one, another) in [(self, other), (other, self)] {
      let card = try another.home.identity().card
      try one.home.addContact(card.text)
      try one.home.trustContact(another.name, fingerprint: card.fingerprint)
    }
  }

  /// Rotates the keys, and lets another person confirm the new ones.
  func rotateKeys(confirmedBy other: NotesPerson) throws {
    _ = try home.rotateIdentity()
    let identity = try home.identity()
    for rotation in identity.rotations.suffix(1) { try other.home.addContact(rotation.text) }
    try other.home.trustContact(name, fingerprint: identity.fingerprint)
  }

  // MARK: Files

  /// Shares all notes with one or several people.
  ///
  /// - Parameter isDelivered: True if the file is written to their inbound folders.
  /// - Returns: The file, or nil if there was nothing to send.
  @discardableResult
  func share(
    with others: [NotesPerson], delivering isDelivered: Bool = true,
    _ change: (inout ShareOptions) -> Void = { _ in }
  ) throws -> String? {
    var options = ShareOptions()
    options.isUnencrypted = !isSigning
    change(&options)
    let recipients = try others.map {
      try isSigning ? ShareRecipient(home.contact(named: $0.name)) : ShareRecipient($0.name)
    }
    let report = try DatabaseManager(path, home: home).share(
      ShareScope(name: "notes") { SharedTable("note") }, to: recipients, output: .folder(folder.file("from \(name)")),
      options: options, signedBy: isSigning ? home.identity() : nil)
    if isDelivered, let file = report.path { for other in others { try other.deliver(file) } }
    return report.path
  }

  /// Makes a diff that belongs to no stream.
  @discardableResult
  func diff(from older: String, to folderName: String) throws -> String {
    let report = try DatabaseManager(path, home: home).createDatabaseDiff(
      since: older, output: .folder(folder.file(folderName)))
    return try #require(report.path)
  }

  /// Writes a file to the inbound folder.
  func deliver(_ file: String?) throws { if let file { try deliver(path: file) } }

  func deliver(path file: String) throws {
    let name = file.split(separator: "/").last.map(String.init) ?? ""
    _ = try folder.write(fileBytes(file), to: "for \(self.name)/\(name)")
  }

  /// Applies the files that have arrived.
  ///
  /// - Parameter states: The states that a file may have afterwards.
  @discardableResult
  func receive(expecting states: Set<DiffState> = [.applied, .alreadyApplied]) throws -> [DiffOutcome] {
    var options = ApplyOptions()
    options.conflicts = .latest
    let report = try DatabaseManager(path, home: home).processInboundChanges(
      [folder.file("for \(name)")], options: options)
    #expect(
      report.diffs.allSatisfy { states.contains($0.state) },
      "\(name): \(report.diffs.map { $0.reason ?? "\($0.state)" })")
    return report.diffs
  }

  // MARK: Time

  /// Dates all records back.
  func age(days: Int) throws {
    let time = days * 86_400_000
    try run(
      "UPDATE buckia_ledger SET recorded_at = recorded_at - \(time); UPDATE buckia_outbox SET made_at = made_at - \(time)"
    )
  }

  /// Applies a stranger's diff that does not concern the notes.
  func hear(in folder: TemporaryFolder) throws {
    let name = "stranger \(try rows("SELECT count(*) FROM buckia_ledger")[0])"
    let other = try TestDatabases.run(
      "CREATE TABLE other(id INTEGER PRIMARY KEY); INSERT INTO other VALUES (1)", on: folder.file(name))
    var options = ShareOptions()
    options.isUnencrypted = true
    try DatabaseManager(other, home: BuckiaHome(path: folder.file("home of \(name)"))).share(
      ShareScope { SharedTable("other") }, to: [ShareRecipient(self.name)],
      output: .folder(folder.file("for \(self.name)")),
      options: options)
    try receive()
  }

  // MARK: Copies

  func copy(_ name: String) throws -> String {
    let copy = folder.file(name)
    try FileManager.default.copyItem(atPath: path, toPath: copy)
    return copy
  }

  /// Replaces the database with a copy.
  func restore(_ copy: String) throws {
    try FileManager.default.removeItem(atPath: path)
    try FileManager.default.copyItem(atPath: copy, toPath: path)
  }

  // MARK: Rows

  func rows(_ query: String) throws -> [String] { try TestDatabases.texts(query, on: path) }

  func notes() throws -> [String] { try rows("SELECT id, title FROM note ORDER BY id") }

  /// The notes that have a tombstone.
  func deletions() throws -> [String] {
    try rows(
      """
      SELECT c.k0 FROM buckia_clock_1 AS c JOIN buckia_row_version AS s ON s.row_version = c.row_versions
      WHERE s.operation = 'delete' ORDER BY 1
      """)
  }
}
