import Buckia
import BuckiaBytes
import Foundation
import SQLiteConnections
import TestSupport

/// People who take the steps of a history, each with a home, an identity, contacts and a database.
final class ShareHistoryRun {
  /// A check that has failed.
  struct Fault: Error, CustomStringConvertible {
    /// The kinds of faults.
    enum Kind: String, CaseIterable, Sendable {
      /// A call throws, or a diff is refused.
      case refused
      /// The rows of a stream differ from the state digest of its sender.
      case stateDiffers
      /// There is always something left to send.
      case endless
      /// Diffs wait although everything was sent.
      case waiting
      /// A reference dangles.
      case dangling
      /// A row exists twice.
      case doubled
      /// People have different rows without an open conflict about them.
      case unequal
      /// A value that was written and never replaced is in no row and no conflict record.
      case lost
      /// People with the same rows have different words.
      case words
    }
    let kind: Kind
    let description: String
  }

  final class Person {
    static let names = ["anna", "ben", "cara", "dora", "emil"]

    let number: Int
    let name: String
    let path: String
    var home: BuckiaHome
    /// Files in transit to this person, by the number of the sender.
    var pending: [Int: [String]] = [:]
    /// The diffs that were applied here.
    var applied: [String] = []
    /// The senders with a diff that waits for its predecessor.
    var gaps: Set<Int> = []
    var isIn = true
    /// An earlier state of the database.
    var backup: [UInt8]?
    /// The keys of the person, and those of others by name. They are read once, because verifying them takes long.
    private var identity: Identity?
    private var recipients: [String: ShareRecipient] = [:]

    init(_ number: Int, in folder: TemporaryFolder) throws {
      self.number = number
      name = Self.names[number]
      path = folder.file("\(name).sqlite")
      home = BuckiaHome(path: folder.file("home of \(name)"))
      try folder.makeFolder("for \(name)")
    }

    func ownIdentity() throws -> Identity {
      let own = try identity ?? home.identity()
      identity = own
      return own
    }

    func recipient(_ other: Person) throws -> ShareRecipient {
      let recipient = try recipients[other.name] ?? ShareRecipient(home.contact(named: other.name))
      recipients[other.name] = recipient
      return recipient
    }

    /// Forgets the keys, so that they are read again.
    func readKeysAgain() { (identity, recipients) = (nil, [:]) }
  }

  let history: ShareHistory
  let folder: TemporaryFolder
  let people: [Person]
  /// The steps that were taken, as lines for a person to read.
  private(set) var script: [String] = []
  /// Values that were written by an edit, and those that another edit has replaced or deleted.
  private(set) var written: Set<String> = []
  private(set) var replaced: Set<String> = []
  private let start = UInt32(Int64(Date().timeIntervalSince1970) - KSUID.epoch)
  private var ticks: UInt32 = 0
  private var folders = 0

  init(_ history: ShareHistory) throws {
    self.history = history
    let folder = try TemporaryFolder()
    self.folder = folder
    people = try (0..<history.people).map { try Person($0, in: folder) }
  }

  /// Takes all steps, lets all people share until nothing is left to send, and returns the failed checks.
  func faults() throws -> [Fault] {
    do {
      try begin()
      for step in history.steps { try take(step) }
      return try settle() + ShareHistoryCheck(self).faults()
    } catch let fault as Fault {
      return [fault]
    } catch let error as BuckiaError {
      return [Fault(kind: .refused, description: "\(error)")]
    }
  }

  // MARK: Beginning

  private func begin() throws {
    let anna = people[0]
    let isCopied = [.copies, .copiesOfDataset].contains(history.beginning)
    for person in isCopied ? [anna] : people { try TestDatabases.run(history.schema.sql, on: person.path) }
    if history.beginning == .invitation {
      for person in people { try person.home.makeIdentity(named: person.name) }
      try invite()
      try Self.introduce(people.map(\.home))
    } else {
      for person in people {
        _ = try folder.copy(Self.acquainted.get().file(person.name), to: "home of \(person.name)")
      }
    }
    if isCopied {
      for _ in 0..<3 { try edit(anna, history.seed &+ UInt64(written.count)) }
      if history.beginning == .copiesOfDataset { _ = try DatabaseManager(anna.path, home: anna.home).beginDataset() }
      for person in people.dropFirst() { _ = try folder.copy(anna.path, to: "\(person.name).sqlite") }
      note("all others have a copy of anna's database\(history.beginning == .copiesOfDataset ? ", a dataset" : "")")
    }
    if history.policy == .latestByClocks { for person in people { try DatabaseManager(person.path).keepClocks() } }
    if history.has(.join) { people.last?.isIn = false }
  }

