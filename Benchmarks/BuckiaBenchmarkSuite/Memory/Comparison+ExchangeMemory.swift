import ArgumentParser
import Buckia
import BuckiaBenchmarks
import Foundation
import SQLiteConnections

/// Work on many rows that somebody else has sent.
enum ExchangeWork: String, CaseIterable, ExpressibleByArgument {
  /// Applying the rows once more, because their sender begins a new stream.
  case resync
  /// Sharing them with their sender for the first time.
  case answer
  /// Saying in words which rows both have.
  case words
  /// Taking back the diff that has brought them.
  case undo
  /// Deciding a conflict of each tenth row.
  case resolve

  var title: String {
    switch self {
    case .resync: "a share that begins a new stream"
    case .answer: "answering a share"
    case .words: "the words for shared rows"
    case .undo: "taking back a diff"
    case .resolve: "deciding conflicts"
    }
  }

  /// Does it.
  func run(on database: String, _ file: String, home: String) throws {
    let database = DatabaseManager(database, home: BuckiaHome(path: home))
    switch self {
    case .resync: try Exchange.apply(file, to: database)
    case .answer: try Exchange.share(database, into: file)
    case .words: _ = try database.status(includesWords: true)
    case .undo: try database.undo([.unsigned])
    case .resolve: try database.resolve(matching: ConflictFilter(), taking: .incoming)
    }
  }
}

extension ImplementationName {
  fileprivate static let exchanging: ImplementationName = "Buckia, a process that does it"
}

extension Comparison {
  /// The peak resident memory of a process that does something with many rows that were sent to it.
  static func memory(of work: ExchangeWork, rows: Int) -> Comparison {
    Comparison(
      id: "memory-\(work.rawValue)", title: "Peak memory, \(work.title), \(Quantity.grouped(rows)) rows", unit: .bytes,
      figures: [Figure(.value, of: .exchanging, against: nil, target: Double(128 << 20))]
    ) { folder in
      let exchange = try Exchange(for: work, rows: rows, in: folder)
      return Workload(
        size: "\(Quantity.grouped(rows)) rows",
        implementations: [
          Implementation(.exchanging, isSubject: true) { folder in
            let database = try folder.copy(of: exchange.database)
            let home = folder.file("home")
            try FileManager.default.copyItem(atPath: exchange.home, toPath: home)
            let file = work == .answer ? folder.newFile(".bdiff") : exchange.file
            return ClosureRun(content: { 0 }) {
              try MemoryCommand.peak("exchange", work.rawValue, database, file, home)
            }
          }
        ])
    }
  }
}

/// Two databases, one of which has got all its rows from the other.
private struct Exchange {
  /// The one that has got them.
  let database: String
  /// A file for it.
  let file: String
  let home: String

  private static let definition = "CREATE TABLE note(id INTEGER PRIMARY KEY, title TEXT, text TEXT)"

  init(for work: ExchangeWork, rows: Int, in folder: ScratchFolder) throws {
    let author = folder.newFile()
    let connection = try SQLiteConnection(opening: author, as: .create)
    try connection.execute(
      """
      PRAGMA synchronous = OFF; \(Self.definition); WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(rows))
      INSERT INTO note SELECT i, 'title ' || i, 'the text of note ' || (i * 7919 % 1000003) FROM n
      """)
    database = folder.newFile()
    home = folder.file("home")
    let reader = try SQLiteConnection(opening: database, as: .create)
    try reader.execute(Self.definition)
    if work == .resolve {
      try reader.execute(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 10 FROM n WHERE i < \(rows - 9)) INSERT INTO note SELECT i, 'mine', NULL FROM n"
      )
    }
    let source = DatabaseManager(author, home: BuckiaHome(path: folder.file("author")))
    let target = DatabaseManager(database, home: BuckiaHome(path: home))
    if work == .undo { try target.setUndoRetention(bytes: 1 << 32) }
    let first = folder.newFile(".bdiff")
    try Self.share(source, into: first)
    try Self.apply(first, to: target)
    guard work == .resync else {
      file = first
      return
    }
    file = folder.newFile(".bdiff")
    try Self.share(source, into: file, resyncs: true)
  }

  static func share(_ database: DatabaseManager, into file: String, resyncs: Bool = false) throws {
    var options = ShareOptions()
    options.isUnencrypted = true
    options.resyncs = resyncs
    try database.share(
      ShareScope { SharedTable("note") }, to: [ShareRecipient("somebody")], output: .file(file, replacing: false),
      options: options)
  }

  static func apply(_ file: String, to database: DatabaseManager) throws {
    let report = try database.processInboundChanges([file], options: ApplyOptions())
    guard let refused = report.rejected.first else { return }
    throw BuckiaError(.unsuitable, "\(refused.path) was refused: \(refused.reason ?? "")")
  }
}
