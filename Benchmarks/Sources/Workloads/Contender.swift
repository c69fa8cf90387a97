import BuckiaEngine
import SQLiteChangesets
import SQLiteConnections

/// Who applies the changes.
public enum Contender: String, CaseIterable, Sendable {
  /// `sqlite3changeset_apply_v2` on what the session extension recorded.
  case stock = "sqlite3changeset_apply_v2"
  /// One prepared INSERT, stepped for each row in key order: no conflicts, no checks, no ledger.
  case bareLoop = "bare INSERT loop, sorted"
  /// Buckia's engine, with plan, conflict handling and ledger.
  case engine = "Buckia"

  /// Applies a workload to an empty database, in one transaction.
  ///
  /// - Throws: `SQLiteError`, `EngineError`, `ChangesetError`.
  public func apply(_ work: InsertWorkload, to connection: borrowing SQLiteConnection) throws {
    switch self {
    case .stock: try StockChangesets.apply(work.recorded, to: connection) { _ in .abort }
    case .bareLoop: try insertEach(work, on: connection)
    case .engine:
      let transaction = try SQLiteTransaction(on: connection)
      let changes = IncomingChanges(
        key: LedgerKey(sender: "", id: nil, digest: [UInt8](repeating: 1, count: 32), isRaw: true), file: "benchmark",
        definitions: nil, changeset: ChangesetSpool(work.sorted))
      let plan = try ApplyPlan(changes, on: connection, settings: ApplySettings(policy: .abort, time: 0))
      _ = try plan.apply(in: transaction, on: connection)
      try transaction.commit()
    }
  }

  private func insertEach(_ work: InsertWorkload, on connection: borrowing SQLiteConnection) throws {
    let transaction = try SQLiteTransaction(on: connection)
    let insert = try connection.prepare("INSERT INTO t VALUES (?, ?, ?, ?, ?)", isPersistent: true)
    try work.sorted.withRawSpan { bytes in
      var reader = ChangesetReader()
      while try reader.next(in: bytes) != nil {
        for (index, value) in reader.new.enumerated() {
          // Sound: the bytes stay where they are until the loop ends.
          let payload = bytes.extracting(value.payloadRange).withUnsafeBytes { $0 }
          switch value.kind {
          case .undefined, .null: try insert.bindNull(at: index)
          case .integer: try insert.bind(value.integer(in: bytes), at: index)
          case .real: try insert.bind(value.real(in: bytes), at: index)
          case .text: try insert.bind(textNoCopy: payload, at: index)
          case .blob: try insert.bind(blobNoCopy: payload, at: index)
          }
        }
        try insert.run()
      }
    }
    try transaction.commit()
  }
}
