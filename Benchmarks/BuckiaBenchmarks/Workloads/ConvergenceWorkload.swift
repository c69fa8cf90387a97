import Buckia
import BuckiaFormat
import BuckiaLedger
import SQLiteConnections

extension ImplementationName {
  /// Buckia, a diff file under `latest`: it notes which diff has set what, and keeps what takes the diff back.
  package static let buckiaLatest: ImplementationName = "Buckia, latest"
  /// Buckia, the same file under `keep-local`, without clocks, with what takes it back.
  package static let buckiaKeepingLocal: ImplementationName = "Buckia, keep-local"
}

/// What a diff does in a database where the later diff wins.
package enum ConvergingWork: String, CaseIterable, Sendable {
  /// All rows are new.
  case inserts
  /// An eighth of the rows is updated, and an eighth deleted.
  case alterations = "updates-and-deletes"

  func title(rows: Int) -> String {
    switch self {
    case .inserts: "\(Quantity.grouped(rows)) inserts"
    case .alterations: "\(Quantity.grouped(max(2, rows / 4))) updates and deletes"
    }
  }
}

extension Comparison {
  /// A diff file under the policy `latest`, with all that is kept beside the rows: ledger, clocks, and the changes that take it
  /// back.
  ///
  /// - Parameters:
  ///   - target: How many times as fast as SQLite's own call it should be, which keeps nothing.
  ///   - share: What share of the time under `keep-local` it may take.
  package static func converging(
    _ work: ConvergingWork, _ shape: TableShape, rows: Int, target: Double? = nil, share: Double? = nil
  ) -> Comparison {
    Comparison(
      id: "latest-\(work.rawValue)-\(shape.id)",
      title: "\(work.title(rows: rows)), the later diff wins, undo kept, \(shape.rawValue)",
      figures: [
        Figure(.speed, of: .buckiaLatest, against: .stock, target: target),
        Figure(.share, of: .buckiaLatest, against: .buckiaKeepingLocal, target: share),
      ]
    ) { try ConvergenceWorkload(work, shape, rows: rows, in: $0).workload }
  }
}

/// A changeset, the same changes in a diff file, and the database to apply them to.
private struct ConvergenceWorkload {
  /// So much that nothing is left out of what takes the diff back.
  private static let undoBytes = 4 << 30

  let rows: Int
  let database: OriginalDatabase
  let changes: RecordedChanges
  let diff: String

  init(_ work: ConvergingWork, _ shape: TableShape, rows: Int, in folder: ScratchFolder) throws {
    self.rows = rows
    database = try OriginalDatabase(shape, rows: work == .inserts ? 0 : rows, in: folder)
    let source = try database.sourceConnection()
    switch work {
    case .inserts: changes = try RecordedChanges(of: shape.insertion(of: 1...rows), on: source)
    case .alterations:
      var random = SeededGenerator(seed: 1)
      try shape.choose(random.distinct(max(2, rows / 4), from: 1...rows), on: source)
      changes = try RecordedChanges(of: TableShape.alteration, on: source)
    }
    diff = try DiffFileDraft.write(changes.sorted, shape: shape, number: 0, into: folder.path).path
  }

  var workload: Workload {
    Workload(
      size: "changeset of \(changes.size), file database in WAL, default cache; Buckia applies a diff file",
      implementations: [
        database.implementation(.stock) { [changes] in try StockCalls.apply(changes.recorded, to: $0) },
        buckia(.buckiaKeepingLocal, .keepLocal), buckia(.buckiaLatest, .latest),
      ])
  }

  private func buckia(_ name: ImplementationName, _ policy: ConflictPolicies) -> Implementation {
    Implementation(name, isSubject: true) { [database, diff] folder in
      let path = try folder.copy(of: database.path)
      let manager = DatabaseManager(path, home: BuckiaHome(path: "\(path)-home"))
      try manager.initialize()
      if policy == .latest { try manager.keepClocks() }
      let connection = try SQLiteConnection(opening: path, as: .readWrite)
      try LedgerSettings.setRetention(
        AppliedEffects.Retention(bytes: Self.undoBytes, days: 30), on: connection)
      return ConnectionRun(connection) { _ in try EngineCalls.apply(inbound: diff, to: path, conflicts: policy) }
    }
  }
}
