import SQLiteConnections

/// The id of a database that several replicas are copies of. It keeps out diffs of other databases.
///
/// A database with a dataset names it in its diffs, and refuses diffs of another dataset. Datasets are optional: a
/// database without one accepts all diffs, and diffs without one are accepted everywhere.
public struct Dataset: Hashable, Sendable, CustomStringConvertible {
  let id: DatasetID

  init(_ id: DatasetID) { self.id = id }

  /// Reads an id: 32 hexadecimal digits; nil for any other text.
  public init?(_ text: String) {
    guard let id = DatasetID(hex: text.lowercased()) else { return nil }
    self.id = id
  }

  /// The id: 32 hexadecimal digits.
  public var description: String { id.description }

  /// The dataset in the ledger of a database; nil for none.
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

  /// Begins a dataset with this database. Copies of it belong to the same dataset.
  ///
  /// The present rows are recorded as the baseline of all copies, with a hash each. Whatever is edited or deleted in a
  /// copy before it is first shared, these rows are known to be the same.
  ///
  /// From now on the database's diffs name the dataset, and diffs of others are refused (`otherDataset`). An earlier
  /// copy joins with ``joinDataset(_:)``, or by applying a diff (see ``ApplyOptions/adoptsDataset``).
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

  /// Makes this database part of a dataset, whatever it belonged to before.
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
