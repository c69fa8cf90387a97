import Buckia
import BuckiaBytes
import BuckiaFormat
import BuckiaApply
import BuckiaDiff
import SQLiteChangesets
import SQLiteSchemas
import Testing
import TestSupport

/// Two people's databases and the folder between them.
struct Exchange {
  let folder: TemporaryFolder
  /// The database with which both begin.
  let base: String
  /// The receiver's copy.
  let mine: String
  /// The folder where diff files arrive.
  let inbound: String
  /// The home of the receiver and the senders.
  let home: BuckiaHome

  init(_ schema: String) throws {
    folder = try TemporaryFolder()
    base = try TestDatabases.run(schema, on: folder.file("base.sqlite"))
    mine = try folder.copy("base.sqlite", to: "mine.sqlite")
    inbound = folder.file("inbound")
    home = BuckiaHome(path: folder.file("home"))
    try folder.makeFolder("inbound")
  }

  var database: DatabaseManager { DatabaseManager(mine, home: home) }

  /// Edits a copy of the base, and sends the changes.
  @discardableResult
  func send(
    _ edits: String, raw: Bool = false, to output: DiffOutput? = nil, signedBy identity: Identity? = nil
  ) throws -> DiffReport {
    let theirs = try folder.copy("base.sqlite", to: "theirs-\(UInt64.random(in: 0...UInt64.max)).sqlite")
    try TestDatabases.run(edits, on: theirs)
    return try DatabaseManager(theirs, home: home).createDatabaseDiff(
      since: base, output: output ?? .folder(inbound), options: DiffOptions(isRaw: raw), signedBy: identity)
  }

  /// Overwrites the beginning of a table's root page in the receiver's copy.
  func damage(_ table: String) throws {
    let roots = try rows("SELECT rootpage FROM sqlite_schema WHERE name = '\(table)'")
    let root = try #require(roots.first.flatMap { Int($0) })
    var bytes = try fileBytes(mine)
    for offset in 0..<200 { bytes[(root - 1) * 4_096 + offset] = 0x5a }
    try folder.write(bytes, to: "mine.sqlite")
  }

  /// Applies the inbound folder.
  @discardableResult
  func apply(_ options: ApplyOptions = ApplyOptions(), resolver: ConflictResolver? = nil) throws -> ApplyReport {
    try database.processInboundChanges([inbound], options: options, resolver: resolver)
  }

  /// The only file of the inbound folder, verified, as input of the engine.
  func changes() throws -> IncomingChanges {
    let name = try #require(try folder.names(in: "inbound").first)
    let diff = try DiffFile.verified(at: "\(inbound)/\(name)")
    return IncomingChanges(diff, file: name)
  }

  /// Writes a given changeset to the inbound folder, as a diff file.
  @discardableResult
  func plant(
    _ changeset: [UInt8], definitions: [TableDefinition], author: AuthorSchema? = nil,
    id: KSUID = Exchange.id(at: 1_700_000_000)
  ) throws -> String {
    let path = "\(inbound)/\(DiffFileName.diff(id))"
    try DiffFileWriter().write(
      DiffFileDraft(manifest: Manifest(id: id), schema: .included(definitions), author: author),
      changeset: TemporaryBuffer(changeset), to: path)
    return path
  }

  /// Writes a given raw changeset to the inbound folder.
  @discardableResult
  func plantRaw(_ changeset: [UInt8], id: KSUID = Exchange.id(at: 1_700_000_000)) throws -> String {
    let path = "\(inbound)/\(DiffFileName.changeset(id))"
    try RawChangeset.write(TemporaryBuffer(changeset), to: path, replacing: false)
    return path
  }

  /// A random id of a given second.
  static func id(at unixSeconds: Int64) -> KSUID {
    KSUID(
      timestamp: UInt32(unixSeconds - KSUID.epoch), payloadHigh: .random(in: 0...UInt64.max),
      payloadLow: .random(in: 0...UInt64.max))
  }

  /// Rows of the receiver's database.
  func rows(_ sql: String) throws -> [String] { try TestDatabases.rows(sql, on: mine) }

  /// Rows of the receiver's database as readable text, with columns separated by bars.
  func texts(_ sql: String) throws -> [String] { try TestDatabases.texts(sql, on: mine) }

  /// The tables, with their rows, and the schema of the receiver's database, without those of Buckia.
  func everythingButOurs() throws -> [String: [String]] {
    var all = try TestDatabases.content(of: mine)
    all["schema"] = try rows(
      "SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE tbl_name NOT LIKE 'buckia%' ORDER BY name")
    return all
  }
}

/// An INSERT of integers into one table, as changeset bytes.
func insertion(into table: String, keyFlags: [UInt8] = [1, 0], values: [Int64] = [1, 2]) -> [UInt8] {
  var writer = ChangesetWriter()
  writer.beginTable(ChangesetTable(name: table, keyFlags: keyFlags))
  writer.beginChange(.insert)
  for value in values { writer.append(integer: value) }
  return writer.bytes
}
