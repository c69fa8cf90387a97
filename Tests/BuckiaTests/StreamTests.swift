import Buckia
import BuckiaApply
import BuckiaFormat
import BuckiaBytes
import BuckiaLedger
import SQLiteConnections
import TestSupport
import Testing

/// The order of the diffs of a stream, each of which builds on its predecessor.
@Suite struct StreamTests {
  @Test("A diff waits for its predecessor, names its id, and is applied when it has arrived")
  func gap() throws {
    let exchange = try Exchange(StreamAuthor.schema)
    var author = try StreamAuthor()
    let files = try author.files(5)
    try exchange.deliver(files[0], files[2], files[3])
    let first = try exchange.apply()
    #expect(first.diffs.map(\.state) == [.applied, .waiting, .waiting])
    #expect(first.diffs.map(\.code) == [nil, .missingPredecessor, .missingPredecessor])
    for diff in first.diffs.dropFirst() {
      let reason = try #require(diff.reason)
      #expect(reason.contains("\(files[1].id), number 2 of its stream, which has not arrived"), "\(reason)")
      #expect(reason.hasSuffix("that file, or for a snapshot of the stream (`buckia share --resync`)"), "\(reason)")
    }
    #expect(try exchange.rows("SELECT id FROM t") == ["1"])
    #expect(try exchange.database.log().map(\.state) == [.applied, .waiting, .waiting])
    #expect(try exchange.database.log().last?.reason?.contains("\(files[1].id)") == true)
    // Waiting files stay in the folder, and later files wait, too.
    try exchange.deliver(files[4])
    #expect(try exchange.apply().diffs.map(\.state) == [.waiting, .waiting, .waiting])
    try exchange.deliver(files[1])
    #expect(try exchange.apply().diffs.map(\.state) == [.applied, .applied, .applied, .applied])
    #expect(try exchange.rows("SELECT id FROM t") == ["1", "2", "3", "4", "5"])
    #expect(try exchange.database.log().map(\.state) == [.applied, .applied, .applied, .applied, .applied])
    #expect(try exchange.folder.names(in: "inbound") == [])
  }

  @Test("A diff whose predecessor was refused waits with that reason")
  func refusedPredecessor() throws {
    let exchange = try Exchange("\(StreamAuthor.schema); INSERT INTO t VALUES (2, 'mine')")
    var author = try StreamAuthor()
    let files = try author.files(3)
    try exchange.deliver(files)
    let report = try exchange.apply(ApplyOptions(conflicts: .abort))
    #expect(report.diffs.map(\.state) == [.applied, .rejected, .waiting])
    #expect(report.diffs.last?.reason?.contains("\(files[1].id), number 2 of its stream, which was refused") == true)
    #expect(try exchange.apply().diffs.map(\.state) == [.applied, .applied])
  }

  @Test("A new receiver waits for a snapshot, which replaces the diffs before it")
  func newcomer() throws {
    let exchange = try Exchange(StreamAuthor.schema)
    var author = try StreamAuthor()
    let files = try author.files(4)
    try exchange.deliver(files[2])
    #expect(try exchange.apply().diffs.map(\.state) == [.waiting])
    let snapshot = try author.next(after: files[3], row: 50, kind: .snapshot)
    let after = try author.next(after: snapshot)
    try exchange.deliver(snapshot, after)
    #expect(try exchange.apply().diffs.map(\.state) == [.alreadyApplied, .applied, .applied])
    try exchange.deliver(files[0], files[3])
    let late = try exchange.apply()
    #expect(late.diffs.map(\.state) == [.alreadyApplied, .alreadyApplied])
    #expect(late.diffs.allSatisfy { $0.reason?.contains("the snapshot \(snapshot.id)") == true })
    #expect(try exchange.rows("SELECT id FROM t") == ["6", "50"])
    #expect(try exchange.folder.names(in: "inbound") == [])
    #expect(try exchange.database.log().allSatisfy { $0.state == .applied })
  }

