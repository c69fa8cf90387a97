import BuckiaFormat
import BuckiaBytes
import BuckiaLedger
import SQLiteSchemas
import Foundation
import SQLiteConnections
import TestSupport
import Testing

@testable import Buckia

/// Which replica a database is, and when it becomes another one because it was restored or copied.
@Suite struct ReplicaTests {
  @Test(
    "A database keeps the replica id and incarnation of its ledger, and only the owner can read the home's record"
  )
  func begins() throws {
    let bench = try ReplicaBench()
    #expect(try bench.initialize() == [])
    let replica = try #require(try bench.replica())
    let file = "\(bench.home.replicaFolder)/\(replica.id)"
    let attributes = try FileManager.default.attributesOfItem(atPath: file)
    #expect(attributes[.posixPermissions] as? Int == 0o600)
    #expect(try bench.initialize() == [])
    #expect(try bench.apply() == [])
    #expect(try bench.diff().warnings == [])
    #expect(try bench.replica() == replica)
    let known = try #require(bench.home.known(replica.id))
    #expect(known.incarnation == replica.incarnation)
    #expect(known.progress?.entry == 1)
    #expect(known.progress?.made != nil)
    #expect(known.path == FileSystem.resolved(bench.path))
    let other = try ReplicaBench()
    try other.apply()
    #expect(try other.replica()?.id != replica.id)
    #expect(try other.replica()?.incarnation != replica.incarnation)
  }

  @Test("A restored backup becomes another replica, with one warning", arguments: [true, false])
  func restored(inPlace: Bool) throws {
    let bench = try ReplicaBench()
    try bench.apply()
    let replica = try #require(try bench.replica())
    let backup = try bench.folder.copy(bench.path, to: "backup.sqlite")
    try bench.apply()
    try bench.replace(with: backup, inPlace: inPlace)
    #expect(try bench.apply() == [Warning(.replicaRestored)])
    let next = try #require(try bench.replica())
    #expect(next.id != replica.id)
    #expect(next.incarnation != replica.incarnation)
    #expect(try bench.apply() == [])
    #expect(try bench.replica() == next)
    // The backup is from before the incarnation that the home knows now.
    try bench.replace(with: backup, inPlace: inPlace)
    #expect(try bench.initialize() == [Warning(.replicaRestored)])
    #expect(try bench.replica()?.incarnation != next.incarnation)
    #expect(try bench.replica()?.incarnation != replica.incarnation)
  }

