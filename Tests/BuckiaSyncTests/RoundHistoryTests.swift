import Foundation
import NIOConcurrencyHelpers
import TestSupport
import Testing

@testable import BuckiaSync

/// Two people with one to three devices each, who send each other diffs through a storage. Accidents happen to the
/// storage, rounds, databases, folders and clocks.
private struct RoundHistory {
  /// A device, and saved copies of its database.
  private struct Device {
    var person: SyncPerson
    let user: String
    var copies: [String] = []
    /// Diffs that the device need not have: the storage lost them, or only the backup has them.
    var excused: Set<Int> = []
    var media: [String] = []
    /// True if the device has not synced since the storage was emptied or put back, so that other devices may not know
    /// it.
    var isUnseen = false
    /// True if an older copy has replaced its database since its last round, so that other devices may still believe
    /// its marks.
    var isRestored = false
  }

  /// A diff that inserts one row.
  private struct Made {
    let number: Int
    let recipient: String
    let file: String
    let bytes: [UInt8]
    let outbox: String
  }

  private var generator: SeededGenerator
  private let folder: TemporaryFolder
  private let storage = ModelStorage()
  private let base: String
  private var devices: [Device] = []
  private var made: [Made] = []
  private var states: [[RemotePath: ModelStorage.Object]] = []
  /// Earlier backups may lack the diffs up to this number: the storage was emptied or put back.
  private var backedUpFrom = 0
  private let isSeveral: [String: Bool]
  /// The users in whose folders diffs wait for a lost device.
  private var waiting: Set<String> = []
  private var people = 0
  /// Either homes lose their record of storages, or storages lose their objects: a device that loses both knows nothing
  /// of other devices.
  private let isStorageReplaced: Bool
  private(set) var script: [String] = []

  init(seed: UInt64) throws {
    generator = SeededGenerator(seed: seed)
    folder = try TemporaryFolder()
    base = try TestDatabases.run(SyncPerson.schema, on: folder.file("base.sqlite"))
    isStorageReplaced = generator.oneIn(2)
    isSeveral = ["anna": generator.oneIn(2), "ben": !generator.oneIn(3)]
    for user in ["anna", "ben"] { try addDevice(of: user, from: nil) }
  }

  private func other(_ user: String) -> String { user == "anna" ? "ben" : "anna" }
  private func rows(_ database: String) throws -> Set<Int> {
    Set(try TestDatabases.rows("SELECT id FROM note", on: database).compactMap { Int($0) })
  }

  // MARK: Steps

  private mutating func addDevice(of user: String, from database: String?) throws {
    people += 1
    let name = "\(user)\(people)"
    var person = try SyncPerson(name, in: folder, storage)
    let isSeveral = isSeveral[user] == true
    person.change = {
      $0.userID = user
      $0.hasSeveralDevices = isSeveral
    }
    if generator.oneIn(2) { person.options.fetches = ["**"] }
    try FileManager.default.createDirectory(atPath: person.outbox, withIntermediateDirectories: true)
    try FileManager.default.createDirectory(atPath: place(person, user, "originals"), withIntermediateDirectories: true)
    if database != nil { try FileManager.default.removeItem(atPath: person.database) }
    devices.append(Device(person: person, user: user))
  }

  private func place(_ person: SyncPerson, _ user: String, _ part: String) -> String {
    folder.file("\(person.name)/files/\(user)/\(part)")
  }