  @Test("The second of two diffs with one sequence number waits until a snapshot ends the fork")
  func fork() throws {
    let exchange = try Exchange(StreamAuthor.schema)
    var author = try StreamAuthor()
    let files = try author.files(3)
    let fork = try author.next(after: files[1], row: 30)
    let onFork = try author.next(after: fork, row: 40)
    try exchange.deliver(files)
    try exchange.apply()
    try exchange.deliver(fork, onFork)
    let report = try exchange.apply()
    #expect(report.diffs.map(\.state) == [.waiting, .waiting])
    #expect(report.diffs.map(\.code) == [.forkedStream, .forkedStream])
    let reason = try #require(report.diffs.first?.reason)
    #expect(reason.contains("its stream forks: \(files[2].id) was applied"))
    #expect(reason.hasSuffix("ask the sender for a snapshot (`buckia share --resync`)"), "\(reason)")
    #expect(try exchange.rows("SELECT id FROM t") == ["1", "2", "3"])
    try exchange.deliver(author.next(after: onFork, row: 60, kind: .snapshot))
    #expect(try exchange.apply().diffs.map(\.state) == [.alreadyApplied, .alreadyApplied, .applied])
    #expect(try exchange.rows("SELECT id FROM t") == ["60"])
    #expect(try exchange.folder.names(in: "inbound") == [])
  }

  @Test("A snapshot that is older than the applied one changes nothing, and diffs that follow it are a fork")
  func olderSnapshot() throws {
    let exchange = try Exchange(StreamAuthor.schema)
    var author = try StreamAuthor()
    let files = try author.files(2)
    let older = try author.next(after: files[1], row: 50, kind: .snapshot)
    let newer = try author.next(after: older, row: 60, kind: .snapshot)
    try exchange.deliver(newer)
    #expect(try exchange.apply().diffs.map(\.state) == [.applied])
    #expect(try exchange.rows("SELECT id FROM t") == ["60"])
    try exchange.deliver(older)
    let late = try exchange.apply()
    #expect(late.diffs.map(\.state) == [.alreadyApplied])
    #expect(late.diffs.first?.reason?.contains("the snapshot \(newer.id)") == true)
    #expect(try exchange.rows("SELECT id FROM t") == ["60"])
    #expect(try exchange.folder.names(in: "inbound") == [])
    // The sender's database was restored from a time between the two.
    let again = try author.next(after: older, row: 70)
    try exchange.deliver(again, author.next(after: again, row: 80))
    let report = try exchange.apply()
    #expect(report.diffs.map(\.state) == [.waiting, .waiting])
    #expect(report.diffs.map(\.code) == [.forkedStream, .forkedStream])
    #expect(report.diffs.first?.reason?.contains("its stream forks: \(newer.id) was applied") == true)
    #expect(try exchange.rows("SELECT id FROM t") == ["60"])
  }