  /// Homes of people who trust each other, made once because making keys takes long.
  private static let acquainted = Result {
    let folder = try TemporaryFolder()
    let homes = Person.names.map { BuckiaHome(path: folder.file($0)) }
    for (name, home) in zip(Person.names, homes) { try home.makeIdentity(named: name) }
    try introduce(homes)
    return folder
  }

  /// Lets each person trust all others whom they do not know yet.
  private static func introduce(_ homes: [BuckiaHome]) throws {
    let cards = try homes.map { try $0.identity().card }
    for (home, own) in zip(homes, cards) {
      for card in cards where try card != own && home.contacts().contact(named: card.name) == nil {
        _ = try home.addContact(card.text)
        _ = try home.trustContact(card.name, fingerprint: card.fingerprint)
      }
    }
  }

  private func invite() throws {
    let (anna, ben) = (people[0], people[1])
    note("anna invites ben, who accepts")
    let invitation = try DatabaseManager(anna.path, home: anna.home).invite(scope(anna, ben), as: anna.home.identity())
      .invitation
    _ = try DatabaseManager(ben.path, home: ben.home).accept(
      invitation, answer: .folder(folder.file("for anna")), as: ben.home.identity())
    try receive(anna, [folder.file("for anna")])
  }

  // MARK: Steps