  mutating func step() async throws {
    let number = Int.random(in: 0..<devices.count, using: &generator)
    let device = devices[number]
    switch Int.random(in: 0..<24, using: &generator) {
    case 0..<6: try make(at: number)
    case 6..<15:
      let accident = drawnAccident()
      await round(
        number, accident,
        killedAt: accident == nil && generator.oneIn(2) ? Int.random(in: 1...60, using: &generator) : nil)
    case 15, 16:
      script.append("\(device.person.name): put a copy of the database away")
      let copy = folder.file("\(device.person.name)/copy \(device.copies.count)")
      try FileManager.default.copyItem(atPath: device.person.database, toPath: copy)
      devices[number].copies.append(copy)
      states.append(storage.objects)
    case 17: try await restore(number)
    case 18:
      let part = generator.pick(["inbound", ""])
      script.append("\(device.person.name): clear the local folder \(part)")
      try? FileManager.default.removeItem(atPath: place(device.person, device.user, part))
      try FileManager.default.createDirectory(
        atPath: place(device.person, device.user, "originals"), withIntermediateDirectories: true)
      if part.isEmpty { devices[number].media = [] }
    case 19 where !isStorageReplaced:
      script.append("\(device.person.name): lose what is known of storages")
      let index = folder.file("\(device.person.name)/home/sync")
      if FileManager.default.fileExists(atPath: index) { try FileManager.default.removeItem(atPath: index) }
      // Diffs wait for the former device, until a person tells sync to forget it.
      if isSeveral[device.user] == true { waiting.insert(device.user) }
    case 19,
      20 where !isStorageReplaced:
      return
    case 20 where generator.oneIn(2): try replaceStorage(with: [:], "emptied")
    case 20: if let state = states.randomElement(using: &generator) { try replaceStorage(with: state, "put back") }
    case 21:
      let days = Int64.random(in: -200...200, using: &generator)
      script.append("the clock jumps by \(days) days")
      storage.pass(days * 86_400_000)
    case 22:
      let file = "\(made.count) \(script.count).jpg"
      script.append("\(device.person.name): add \(file)")
      try Data([1, 2, 3]).write(
        to: URL(fileURLWithPath: place(device.person, device.user, "originals/\(file)")))
      devices[number].media.append(file)
    default: try await join(as: device.user)
    }
  }

  private mutating func drawnAccident() -> (call: Int, what: ModelStorage.Accident)? {
    guard !generator.oneIn(3) else { return nil }
    let call = Int.random(in: 1...18, using: &generator)
    let isDone = generator.oneIn(2)
    switch Int.random(in: 0..<7, using: &generator) {
    case 0..<2: return (call, .kill(isDone: isDone))
    case 2..<4:
      let codes: [StorageError.Code] = [.forbidden, .fullStorage, .conflict, .invalidAnswer, .unauthorized]
      return (call, .failure(codes.randomElement(using: &generator) ?? .forbidden, isDone: isDone))
    case 4, 5: return (call, .cut(isTold: isDone))
    default: return (call, .lie)
    }
  }

  /// Creates a diff for the other person.
  private mutating func make(at number: Int) throws {
    let (device, diff) = (devices[number], made.count + 1)
    let path = folder.file("made.sqlite")
    try? FileManager.default.removeItem(atPath: path)
    try FileManager.default.copyItem(atPath: base, toPath: path)
    try TestDatabases.run("INSERT INTO note VALUES (\(diff), 'row \(diff)')", on: path)
    let report = try DatabaseManager(path, home: device.person.home).createDatabaseDiff(
      since: base, output: .folder(device.person.outbox))
    let file = try #require(report.path)
    made.append(
      Made(
        number: diff, recipient: other(device.user), file: (file as NSString).lastPathComponent,
        bytes: try fileBytes(file), outbox: file))
    script.append("\(device.person.name): make diff \(diff)")
  }

  private mutating func round(
    _ number: Int, _ accident: (call: Int, what: ModelStorage.Accident)?, killedAt step: Int? = nil,
    checks: Bool = false
  ) async {
    var person = devices[number].person
    person.options.looksThroughStorage = checks
    storage.begin(accident)
    storage.pass(1000)
    let what = (accident.map { ", call \($0.call): \($0.what)" } ?? "") + (step.map { ", killed at step \($0)" } ?? "")
    let end = step.map { killing(at: $0) }
    let (settings, options) = (configuration(devices[number]), person.options)
    do {
      let result = try await LocalStep.$end.withValue(end) { try await BuckiaClient(settings).sync(options) }
      let failed = result.failures.map { "\($0.step.rawValue): \($0.message)" }
      if accident == nil && step == nil || !result.downloaded.isEmpty {
        (devices[number].isUnseen, devices[number].isRestored) = (false, false)
      }
      script.append(
        "\(person.name): round\(what) -> \(result.downloaded.count) down, \(result.applied?.applied.count ?? 0) applied, \(result.dropped.count) dropped, \(result.delivered.count) delivered \(failed.joined(separator: "; "))"
      )
    } catch { script.append("\(person.name): round\(what) -> \(error)") }
    storage.begin()
  }

