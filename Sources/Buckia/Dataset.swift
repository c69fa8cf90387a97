import BuckiaFormat
import BuckiaLedger
import BuckiaSharing
import SQLiteConnections
import SQLiteSchemas

/// One shared database, the same in all copies of it: what keeps the diffs of another database out.
///
/// A database that belongs to one names it in its diffs, and refuses those of another. It is on request only: a database that belongs to
/// none takes all diffs, and diffs that name none are taken everywhere.
public struct Dataset: Hashable, Sendable, CustomStringConvertible {
  let id: DatasetID

  init(_ id: DatasetID) { self.id = id }

  /// Reads an id: 32 hexadecimal digits; nil for anything else.
  public init?(_ text: String) {
    guard let id = DatasetID(hex: text.lowercased()) else { return nil }
    self.id = id
  }

  /// The id: 32 hexadecimal digits.
  public var description: String { id.description }

  /// What the ledger of a database says; nil for none.
  ///
  /// - Throws: `SQLiteError`; `LedgerError` for a newer ledger.
  static func read(on connection: borrowing SQLiteConnection) throws -> Dataset? {
    try LedgerSettings.dataset(on: connection).flatMap { DatasetID($0) }.map { Dataset($0) }
  }
}

extension DatabaseManager {
  /// The shared database that this one belongs to; nil for none.
  ///
  /// - Throws: `BuckiaError` when the database cannot be read, or has a newer ledger.
  public func dataset() throws -> Dataset? { try withReader { try Dataset.read(on: $0) } }

  /// Makes this database the first of a shared one. Copies of it belong to the same.
  ///
  /// The rows that it has now are kept as the baseline of all copies, by a hash each: whatever is edited or deleted in a copy before it is
  /// first shared, they are known to be the same rows.
  ///
  /// From now on its diffs name the dataset, and diffs of others are refused (`otherDataset`). Who has a copy from before joins with
  /// ``joinDataset(_:)``, or by applying a diff (see ``ApplyOptions/adoptsDataset``).
  ///
  /// ```swift
  /// let dataset = try database.beginDataset()
  /// try otherCopy.joinDataset(dataset)
  /// ```
  ///
  /// - Returns: The dataset.
  /// - Throws: `BuckiaError` with `datasetExists` where it belongs to one already; when the database cannot be written. Nothing has been
  ///   changed then.
  @discardableResult
  public func beginDataset() throws -> Dataset {
    return try setDataset(Dataset(Replica.randomID()), isNew: true) { known in
      guard let known else { return }
      throw BuckiaError(
        .datasetExists,
        "it belongs to the dataset \(known) already; nothing was changed. To make it part of another one, name that by its id",
        path: path)
    }
  }

  /// Makes this database part of a shared one, whatever it belonged to before.
  ///
  /// - Parameter dataset: The shared database.
  /// - Returns: The dataset.
  /// - Throws: `BuckiaError` when the database cannot be written. Nothing has been changed then.
  @discardableResult
  public func joinDataset(_ dataset: Dataset) throws -> Dataset {
    try setDataset(dataset) { _ in }
  }

  private func setDataset(
    _ dataset: Dataset, isNew: Bool = false, checking check: (Dataset?) throws -> Void
  ) throws -> Dataset {
    try withWriter { connection in
      let transaction = try SQLiteTransaction(on: connection)
      try check(Dataset.read(on: connection))
      try Ledger.prepare(on: connection)
      _ = try ReplicaRegistration(of: connection, in: home).settle(on: connection)
      try LedgerSettings.setDataset(dataset.id.bytes, on: connection)
      if isNew { try CopiedRows.begin(dataset: dataset.id.bytes, on: connection) }
      try transaction.commit()
      return dataset
    }
  }
}

extension Dataset: Codable {
  /// Reads the id.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    guard let dataset = Dataset(try container.decode(String.self)) else {
      throw DecodingError.dataCorruptedError(in: container, debugDescription: "it is no id of a dataset")
    }
    self = dataset
  }

  /// Writes the id.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(description)
  }
}
