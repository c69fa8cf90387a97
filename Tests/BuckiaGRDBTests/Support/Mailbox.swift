#if GRDB
  import Buckia
  import BuckiaGRDB
  import GRDB
  import TestSupport

  /// How the receiver opens its database.
  enum Opening: String, CaseIterable, Sendable {
    case queue
    case pool

    func open(_ path: String) throws -> any DatabaseWriter {
      switch self {
      case .queue: try DatabaseQueue(path: path)
      case .pool: try DatabasePool(path: path)
      }
    }
  }

  /// A sender with a copy of a database, and a receiver who uses GRDB.
  struct Mailbox {
    let folder: TemporaryFolder
    let inbound: String
    /// The receiver's database.
    let path: String
    let writer: any DatabaseWriter
    private let sender: String
    private let home: BuckiaHome

    static let schema = """
      CREATE TABLE notes(id INTEGER PRIMARY KEY, title TEXT);
      CREATE TABLE tags(name TEXT PRIMARY KEY NOT NULL, colour TEXT) WITHOUT ROWID;
      CREATE TABLE drafts(id INTEGER PRIMARY KEY, body TEXT);
      INSERT INTO notes VALUES (1, 'Boat'), (2, 'Radio');
      INSERT INTO tags VALUES ('sea', 'blue');
      INSERT INTO drafts VALUES (1, 'unfinished');
      """

    /// Creates both databases.
    ///
    /// - Parameter receiver: Additional SQL for the receiver's schema.
    init(_ opening: Opening = .queue, schema: String = schema, receiver: String = "") throws {
      folder = try TemporaryFolder()
      sender = try TestDatabases.run(schema, on: folder.file("sender.sqlite"))
      path = try folder.copy("sender.sqlite", to: "receiver.sqlite")
      try TestDatabases.run(receiver, on: path)
      writer = try opening.open(path)
      home = BuckiaHome(path: folder.file("home of the sender"))
      inbound = folder.file("inbound")
      try folder.makeFolder("inbound")
    }

    /// Creates the receiver's ledger, whose tables can then be observed.
    func makeLedger() throws { try writer.withBuckia { try $0.initialize() } }

    /// Lets the sender make a change, and a file with it arrive.
    func deliver(_ sql: String) throws {
      let before = try folder.copy("sender.sqlite", to: "sender-\(try folder.names(in: ".").count).sqlite")
      try TestDatabases.run(sql, on: sender)
      try DatabaseManager(sender, home: home).createDatabaseDiff(since: before, output: .folder(inbound))
    }

    /// The names of the files in the folder.
    func files() throws -> [String] { try folder.names(in: "inbound") }

    /// The first column of a query, as text.
    func texts(_ sql: String) throws -> [String] { try writer.read { try String.fetchAll($0, sql: sql) } }
  }
#endif