  /// Ends the process at a local step: from then on nothing is done any more.
  private func killing(at step: Int) -> @Sendable () throws -> Void {
    let passed = NIOLockedValueBox(0)
    let storage = storage
    return {
      let count = passed.withLockedValue { count -> Int in
        count += 1
        return count
      }
      guard count >= step else { return }
      storage.die()
      throw CancellationError()
    }
  }

  private func configuration(_ device: Device) -> BuckiaConfiguration {
    var configuration = device.person.configuration()
    configuration.deliveries = [.init(from: device.person.outbox, to: other(device.user))]
    return configuration
  }

  /// Replaces a database by an older copy. The rows that it lacks are in the storage, or in a backup there.
  private mutating func restore(_ number: Int) async throws {
    let device = devices[number]
    guard let copy = device.copies.randomElement(using: &generator) else { return }
    script.append("\(device.person.name): restore \((copy as NSString).lastPathComponent)")
    for suffix in ["", "-wal", "-shm", "-journal"] {
      try? FileManager.default.removeItem(atPath: device.person.database + suffix)
    }
    try FileManager.default.copyItem(atPath: copy, toPath: device.person.database)
    devices[number].isRestored = true
    try await excuseForgotten(number)
  }

  /// Excuses the diffs that a restored database lacks. They must be on their way or in a backup.
  private mutating func excuseForgotten(_ number: Int) async throws {
    let device = devices[number]
    let has = try rows(device.person.database)
    var backups: Set<Int>?
    for diff in made where diff.recipient == device.user && !has.contains(diff.number) {
      if isOnItsWay(diff) || device.excused.contains(diff.number) { continue }
      if diff.number > backedUpFrom {
        if backups == nil { backups = try await rowsOfBackups(of: device) }
        try require(backups?.contains(diff.number) == true, "diff \(diff.number) was dropped, and is in no backup")
      }
      devices[number].excused.insert(diff.number)
    }
  }

  /// The rows in the backups of a person's folder.
  private func rowsOfBackups(of device: Device) async throws -> Set<Int> {
    var found: Set<Int> = []
    let backups = try BuckiaClient(configuration(device)).backups
    for entry in try await backups.history(home: device.person.home).points {
      let target = folder.file("look.sqlite")
      try? FileManager.default.removeItem(atPath: target)
      try await backups.restore(to: target, at: .id(entry.point.id))
      found.formUnion(try rows(target))
    }
    return found
  }

  private mutating func replaceStorage(with objects: [RemotePath: ModelStorage.Object], _ how: String) throws {
    script.append("the storage is \(how)")
    storage.objects = objects
    backedUpFrom = made.count
    for number in devices.indices { devices[number].isUnseen = true }
    // Diffs that were on their way are lost with it.
    for diff in made where !isOnItsWay(diff) {
      for number in devices.indices where devices[number].user == diff.recipient {
        devices[number].excused.insert(diff.number)
      }
    }
  }