  private func take(_ step: ShareHistory.Step) throws {
    let person = people[step.person % people.count]
    let other = people[(step.person + step.other) % people.count]
    guard person.isIn && other.isIn || [.edit, .join].contains(step.action) else { return }
    switch step.action {
    case .edit: try edit(person, step.choice)
    case .share, .resync, .keep:
      _ = try share(from: person, to: group(of: person, with: other, step.choice)) {
        $0.resyncs = step.action == .resync
        $0.onLeave = step.action == .keep ? .keep : .withdraw
      }
    case .apply: try apply(person, from: people, count: .max)
    case .applyOne: try apply(person, from: [other], count: 1 + Int(step.choice % 2), singly: true)
    case .applyAgain: try apply(person, from: [other], count: .max, twice: true)
    case .undo:
      guard !person.applied.isEmpty else { return }
      let diff = person.applied[Int(step.choice % UInt64(person.applied.count))]
      try tick(person, step.choice)
      do {
        try DatabaseManager(person.path, home: person.home).undo([.diff(diff)])
        note("\(person.name): undo \(diff)")
      } catch let error as BuckiaError where [.alreadyUndone, .notKept, .noSuchDiff].contains(error.code) {
        note("\(person.name): undo \(diff) -- \(error.code)")
      }
    case .backUp:
      note("\(person.name): cp \(person.name).sqlite \(person.name).backup")
      person.backup = try fileBytes(person.path)
    case .restore:
      guard let backup = person.backup else { return }
      note("\(person.name): cp \(person.name).backup \(person.name).sqlite")
      let before = try values(of: person)
      try folder.write(backup, to: "\(person.name).sqlite")
      // Values that no other person has are lost with the database.
      let others = try people.filter { $0.number != person.number }.reduce(into: Set<String>()) {
        try $0.formUnion(values(of: $1))
      }
      replaced.formUnion(before.subtracting(try values(of: person)).subtracting(others))
    case .rotate:
      note("\(person.name): identity rotate")
      _ = try person.home.rotateIdentity()
      person.readKeysAgain()
      if step.choice % 2 == 0 { try confirm(person) }
    case .confirm: try confirm(person)
    case .move:
      note("\(person.name): another home, with identity and contacts")
      let home = BuckiaHome(path: "\(person.home.path)'")
      try FileManager.default.createDirectory(
        atPath: home.path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
      for file in ["identity", "contacts.json"] {
        try FileManager.default.copyItem(atPath: "\(person.home.path)/\(file)", toPath: "\(home.path)/\(file)")
      }
      person.home = home
    case .join:
      note("\(person.name) joins")
      person.isIn = true
    }
  }

  private func group(of person: Person, with other: Person, _ choice: UInt64) -> [Person] {
    let all = people.filter { $0.number != person.number && $0.isIn }
    return switch history.sharing {
    case .one, .topics: [other]
    case .all: all
    case .mixed: choice % 2 == 0 ? [other] : all
    }
  }

  private func confirm(_ person: Person) throws {
    let identity = try person.ownIdentity()
    guard !identity.rotations.isEmpty else { return }
    note("all others confirm the new key of \(person.name)")
    for other in people where other.number != person.number {
      guard try other.home.contact(named: person.name).card != identity.card else { continue }
      for rotation in identity.rotations { _ = try other.home.addContact(rotation.text) }
      _ = try other.home.trustContact(person.name, fingerprint: identity.fingerprint)
      other.readKeysAgain()
    }
  }

  // MARK: Edits

  private func edit(_ person: Person, _ choice: UInt64) throws {
    var random = SeededGenerator(seed: choice)
    guard let statement = try statement(of: person, &random) else { return }
    let before = try values(of: person)
    do {
      try run(statement, by: person)
      note("\(person.name): \(statement)")
    } catch let error as SQLiteError where error.code & 0xff == 19 {
      return note("\(person.name): \(statement) -- refused")
    }
    let after = try values(of: person)
    written.formUnion(after.subtracting(before))
    replaced.formUnion(before.subtracting(after))
  }

  private func run(_ statement: String, by person: Person) throws {
    guard history.isRecorded else {
      try TestDatabases.run("PRAGMA foreign_keys = ON; \(statement)", on: person.path)
      return
    }
    let connection = try SQLiteConnection(opening: person.path, as: .readWrite)
    try connection.execute("PRAGMA foreign_keys = ON")
    let result = try DatabaseManager.borrowing(connection.pointer, home: person.home) { database in
      try database.recorder.record { _ in Result { try connection.execute(statement) } }.value
    }
    try result.get()
  }

  private func statement(of person: Person, _ random: inout SeededGenerator) throws -> String? {
    let schema = history.schema
    let table = schema.tables[Int.random(in: schema.tables.indices, using: &random)]
    func pick(_ query: String) throws -> String? {
      let rows = try TestDatabases.texts(query, on: person.path)
      return rows.isEmpty ? nil : rows[Int.random(in: rows.indices, using: &random)]
    }
    func literal(_ key: String?) -> String { key.map { schema.hasTextKeys ? "'\($0)'" : $0 } ?? "NULL" }
    func value(of column: String) throws -> String? {
      if let parent = schema.parent(of: column), parent != table.name || schema == .folders {
        let key = try pick("SELECT id FROM \(parent) ORDER BY rowid")
        return key == nil && schema == .links ? nil : literal(random.oneIn(8) && schema != .links ? nil : key)
      }
      switch column {
      case "id" where schema.hasTextKeys:
        if random.oneIn(10) { return "'k\(random.oneIn(2) ? 1 : 2)'" }
        return "'\(person.name.prefix(1))\(written.count)\(random.oneIn(3) ? "X" : "")'"
      case "id": return "NULL"
      case "part": return random.oneIn(2) ? "NULL" : "\(Int.random(in: 1...2, using: &random))"
      case "topic": return "\(Int.random(in: 0...2, using: &random))"
      default:
        let repeats = schema == .keyless && random.oneIn(2) || schema == .unique && column == "a" && random.oneIn(3)
        return repeats ? "'\(random.pick(["x", "y", "z"]))'" : "'v\(written.count)\(column)'"
      }
    }
    let kind = Int.random(in: 0..<5, using: &random)
    if kind < 2 {
      var values: [String] = []
      for column in table.columns {
        guard let value = try value(of: column) else { return nil }
        values.append(value)
      }
      return "INSERT INTO \(table.name) VALUES (\(values.joined(separator: ", ")))"
    }
    guard let row = try pick("SELECT rowid FROM \(table.name) ORDER BY rowid") else { return nil }
    if kind == 4 { return "DELETE FROM \(table.name) WHERE rowid = \(row)" }
    if schema == .caseless, random.oneIn(6) { return "UPDATE note SET id = upper(id) WHERE rowid = \(row)" }
    var columns = ["a", "b"]
    // Rows that change their parent leave scopes, so this is done only if all rows are shared.
    if history.sharing != .topics {
      columns += table.columns.filter {
        schema.parent(of: $0) != nil && schema != .links && $0 != table.name || $0 == "folder"
      }
    }
    let column = columns[Int.random(in: columns.indices, using: &random)]
    return try value(of: column).map { "UPDATE \(table.name) SET \(column) = \($0) WHERE rowid = \(row)" }
  }

  /// The unique values of a person's rows.
  func values(of person: Person) throws -> Set<String> {
    let queries = history.schema.tables.map { "SELECT a FROM \($0.name) UNION ALL SELECT b FROM \($0.name)" }
    let values = try TestDatabases.texts(queries.joined(separator: " UNION ALL "), on: person.path)
    return Set(values.filter { $0.hasPrefix("v") })
  }

  // MARK: Exchange

  /// The scope that one person shares with another.
  func scope(_ person: Person, _ other: Person?) -> ShareScope {
    let tables = history.schema.tables.map { SharedTable(TableName($0.name)) }
    guard history.sharing == .topics, let other else { return ShareScope(name: "all", tables: tables) }
    let condition = topicCondition(person, other)
    return ShareScope(
      name: "with \(other.name)",
      tables: tables.map {
        $0.name == "photo" && history.schema != .links ? $0.children(of: "album") : $0.where(condition)
      })
  }

  /// The rows that two people share by topic. Those of different pairs overlap.
  func topicCondition(_ person: Person, _ other: Person) -> String {
    "topic IN (0, \(1 + (person.number + other.number) % 2))"
  }

  private func share(
    from person: Person, to group: [Person], _ change: (inout ShareOptions) -> Void = { _ in }
  ) throws -> Bool {
    guard !group.isEmpty else { return false }
    var options = ShareOptions()
    options.isUnencrypted = !history.isEncrypted
    change(&options)
    if group.contains(where: { $0.gaps.contains(person.number) }) { options.resyncs = true }
    folders += 1
    let outbox = "out \(folders)"
    let id = try tick(person, UInt64(folders) &* 77)
    let report: ShareReport
    do {
      report = try DatabaseManager(person.path, home: person.home).share(
        scope(person, group.first), to: group.map { try person.recipient($0) },
        output: .folder(folder.file(outbox)), options: options, signedBy: person.ownIdentity())
    } catch let error as BuckiaError {
      throw Fault(kind: .refused, description: "\(person.name) cannot share: \(error) \(id)")
    }
    for other in group { other.gaps.remove(person.number) }
    let tables = report.tables.map { "\($0.name) +\($0.inserted) ~\($0.updated) -\($0.deleted) w\($0.withdrawn)" }
    note(
      "\(person.name): share with \(group.map(\.name).joined(separator: ", "))\(options.resyncs ? " --resync" : "")\(options.onLeave == .keep ? " --on-leave keep" : "")"
        + " # \(report.id.map { "\($0) \(report.isSnapshot ? "snapshot " : "")\(tables.joined(separator: ", "))" } ?? "nothing")"
    )
    guard folder.has(outbox) else { return false }
    for file in try folder.names(in: outbox) {
      for other in group { other.pending[person.number, default: []].append(folder.file("\(outbox)/\(file)")) }
    }
    return report.id != nil
  }

  private func apply(
    _ person: Person, from senders: [Person], count: Int, singly: Bool = false, twice: Bool = false
  ) throws {
    var files: [String] = []
    for sender in senders {
      let queue = person.pending[sender.number] ?? []
      // Files that are applied one by one overtake others.
      files += singly ? queue.suffix(count).reversed() : Array(queue.prefix(count))
      person.pending[sender.number] = singly ? Array(queue.dropLast(count)) : Array(queue.dropFirst(count))
    }
    for _ in 0..<(twice ? 2 : 1) {
      var paths: [String] = []
      for file in files {
        let path = folder.file("for \(person.name)/\((file as NSString).lastPathComponent)")
        if !FileManager.default.fileExists(atPath: path) {
          try FileManager.default.copyItem(atPath: file, toPath: path)
        }
        paths.append(path)
      }
      if singly {
        for path in paths { try receive(person, [path]) }
      } else if try !folder.names(in: "for \(person.name)").isEmpty {
        try receive(person, [folder.file("for \(person.name)")])
      }
    }
  }

  private func receive(_ person: Person, _ paths: [String]) throws {
    var options = ApplyOptions(removesNamedFiles: true)
    options.conflicts =
      switch history.policy {
      case .keepLocal: .keepLocal
      case .takeIncoming: .takeIncoming
      case .latest, .latestByClocks: .latest
      }
    if history.onlyKnown { options.trust = .known }
    if history.beginning == .copies { options.copies = .same }
    let report = try DatabaseManager(person.path, home: person.home).processInboundChanges(paths, options: options)
    let did = report.diffs.map {
      "\($0.id.map { "\($0)" } ?? "?") \($0.state) +\($0.inserted) ~\($0.updated) -\($0.deleted) !\($0.conflicts)"
    }
    note("\(person.name): apply # \(did.joined(separator: "; "))")
    person.gaps = []
    for diff in report.diffs {
      switch diff.state {
      case .applied: if let id = diff.id { person.applied.append("\(id)") }
      case .alreadyApplied: break
      case .waiting: person.gaps.formUnion(people.filter { $0.name == diff.sender }.map(\.number))
      case .rejected where isOfOldKey(diff), .quarantined where isOfOldKey(diff): break
      case .rejected, .held, .quarantined:
        throw Fault(
          kind: .refused, description: "\(person.name): \(diff.state) from \(diff.sender): \(diff.reason ?? "")")
      }
      if let warning = diff.warnings.first(where: { $0.code == .stateDiffers }) {
        throw Fault(kind: .stateDiffers, description: "\(person.name) from \(diff.sender): \(warning.arguments)")
      }
    }
  }

  /// True if a diff is refused because of keys that were replaced or are not confirmed yet.
  private func isOfOldKey(_ diff: DiffOutcome) -> Bool {
    history.has(.rotate) && [.untrusted, .endedKey].contains(diff.code)
  }

  /// Sets a person's clock as the history says, so that the order of ids does not depend on the machine.
  @discardableResult
  private func tick(_ person: Person, _ choice: UInt64) throws -> String {
    ticks += 1
    let time = start + 20 + ticks + UInt32(history.skews[person.number])
    let id = "\(KSUID(timestamp: time, payloadHigh: choice &* 0x9e37_79b9_7f4a_7c15, payloadLow: 0))"
    let clock = "\(person.home.path)/clock"
    if let old = FileManager.default.contents(atPath: clock), String(decoding: old, as: UTF8.self) > id { return id }
    try Data("\(id)\n".utf8).write(to: URL(fileURLWithPath: clock))
    return id
  }

  /// Lets all people share with each other and apply everything until nothing is sent.
  private func settle() throws -> [Fault] {
    for person in people {
      person.isIn = true
      try confirm(person)
    }
    for round in 1...(people.count + 4) {
      note("# round \(round)")
      var isQuiet = true
      for person in people {
        if !person.pending.allSatisfy(\.value.isEmpty) { isQuiet = false }
        let others = people.filter { $0.number != person.number }
        let groups = [.one, .topics].contains(history.sharing) ? others.map { [$0] } : [others]
        for group in groups {
          if try share(from: person, to: group) { isQuiet = false }
        }
      }
      for person in people { try apply(person, from: people, count: .max) }
      if isQuiet {
        return people.filter { !$0.gaps.isEmpty }.map { person in
          Fault(kind: .waiting, description: "\(person.name) waits for diffs of \(person.gaps.map { people[$0].name })")
        }
      }
    }
    return [Fault(kind: .endless, description: "still sending after \(people.count + 4) rounds")]
  }

  private func note(_ line: String) { script.append(line) }
}