  @Test("A diff that names its predecessor's id with another digest is refused")
  func otherPredecessor() throws {
    let exchange = try Exchange(StreamAuthor.schema)
    var author = try StreamAuthor()
    let first = try author.next(after: nil)
    try exchange.deliver(first)
    try exchange.apply()
    let other = StreamAuthor.File(
      id: first.id, digest: try #require(ContentDigest([UInt8](repeating: 7, count: 32))), sequence: 1, bytes: [])
    try exchange.deliver(author.next(after: other))
    let report = try exchange.apply()
    #expect(report.diffs.map(\.state) == [.rejected])
    #expect(report.diffs.map(\.code) == [.otherPredecessor])
    #expect(report.diffs.first?.reason?.contains("\(first.id)") == true)
  }

  @Test("A snapshot that replaces a stream ends it")
  func replacedStream() throws {
    let exchange = try Exchange(StreamAuthor.schema)
    var old = try StreamAuthor(1)
    var new = try StreamAuthor(2)
    let files = try old.files(4)
    new.time = old.time
    let snapshot = try new.next(after: nil, row: 50, kind: .snapshot, replacing: old.stream)
    old.time = new.time
    let late = try old.next(after: files[3])
    new.time = old.time
    try exchange.deliver(files[0], files[3], snapshot)
    #expect(try exchange.apply().diffs.map(\.state) == [.applied, .alreadyApplied, .applied])
    try exchange.deliver(files[1], late, new.next(after: snapshot, row: 51))
    let report = try exchange.apply()
    #expect(report.diffs.map(\.state) == [.alreadyApplied, .rejected, .applied])
    #expect(report.diffs[1].code == .endedStream)
    #expect(try exchange.rows("SELECT id FROM t") == ["50", "51"])
  }

  @Test("A file that waits for a lost one is settled by a snapshot in the same call, in any order of the files")
  func settledTogether() throws {
    for order in [
      [0, 1, 2, 3], [3, 2, 1, 0], [1, 0, 3, 2], [2, 3, 0, 1], [1, 2, 3, 0], [3, 0, 1, 2], [2, 0, 3, 1],
    ] {
      let exchange = try Exchange(StreamAuthor.schema)
      var author = try StreamAuthor()
      let lost = try author.files(2)
      let third = try author.next(after: lost[1])
      let fourth = try author.next(after: third)
      let snapshot = try author.next(after: fourth, row: 50, kind: .snapshot)
      let files = [lost[0], third, fourth, snapshot]
      let paths = try order.map { try exchange.folder.write(files[$0].bytes, to: "attachment \($0)") }
      let report = try exchange.database.processInboundChanges(paths)
      let states = Dictionary(uniqueKeysWithValues: report.diffs.map { ($0.id, $0.state) })
      #expect(report.diffs.map(\.path) == paths, "\(order)")
      #expect(states[third.id] == .alreadyApplied && states[fourth.id] == .alreadyApplied, "\(order): \(states)")
      #expect(states[snapshot.id] == .applied, "\(order)")
      #expect(try exchange.rows("SELECT id FROM t WHERE id <> 1") == ["50"], "\(order)")
      #expect(try exchange.database.log().allSatisfy { $0.state == .applied }, "\(order)")
    }
  }

  @Test("Files of a stream that are named out of order are all applied by one call")
  func namedInAnyOrder() throws {
    let exchange = try Exchange(StreamAuthor.schema)
    var author = try StreamAuthor()
    let files = try author.files(4)
    let paths = try [3, 1, 2, 0].map { try exchange.folder.write(files[$0].bytes, to: "attachment \($0)") }
    let report = try exchange.database.processInboundChanges(paths)
    #expect(report.diffs.map(\.state) == [.applied, .applied, .applied, .applied])
    #expect(try exchange.rows("SELECT id FROM t") == ["1", "2", "3", "4"])
  }

  @Test("A dry run settles waiting files as a real run does, and leaves them waiting")
  func dryRun() throws {
    let exchange = try Exchange(StreamAuthor.schema)
    var author = try StreamAuthor()
    let files = try author.files(3)
    try exchange.deliver(files[0], files[2], author.next(after: files[2], row: 50, kind: .snapshot))
    var options = ApplyOptions()
    options.isDryRun = true
    #expect(try exchange.apply(options).diffs.map(\.state) == [.applied, .alreadyApplied, .applied])
    #expect(try exchange.rows("SELECT id FROM t") == [])
    #expect(try exchange.apply().diffs.map(\.state) == [.applied, .alreadyApplied, .applied])
    #expect(try exchange.folder.names(in: "inbound") == [])
  }

  @Test("Streams of different senders with the same id are unrelated")
  func ofOthers() throws {
    let exchange = try Exchange(StreamAuthor.schema)
    var anna = try StreamAuthor(1, person: 1)
    var ben = try StreamAuthor(1, person: 2)
    let first = try anna.next(after: nil, row: 1)
    try exchange.deliver(first)
    try exchange.deliver(ben.next(after: nil, row: 2, kind: .snapshot, sequence: 9, replacing: anna.stream))
    try exchange.apply()
    try exchange.deliver(anna.next(after: first, row: 3))
    #expect(try exchange.apply().diffs.map(\.state) == [.applied])
    #expect(try exchange.rows("SELECT id FROM t") == ["1", "2", "3"])
  }

  @Test("In any order, with duplicates and pauses, all files are applied once")
  func anyOrder() throws {
    for seed in Seeds.range(40) {
      var random = SeededGenerator(seed: seed)
      let exchange = try Exchange(StreamAuthor.schema)
      var files: [StreamAuthor.File] = []
      var place: [KSUID: (stream: Int, number: Int)] = [:]
      for stream in 0..<3 {
        var author = try StreamAuthor(UInt8(stream))
        author.time += Int64.random(in: 0..<20, using: &random)
        var last: StreamAuthor.File?
        for number in 1...Int.random(in: 1...8, using: &random) {
          let file = try author.next(after: last, row: Int64(100 * stream + number))
          place[file.id] = (stream, number)
          files.append(file)
          last = file
        }
      }
      var applied: [KSUID] = []
      var left = files.shuffled(using: &random)
      while !left.isEmpty {
        let count = Int.random(in: 1...left.count, using: &random)
        try exchange.deliver(Array(left.prefix(count)))
        left.removeFirst(count)
        if random.oneIn(3), let again = files.randomElement(using: &random) { try exchange.deliver(again) }
        for diff in try exchange.apply().diffs where diff.state == .applied { applied.append(try #require(diff.id)) }
      }
      #expect(applied.count == files.count, "\(Seeds.replay(seed))")
      for stream in 0..<3 {
        let numbers = applied.compactMap { id in place[id].flatMap { $0.stream == stream ? $0.number : nil } }
        #expect(numbers == numbers.sorted(), "\(Seeds.replay(seed))")
      }
      #expect(try exchange.rows("SELECT count(*) FROM t") == ["\(files.count)"], "\(Seeds.replay(seed))")
      #expect(try exchange.database.log().allSatisfy { $0.state == .applied }, "\(Seeds.replay(seed))")
    }
  }

  @Test("On the app's connection, a diff waits for its predecessor, too")
  func borrowed() throws {
    let exchange = try Exchange(StreamAuthor.schema)
    var author = try StreamAuthor()
    let files = try author.files(2)
    try exchange.deliver(files[1])
    let changes = try exchange.changes()
    let connection = try SQLiteConnection(opening: exchange.mine, as: .readWrite)
    let transaction = try SQLiteTransaction(on: connection)
    func plan() throws -> DiffState? {
      do {
        _ = try Receiver.plan(changes, on: connection, settings: ApplySettings(time: 1_700_000_000_000))
        return nil
      } catch let refusal as Refusal {
        return refusal.state
      }
    }
    #expect(try plan() == .waiting)
    try Ledger.prepare(on: connection)
    #expect(try plan() == .waiting)
    transaction.rollback()
  }

  @Test("All waiting diffs name the missing one, and are applied when it has arrived")
  func manyWaiting() throws {
    let exchange = try Exchange(StreamAuthor.schema)
    var author = try StreamAuthor()
    let files = try author.files(300)
    try exchange.deliver(Array(files.dropFirst()))
    let report = try exchange.apply()
    #expect(report.diffs.allSatisfy { $0.state == .waiting && $0.reason?.contains("\(files[0].id)") == true })
    try exchange.deliver(files[0])
    #expect(try exchange.apply().diffs.map(\.state) == files.map { _ in .applied })
    #expect(try exchange.rows("SELECT count(*) FROM t") == ["300"])
  }
}