  /// Sets up another device from the backup.
  private mutating func join(as user: String) async throws {
    guard isSeveral[user] == true, devices.count(where: { $0.user == user }) < 3 else { return }
    try addDevice(of: user, from: "backup")
    let device = devices[devices.count - 1]
    storage.begin()
    do { try await BuckiaClient(configuration(device)).restoreBackup(to: device.person.database) } catch let error
      as StorageError
    {
      script.append("\(device.person.name): joins -> \(error)")
      waiting.insert(user)
      devices.removeLast()
      return
    }
    script.append("\(device.person.name): joins from the backup")
    let has = try rows(device.person.database)
    for diff in made where diff.recipient == user && !has.contains(diff.number) && !isOnItsWay(diff) {
      // The device has to get diffs that the storage has lost from another device.
      try require(
        diff.number <= backedUpFrom || devices.contains { $0.user == user && $0.excused.contains(diff.number) },
        "diff \(diff.number) was dropped, and is not in the newest backup")
      devices[devices.count - 1].excused.insert(diff.number)
    }
  }

  // MARK: Checks

  /// True if a diff is in an outbox, or complete in the storage.
  private func isOnItsWay(_ diff: Made) -> Bool {
    if FileManager.default.fileExists(atPath: diff.outbox) { return true }
    guard let path = try? RemotePath("\(diff.recipient)/inbound/\(diff.file)") else { return false }
    return storage.objects[path]?.bytes == diff.bytes
  }

  struct Violation: Error, CustomStringConvertible {
    let description: String
  }

  private func require(_ holds: Bool, _ promise: @autoclosure () -> String) throws {
    if !holds { throw Violation(description: promise() + "\n" + script.joined(separator: "\n")) }
  }

  mutating func check() async throws {
    for number in devices.indices where devices[number].isRestored { try await excuseForgotten(number) }
    for diff in made where !isOnItsWay(diff) {
      for number in devices.indices where devices[number].user == diff.recipient && devices[number].isUnseen {
        devices[number].excused.insert(diff.number)
      }
      for device in devices where device.user == diff.recipient && !device.excused.contains(diff.number) {
        try require(
          rows(device.person.database).contains(diff.number),
          "diff \(diff.number) is neither in \(device.person.name) nor on its way")
      }
    }
  }

  /// Runs rounds without accidents, after which all devices must have all diffs.
  mutating func finish() async throws {
    script.append("no more accidents")
    for turn in 0..<3 {
      for number in devices.indices {
        await round(number, nil, checks: turn == 1)
        try await check()
      }
    }
    for diff in made {
      try require(!FileManager.default.fileExists(atPath: diff.outbox), "diff \(diff.number) was not delivered")
      for device in devices where device.user == diff.recipient && !device.excused.contains(diff.number) {
        try require(
          rows(device.person.database).contains(diff.number), "diff \(diff.number) never came to \(device.person.name)")
      }
    }
    let objects = storage.objects
    for device in devices {
      for file in device.media {
        try require(
          objects[RemotePath("\(device.user)/originals/\(file)")]?.bytes == [1, 2, 3], "\(file) is not in the storage")
      }
      let target = folder.file("restored by \(device.person.name)")
      do { try await BuckiaClient(configuration(device)).restoreBackup(to: target) } catch {
        throw Violation(description: "no backup of \(device.user): \(error)\n" + script.joined(separator: "\n"))
      }
    }
    for path in objects.keys where path.segments.dropFirst().first == "inbound" {
      let user = path.segments[0]
      if waiting.contains(user) { continue }
      try require(
        made.contains { diff in
          diff.file == path.name && diff.recipient == user
            && devices.contains { $0.user == user && (try? rows($0.person.database).contains(diff.number)) == false }
        }, "\(path) is left in the storage")
    }
  }
}

@Suite("Histories of rounds")
struct RoundHistoryTests {
  @Test(
    "In any history, each diff is applied by all devices of its recipient, or is on its way", arguments: Seeds.shards)
  func roundHistories(shard: Int) async throws {
    for seed in Seeds.range(100, shard: shard) {
      do {
        var history = try RoundHistory(seed: seed)
        for _ in 0..<(8 + Int(seed % 20)) {
          try await history.step()
          try await history.check()
        }
        try await history.finish()
      } catch { Issue.record("\(Seeds.replay(seed, "roundHistories")): \(error)") }
    }
  }
}
