import Buckia
import BuckiaFormat
import BuckiaBytes
import BuckiaApply
import BuckiaDiff
import BuckiaLedger
import SQLiteSchemas
import SQLiteChangesets
import SQLiteConnections

/// All measured calls to the engine and the façade, in one place.
package enum EngineCalls {
  /// Applies changes in one transaction: plan, changes, conflict records, ledger, commit.
  ///
  /// - Throws: `ReplicationError`, `SQLiteError`, `ChangesetError`.
  static func apply(
    _ changes: IncomingChanges, policy: ConflictPolicies = .abort, resolver: ApplySettings.Resolver? = nil,
    recordsConflicts: Bool = true, indexes: IndexPolicy = .rebuildWhereFaster,
    to connection: borrowing SQLiteConnection
  ) throws {
    let transaction = try SQLiteTransaction(on: connection)
    var settings = ApplySettings(policies: policy, resolver: resolver, time: 2_000_000_000_000)
    settings.recordsConflicts = recordsConflicts
    settings.indexPolicy = indexes
    let plan = try Receiver.plan(changes, on: connection, settings: settings)
    _ = try plan.apply(in: transaction)
    try transaction.commit()
  }

  /// A raw changeset without a sender and with a made-up digest. The check of its structure is part of the measurement.
  static func changes(_ changeset: [UInt8]) throws -> IncomingChanges {
    try IncomingChanges(
      key: LedgerKey(sender: "", id: nil, digest: [UInt8](repeating: 1, count: 32), isRaw: true), file: "benchmark",
      definitions: nil, changeset: TemporaryBuffer(changeset))
  }

  /// Opens, checks and decompresses a diff file.
  static func open(_ path: String) throws -> IncomingChanges {
    IncomingChanges(try DiffFile.verified(at: path), file: path)
  }

  /// Applies a file, or all files of a folder, as `buckia apply` does.
  ///
  /// - Parameter home: Where it keeps what is not in the database; nil for a folder beside that.
  package static func apply(
    inbound path: String, to database: String, conflicts: ConflictPolicies = .keepLocal,
    decrypting key: AgeIdentity? = nil, home: String? = nil
  ) throws {
    let home = BuckiaHome(path: home ?? "\(database)-home")
    var options = ApplyOptions(conflicts: conflicts)
    options.decryption = try key.map { try FileDecryption(identities: [$0]) }
    let report = try DatabaseManager(database, home: home).processInboundChanges([path], options: options)
    if let refused = report.rejected.first {
      throw BuckiaError(.unsuitable, "\(refused.path) was refused: \(refused.reason ?? "")")
    }
  }

  /// Finds what turns one database into another and writes it into a diff file, as `buckia diff` does.
  ///
  /// - Parameter method: The comparison method; nil for the fastest one possible.
  package static func diff(
    from older: String, to newer: String, file: String, home: String, by method: DiffMethod? = nil
  ) throws {
    _ = try DatabaseManager(newer, home: BuckiaHome(path: home)).createDatabaseDiff(
      since: older, output: .file(file, replacing: false), options: DiffOptions(method: method))
  }

  /// Shares the table `t`, as `buckia share` does: all of it first, then what has changed.
  ///
  /// - Parameter key: Whose it is, encrypted and signed; nil to do neither, as with `--unencrypted`.
  static func share(_ database: String, sealedFor key: AgeIdentity? = nil, into file: String, home path: String) throws
  {
    let home = BuckiaHome(path: path)
    var options = ShareOptions()
    options.isUnencrypted = key == nil
    let identity = try key.map { _ in try home.identityIfAny() ?? home.makeIdentity(named: "Anna") }
    try DatabaseManager(database, home: home).share(
      ShareScope { SharedTable(TableName(TableShape.table)) },
      to: [key.map { ShareRecipient(try $0.makeRecipient()) } ?? ShareRecipient("ben")],
      output: .file(file, replacing: false), options: options, signedBy: identity)
  }

  /// One who signs diff files.
  static func signer() throws -> ManifestSigner {
    try ManifestSigner(seed: (0..<32).map { _ in UInt8.random(in: 0...255) })
  }

  /// How many bytes are left of some when they are compressed as in a diff file.
  static func compressedCount(_ bytes: [UInt8]) throws -> Int {
    let compressed = TemporaryBuffer()
    let output = try ZstdOutput(compressed, level: 1)
    try bytes.withUnsafeBytes { try output.write($0) }
    try output.finish()
    return Int(compressed.count)
  }

  /// The changes in a diff file, as bytes.
  static func changeset(in file: String) throws -> [UInt8] {
    try DiffFile.verified(at: file, name: .ifNamedByID).changeset.allBytes()
  }

  /// The definition of the table `t`, as a diff file carries it.
  static func definition(of shape: TableShape) throws -> TableDefinition {
    let connection = try SQLiteConnection(opening: ":memory:", as: .create)
    try connection.execute(shape.definition)
    return try tables(of: connection, named: [TableShape.table])[0]
  }

  /// The definitions of tables.
  static func tables(of connection: borrowing SQLiteConnection, named names: [String]) throws -> [TableDefinition] {
    let schema = try SchemaReader(connection)
    var tables: [TableDefinition] = []
    for name in names {
      guard let entry = schema.entry(named: TableName(name)) else {
        throw BuckiaError(.nothingToMeasure, "there is no table \"\(name)\"")
      }
      tables.append(try schema.definition(of: entry))
    }
    return tables
  }

  /// The id of the file with this number. Ids ascend, and lie in the past.
  static func id(_ number: Int) -> KSUID {
    KSUID(timestamp: UInt32(1 + number / 1_000), payloadHigh: UInt64(number), payloadLow: 0)
  }
}