  @Test("A restored backup is also detected if only a diff was made since, and the next diff names the new replica")
  func restoredBeforeDiff() throws {
    let bench = try ReplicaBench()
    try bench.initialize()
    let replica = try #require(try bench.replica())
    let backup = try bench.folder.copy(bench.path, to: "backup.sqlite")
    let made = try bench.diff()
    #expect(made.warnings == [])
    try bench.replace(with: backup)
    let report = try bench.diff()
    #expect(report.warnings == [Warning(.replicaRestored)])
    // The earlier diff still counts as a file of this database.
    let known = try DatabaseManager(bench.path, home: bench.home).outgoingIDs()
    #expect(known.isSuperset(of: [made.id, report.id].compactMap { $0 }))
    let sender = try DiffFile.verified(at: try #require(report.path)).manifest.sender
    #expect(sender?.replica != replica.id)
    #expect(sender?.replica == (try bench.replica()?.id))
    #expect(sender?.incarnation == (try bench.replica()?.incarnation))
    #expect(sender?.incarnation != replica.incarnation)
  }

  @Test("A copy becomes another replica, and the original stays the same one")
  func copied() throws {
    let bench = try ReplicaBench()
    try bench.apply()
    let replica = try #require(try bench.replica())
    let original = try #require(FileSystem.resolved(bench.path))
    let copy = try bench.folder.copy(bench.path, to: "copy.sqlite")
    #expect(try bench.apply(to: copy) == [Warning(.replicaCopied, original)])
    #expect(try bench.apply(to: copy) == [])
    let other = try #require(try bench.replica(copy))
    #expect(other.id != replica.id)
    #expect(other.incarnation != replica.incarnation)
    #expect(try bench.apply() == [])
    #expect(try bench.replica() == replica)
    // A diff makes a copy another replica, too.
    let another = try bench.folder.copy(bench.path, to: "another.sqlite")
    let report = try bench.diff(of: another)
    #expect(report.warnings == [Warning(.replicaCopied, original)])
    let sender = try DiffFile.verified(at: try #require(report.path)).manifest.sender
    #expect(sender?.replica == (try bench.replica(another)?.id))
    #expect(sender?.replica != replica.id)
  }

  @Test("A copy of a locked database is recognized as a copy")
  func copyOfLocked() throws {
    let bench = try ReplicaBench()
    try bench.apply()
    let copy = try bench.folder.copy(bench.path, to: "copy.sqlite")
    let other = try SQLiteConnection(opening: bench.path, as: .readWrite)
    try other.execute("BEGIN EXCLUSIVE")
    #expect(try bench.apply(to: copy).map(\.code) == [.replicaCopied])
  }

  @Test("A moved or renamed database stays the same replica, and a link of either kind is no copy")
  func moved() throws {
    let bench = try ReplicaBench()
    try bench.apply()
    let replica = try bench.replica()
    let moved = try bench.move(bench.path, to: "moved % here.sqlite")
    #expect(try bench.apply(to: moved) == [])
    #expect(try bench.replica(moved) == replica)
    try FileManager.default.createSymbolicLink(atPath: bench.path, withDestinationPath: moved)
    #expect(try bench.apply() == [])
    try FileManager.default.removeItem(atPath: bench.path)
    try FileManager.default.linkItem(atPath: moved, toPath: bench.path)
    #expect(try bench.apply() == [])
    #expect(try bench.apply(to: moved) == [])
    #expect(try bench.replica(moved) == replica)
    // A copy is recognized by the present path of the original.
    let copy = try bench.folder.copy(moved, to: "copy.sqlite")
    #expect(try bench.apply(to: copy) == [Warning(.replicaCopied, try #require(FileSystem.resolved(moved)))])
  }

  @Test("A copy in the original's place stays the same replica, and an unused copy of the original causes no warning")
  func copyReplaces() throws {
    let bench = try ReplicaBench()
    try bench.apply()
    let unused = try bench.folder.copy(bench.path, to: "unused.sqlite")
    let copy = try bench.folder.copy(bench.path, to: "copy.sqlite")
    try bench.apply(to: copy)
    let replica = try bench.replica(copy)
    try FileManager.default.removeItem(atPath: bench.path)
    #expect(try bench.apply(to: bench.move(copy, to: "notes.sqlite")) == [])
    #expect(try bench.replica() == replica)
    // The path belongs to another replica now, so no other database has the first one.
    #expect(try bench.apply(to: unused) == [])
  }

  @Test("With a lost or new home, the database stays the same replica, with a warning")
  func lostHome() throws {
    let bench = try ReplicaBench()
    try bench.apply()
    let replica = try #require(try bench.replica())
    let other = BuckiaHome(path: bench.folder.file("other"))
    #expect(try bench.apply(home: other) == [Warning(.replicaOtherHome)])
    let next = try #require(try bench.replica())
    #expect(next == replica)
    #expect(try bench.apply(home: other) == [])
    // A damaged record counts as unknown.
    try Data("nonsense".utf8).write(to: URL(fileURLWithPath: "\(other.replicaFolder)/\(next.id)"))
    #expect(try bench.apply(home: other) == [Warning(.replicaOtherHome)])
    #expect(try bench.apply(home: other) == [])
  }

  @Test func `a share as the first command in a copy with another home warns only of an unknown replica`() throws {
    let bench = try ReplicaBench()
    try bench.apply()
    let copy = try bench.folder.copy(bench.path, to: "copy.sqlite")
    let other = BuckiaHome(path: bench.folder.file("other"))
    try other.makeIdentity(named: "ben")
    try TestDatabases.run("CREATE TABLE shared(id TEXT PRIMARY KEY); INSERT INTO shared VALUES ('a')", on: copy)
    var options = ShareOptions()
    options.isUnencrypted = true
    let report = try DatabaseManager(copy, home: other).share(
      ShareScope(name: "all") { SharedTable("shared") }, to: [ShareRecipient("anna")],
      output: .folder(bench.folder.file("outbox")), options: options, signedBy: other.identity())
    #expect(report.warnings == [Warning(.replicaUnknown)])
  }

  @Test("A copy that its home does not know becomes another replica")
  func unknownCopy() throws {
    let bench = try ReplicaBench()
    try bench.apply()
    let copy = try bench.folder.copy(bench.path, to: "copy.sqlite")
    let other = BuckiaHome(path: bench.folder.file("other"))
    #expect(try bench.apply(to: copy, home: other) == [Warning(.replicaUnknown)])
    #expect(try bench.replica(copy)?.id != bench.replica()?.id)
  }

  @Test("A backup from before the first replica becomes another one with a warning, and a new database has none")
  func olderThanReplica() throws {
    let bench = try ReplicaBench()
    let backup = try bench.folder.copy(bench.path, to: "backup.sqlite")
    try bench.apply()
    let replica = try #require(try bench.replica())
    try bench.replace(with: backup)
    #expect(try bench.apply() == [Warning(.replicaMissing)])
    #expect(try bench.replica()?.id != replica.id)
    #expect(try bench.apply() == [])
    // A new database that is initialized causes no warning.
    try FileManager.default.removeItem(atPath: bench.path)
    #expect(try bench.initialize() == [])
  }

  @Test("A home that cannot be written causes a warning, and nothing fails")
  func readOnlyHome() throws {
    let bench = try ReplicaBench()
    try bench.folder.write([], to: "occupied")
    let occupied = BuckiaHome(path: bench.folder.file("occupied"))
    let warning = Warning(.replicaNotKept, "\(occupied.path)/replicas")
    for _ in 0..<2 { #expect(try bench.apply(home: occupied) == [warning]) }
    #expect(try bench.initialize(home: occupied) == [warning])
    // A replica that the home cannot record is not begun.
    #expect(try bench.replica() == nil)
    #expect(try bench.apply() == [])
    let replica = try #require(try bench.replica())
    #expect(try bench.apply(home: occupied) == [warning])
    #expect(try bench.replica() == replica)
    #expect(try bench.apply() == [])
  }

  @Test("A dry run begins no replica")
  func dryRun() throws {
    let bench = try ReplicaBench()
    var options = ApplyOptions()
    options.isDryRun = true
    #expect(try bench.apply(options) == [])
    #expect(try bench.replica() == nil)
    #expect(!FileSystem.exists(bench.home.replicaFolder))
    try bench.apply()
    let replica = try bench.replica()
    let copy = try bench.folder.copy(bench.path, to: "copy.sqlite")
    #expect(try bench.apply(to: copy, options) == [])
    #expect(try bench.replica(copy) == replica)
  }

  @Test("Simultaneous first calls agree on one replica, and none of them reports a copy")
  func simultaneous() async throws {
    let bench = try ReplicaBench()
    let warnings = try await withThrowingTaskGroup(of: [Warning].self) { group in
      for _ in 0..<8 { group.addTask { try bench.initialize() } }
      return try await group.reduce(into: []) { $0 += $1 }
    }
    #expect(warnings == [])
    #expect(try FileSystem.names(in: bench.home.replicaFolder).count == 1)
  }

  @Test("The home knows the replicas of many databases, and drops those of missing databases first")
  func many() throws {
    let bench = try ReplicaBench()
    try bench.initialize()
    let replica = try #require(try bench.replica())
    var generator = SystemRandomNumberGenerator()
    for number in 0..<(2 * BuckiaHome.replicaLimit) {
      let id = try #require(ReplicaID.random(using: &generator))
      let path = number < 10 ? bench.path : bench.folder.file("gone-\(number).sqlite")
      // Five of them are from transactions that were rolled back.
      let progress = number < 5 ? nil : LedgerProgress()
      try bench.folder.write(
        Array(KnownReplica(incarnation: replica.incarnation, progress: progress, path: path).line.utf8),
        to: "home/replicas/\(id)")
    }
    let other = try TestDatabases.run(
      "CREATE TABLE notes(id INTEGER PRIMARY KEY, n)", on: bench.folder.file("b.sqlite"))
    #expect(try bench.apply(to: other) == [])
    #expect(try FileSystem.names(in: bench.home.replicaFolder).count == 7)
    #expect(try bench.apply() == [])
    #expect(try bench.apply(to: other) == [])
    #expect(try bench.replica() == replica)
  }

  @Test(
    "A record can have any path", arguments: ["/plain", "/with space", "/100%", "/line\nend", "/ü/\u{1F600}", "/%20"])
  func paths(path: String) throws {
    let incarnation = try #require(IncarnationID([UInt8](repeating: 7, count: 16)))
    for progress in [nil, LedgerProgress(), LedgerProgress(entry: .max, made: .maximum)] {
      let known = KnownReplica(incarnation: incarnation, progress: progress, path: path)
      #expect(KnownReplica(line: Array(known.line.utf8)) == known)
      // Text that a longer line has left behind is ignored.
      #expect(KnownReplica(line: Array("\(known.line)left".utf8)) == known)
      #expect(KnownReplica(line: Array(known.line.utf8.dropLast())) == nil)
    }
  }

  @Test("A diff names its replica, and a diff of a database without a ledger does not")
  func sender() throws {
    let bench = try ReplicaBench()
    #expect(try DiffFile.verified(at: try #require(try bench.diff().path)).manifest.sender == nil)
    #expect(try bench.replica() == nil)
    try bench.initialize()
    let replica = try #require(try bench.replica())
    let sender = try DiffFile.verified(at: try #require(try bench.diff().path)).manifest.sender
    #expect(sender == Manifest.Sender(replica: replica.id, incarnation: replica.incarnation))
    #expect(try bench.diff(of: nil, DiffOptions(isRaw: true)).warnings == [])
  }

  @Test("A diff of a locked database names its replica, and a warning says that the diff was not recorded")
  func diffOfLocked() throws {
    let bench = try ReplicaBench()
    try bench.initialize()
    let replica = try #require(try bench.replica())
    let before = try bench.folder.copy(bench.path, to: "before.sqlite")
    let copy = try bench.folder.copy(bench.path, to: "copy.sqlite")
    for path in [bench.path, copy] {
      try TestDatabases.run("INSERT INTO notes VALUES (1, 2)", on: path)
      let other = try SQLiteConnection(opening: path, as: .readWrite)
      try other.execute("BEGIN IMMEDIATE")
      let report = try DatabaseManager(path, home: bench.home).createDatabaseDiff(
        since: before, output: .folder(bench.folder.file("outbox")))
      let sender = try DiffFile.verified(at: try #require(report.path)).manifest.sender
      // A copy cannot become another replica now, and must not name the original one.
      #expect(sender?.replica == (path == copy ? nil : replica.id))
      #expect(report.warnings.map(\.code) == [path == copy ? .replicaUnsettled : .diffNotNoted])
    }
  }

  @Test("An undo makes a copy another replica, too, unless it is a dry run")
  func undo() throws {
    let bench = try ReplicaBench()
    try bench.apply()
    let replica = try bench.replica()
    let copy = DatabaseManager(try bench.folder.copy(bench.path, to: "copy.sqlite"), home: bench.home)
    let applied = try #require(try copy.log().first?.diff)
    var options = UndoOptions()
    options.isDryRun = true
    #expect(try copy.undo([.diff("\(applied)")], options: options).warnings == [])
    #expect(try bench.replica(copy.path) == replica)
    #expect(try copy.undo([.diff("\(applied)")]).warnings.map(\.code) == [.replicaCopied])
    #expect(try bench.replica(copy.path) != replica)
    #expect(try copy.undo([.unsigned]).warnings == [])
  }

  @Test("A moved database keeps the files in its outbox, and a copy applies and removes them")
  func outbox() throws {
    let bench = try ReplicaBench()
    try bench.initialize()
    try bench.diff()
    let moved = try bench.move(bench.path, to: "moved.sqlite")
    let outbox = bench.folder.file("outbox")
    let kept = try DatabaseManager(moved, home: bench.home).processInboundChanges([outbox])
    #expect(kept.outgoingFolders == [outbox])
    #expect(kept.removed.isEmpty)
    let copy = try bench.folder.copy(moved, to: "copy.sqlite")
    let taken = try DatabaseManager(copy, home: bench.home).processInboundChanges([outbox])
    #expect(taken.outgoingFolders == [])
    #expect(taken.removed.count == 1)
  }
}
