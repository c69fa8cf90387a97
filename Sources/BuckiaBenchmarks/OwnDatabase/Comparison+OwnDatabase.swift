import BuckiaDiffFiles
import BuckiaDiff
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

extension ContenderName {
  /// Writing changes into a diff file.
  public static let packing: ContenderName = "packing into a diff file"
}

extension Comparison {
  /// What is measured with a person's own database: finding the difference and packing it, opening the file and
  /// applying it.
  public static func own(_ database: OwnDatabase) -> [Comparison] {
    [difference(of: database), application(of: database)]
  }

  private static func difference(of database: OwnDatabase) -> Comparison {
    Comparison(
      id: "own-difference", title: "finding the difference",
      figures: [
        Figure(.speed, of: .buckiaDiff, against: .sessionDiff), Figure(.share, of: .packing, against: .buckiaDiff),
      ]
    ) { _ in
      let after = try database.content(on: try SQLiteConnection(opening: database.newer, as: .readOnly))
      let found = try database.difference()
      return Workload(
        size: database.size(of: found.changeset),
        contenders: [
          Contender(.sessionDiff) { _ in
            ClosureTrial {
              _ = try StockCalls.difference(
                from: database.older, to: database.newer, tables: database.tables.map(\.name))
              return nil
            }
          },
          Contender(.buckiaDiff, isSubject: true) { folder in
            var found: DatabaseDifference?
            // SQLite's session misses what its collations call equal: each is held against the rows themselves instead.
            return ClosureTrial(content: { try database.requireContent(after, with: found, in: folder) }) {
              found = try database.difference()
              return nil
            }
          },
          Contender(.packing, isSubject: true) { folder in
            ClosureTrial {
              _ = try database.pack(found, into: folder)
              return nil
            }
          },
        ])
    }
  }

  private static func application(of database: OwnDatabase) -> Comparison {
    Comparison(
      id: "own-application", title: "applying it",
      figures: [Figure(.speed, against: .stock), Figure(.share, of: .opening, against: .buckia)]
    ) { holder in
      let found = try database.difference()
      let file = try database.pack(found, into: holder)
      return Workload(
        size: "\(database.size(of: found.changeset)), packed \(Quantity.size(file.bytes))",
        contenders: [
          Contender(.stock) { folder in
            try database.trial(in: folder) { try StockCalls.apply(database.recorded, onConflict: .omit, to: $0) }
          },
          Contender(.opening, isSubject: true) { _ in
            ClosureTrial {
              _ = try EngineCalls.open(file.path)
              return nil
            }
          },
          Contender(.buckia, isSubject: true) { folder in
            let opened = try EngineCalls.open(file.path)
            return try database.trial(in: folder) { try EngineCalls.apply(opened, policy: .keepLocal, to: $0) }
          },
        ])
    }
  }
}

extension OwnDatabase {
  fileprivate func size(of changeset: ChangesetSpool) -> String {
    let changed = tables.reduce(0) { $0 + $1.counts.total }
    return "\(Quantity.grouped(changed)) rows changed, changeset of \(Quantity.size(changeset.count))"
  }

  fileprivate func difference() throws -> DatabaseDifference {
    try DatabaseComparison.run(
      older: older, newer: newer, options: DiffOptions(tables: tables.map { TableName($0.name) }))
  }

  fileprivate func pack(
    _ difference: DatabaseDifference, into folder: ScratchFolder
  ) throws -> (path: String, bytes: Int) {
    let id = EngineCalls.id(0)
    let path = folder.file(DiffFileName.diff(id))
    let draft = DiffFileDraft(
      manifest: Manifest(id: id), schema: .included(difference.tables.map(\.definition)),
      tablesInKeyOrder: Set(difference.tables.map { TableName($0.definition.name) }))
    return (path, Int(try DiffFileWriter().write(draft, changeset: difference.changeset, to: path).bytes))
  }

  /// Work on a copy of the older database, without triggers and foreign-key actions.
  fileprivate func trial(
    in folder: ScratchFolder, _ work: @escaping (borrowing SQLiteConnection) throws -> Void
  ) throws -> any Trial {
    let path = try folder.copy(of: older)
    let connection = try SQLiteConnection(opening: path, as: .readWrite)
    try connection.execute("PRAGMA foreign_keys = OFF")
    try connection.enableTriggers(false)
    return ConnectionTrial(connection, content: { try self.content(on: $0) }, work)
  }

  fileprivate func requireContent(
    _ after: UInt64, with difference: DatabaseDifference?, in folder: ScratchFolder
  ) throws -> UInt64? {
    guard let difference else { return nil }
    let changeset = try difference.changeset.withBytes { $0.array(0..<$0.byteCount) }
    let connection = try Author.connection(to: try folder.copy(of: older))
    try StockCalls.apply(StockChangeset(changeset), to: connection)
    let found = try content(on: connection)
    guard found == after else {
      throw BenchmarkError(.resultsDiffer, "\(path): the difference that was found does not lead to the newer rows")
    }
    return nil
  }
}
