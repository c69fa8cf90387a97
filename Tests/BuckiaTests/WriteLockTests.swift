import Buckia
import BuckiaApply
import BuckiaBytes
import BuckiaLedger
import Dispatch
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas
import TestSupport
import Testing

/// Other writers of the database wait while rows are written, and never for a file to be read or verified.
@Suite struct WriteLockTests {
  /// Files that each arrive only after a wait, in which another connection writes.
  private final class Source: IncomingFileSource {
    private final class Reader: IncomingFileReader {
      private var files: ArraySlice<IncomingFile>
      private var isThere = false
      private let meanwhile: () throws -> Void

      init(_ files: ArraySlice<IncomingFile>, meanwhile: @escaping () throws -> Void) {
        self.files = files
        self.meanwhile = meanwhile
      }

      func wait() throws {
        try meanwhile()
        isThere = true
      }

      func next() -> IncomingFile? {
        defer { isThere = false }
        return isThere ? files.popFirst() : nil
      }

      func stop() {}
    }

    private let path: String
    /// The files as they arrive, and as they are once they are verified.
    private let arriving: [IncomingFile]
    private let verified: [IncomingFile]
    private(set) var outcomes: [DiffOutcome] = []

    init(_ path: String, _ arriving: [IncomingFile], verified: [IncomingFile]) {
      self.path = path
      self.arriving = arriving
      self.verified = verified
    }

    var count: Int { arriving.count }

    func files(_ range: Range<Int>, streams: Bool) -> any IncomingFileReader {
      Reader(streams ? arriving[range] : verified[range]) { [path] in
        try TestDatabases.run("INSERT INTO waits VALUES (NULL)", on: path)
      }
    }

    func willReceive(_ index: Int) throws {}
    func didReceive(_ files: [ReceivedFile]) { outcomes += files.map(\.outcome) }
  }

  private func file(_ changes: IncomingChanges, _ content: IncomingFile.Content) -> IncomingFile {
    IncomingFile(
      path: changes.file, name: changes.file, id: changes.key.id, sender: "", content: content, byteCount: 100,
      digest: { changes.key.digest })
  }

  private func receive(_ source: Source, into path: String) throws {
    let connection = try SQLiteConnection(opening: path, as: .readWrite)
    var receiver = try Receiver(
      on: connection, settings: ApplySettings(time: 2_000_000_000_000), clock: { 2_000_000_000_000 })
    try receiver.receive(source)
    try receiver.end()
  }

  /// Receives files with the given content, which are complete when they are requested again.
  private func receive(
    _ count: Int, _ content: (IncomingChanges) -> IncomingFile.Content
  ) throws -> (outcomes: [DiffOutcome], waits: Int, notes: [String]) {
    let exchange = try Exchange("CREATE TABLE notes(id INTEGER PRIMARY KEY, n); CREATE TABLE waits(x)")
    var arriving: [IncomingFile] = []
    var verified: [IncomingFile] = []
    let notes = TableDefinition(
      name: "notes", columns: [ColumnDefinition(name: "id"), ColumnDefinition(name: "n")], primaryKey: [0])
    for number in 0..<Int64(count) {
      let id = Exchange.id(at: 1_600_000_000 + number)
      let changes = try IncomingChanges(
        key: LedgerKey(sender: "", id: id, digest: [UInt8(number)], isRaw: false), file: "\(number)",
        definitions: [notes],
        changeset: TemporaryBuffer(insertion(into: "notes", values: [number, number])))
      arriving.append(file(changes, content(changes)))
      verified.append(file(changes, .verified(changes)))
    }
    let source = Source(exchange.mine, arriving, verified: verified)
    try receive(source, into: exchange.mine)
    return (
      source.outcomes, try exchange.rows("SELECT * FROM waits").count,
      try exchange.rows("SELECT id FROM notes ORDER BY id")
    )
  }

  @Test("Other connections can write between two files if the next one has not arrived yet")
  func betweenFiles() throws {
    let (outcomes, waits, notes) = try receive(5) { .verified($0) }
    #expect(outcomes.map(\.state) == [.applied, .applied, .applied, .applied, .applied])
    #expect(waits == 5)
    #expect(notes == ["0", "1", "2", "3", "4"])
  }

  @Test("Other connections can write while a file arrives slowly, and it is applied once it is complete")
  func stalled() throws {
    let (outcomes, waits, notes) = try receive(2) { changes in
      let feed = ChangesetFeed(patience: 5)
      let slow = IncomingChanges(
        key: changes.key, file: changes.file, definitions: changes.definitions, changeset: changes.changeset,
        feed: feed)
      return .arriving(slow, finish: { _ = try feed.summary() })
    }
    #expect(outcomes.map(\.state) == [.applied, .applied])
    #expect(waits == 4)
    #expect(notes == ["0", "1"])
  }

  @Test("A DELETE that arrives after an INSERT with an equal key leaves the new row", arguments: [false, true])
  func deleteBehindInsert(isHere: Bool) throws {
    let exchange = try Exchange(
      "CREATE TABLE words(w TEXT PRIMARY KEY COLLATE NOCASE); \(isHere ? "INSERT INTO words VALUES ('apple');" : "") "
        + "CREATE TABLE waits(x)")
    var writer = ChangesetWriter()
    writer.beginTable(ChangesetTable(name: "words", keyFlags: [1]))
    writer.beginChange(.insert)
    writer.append(text: "Apple")
    let beginning = writer.bytes
    writer.beginChange(.delete)
    writer.append(text: "apple")
    let words = TableDefinition(
      name: "words", columns: [ColumnDefinition(name: "w")], primaryKey: [0])
    let whole = try IncomingChanges(
      key: LedgerKey(sender: "", id: Exchange.id(at: 1_600_000_000), digest: [1], isRaw: false), file: "1",
      definitions: [words], changeset: TemporaryBuffer(writer.bytes))
    let feed = ChangesetFeed()
    let summary = try ChangesetSummary.of(TemporaryBuffer(beginning))
    #expect(feed.publish(summary))
    let arriving = IncomingChanges(
      key: whole.key, file: whole.file, definitions: whole.definitions, changeset: whole.changeset, feed: feed)
    let rest = try whole.feed.summary()
    DispatchQueue.global().asyncAfter(deadline: .now() + 0.1) { feed.finish(rest) }
    let source = Source(
      exchange.mine, [file(whole, .arriving(arriving, finish: { _ = try feed.summary() }))],
      verified: [file(whole, .verified(whole))])
    try receive(source, into: exchange.mine)
    #expect(source.outcomes.map(\.state) == [.applied] && source.outcomes.map(\.conflicts) == [0])
    #expect(try TestDatabases.rows("SELECT w = 'Apple' COLLATE BINARY FROM words", on: exchange.mine) == ["1"])
  }
}
