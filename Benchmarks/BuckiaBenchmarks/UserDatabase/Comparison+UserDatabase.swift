import Buckia
import BuckiaBytes
import BuckiaFormat
import BuckiaDiff
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

extension ImplementationName {
  /// Writing changes into a diff file.
  package static let packing: ImplementationName = "packing into a diff file"
}

extension Comparison {
  /// The comparisons on a user's database: finding the difference and packing it, opening the file and applying it.
  package static func userDatabase(_ database: UserDatabase) -> [Comparison] {
    [difference(of: database), application(of: database)]
  }

  private static func difference(of database: UserDatabase) -> Comparison {
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
        implementations: [
          Implementation(.sessionDiff) { _ in
            ClosureRun {
              _ = try StockCalls.difference(
                from: database.older, to: database.newer, tables: database.tables.map(\.name))
              return nil
            }
          },
          Implementation(.buckiaDiff, isSubject: true) { folder in
            var found: DatabaseDifference?
            // SQLite's session misses changes between values that a collation calls equal. So compare with the rows of
            // the newer copy instead of with each other.
            return ClosureRun(content: { try database.requireContent(after, with: found, in: folder) }) {
              found = try database.difference()
              return nil
            }
          },
          Implementation(.packing, isSubject: true) { folder in
            ClosureRun {
              _ = try database.pack(found, into: folder)
              return nil
            }
          },
        ])
    }
  }

  private static func application(of database: UserDatabase) -> Comparison {
    Comparison(
      id: "own-application", title: "applying it",
      figures: [Figure(.speed, against: .stock), Figure(.share, of: .opening, against: .buckia)]
    ) { holder in
      let found = try database.difference()
      let file = try database.pack(found, into: holder)
      return Workload(
        size: "\(database.size(of: found.changeset)), packed \(Quantity.size(file.bytes))",
        implementations: [
          Implementation(.stock) { folder in
            try database.run(in: folder) { try StockCalls.apply(database.recorded, onConflict: .omit, to: $0) }
          },
          Implementation(.opening, isSubject: true) { _ in
            ClosureRun {
              _ = try EngineCalls.open(file.path)
              return nil
            }
          },
          Implementation(.buckia, isSubject: true) { folder in
            let opened = try EngineCalls.open(file.path)
            return try database.run(in: folder) { try EngineCalls.apply(opened, policy: .keepLocal, to: $0) }
          },
        ])
    }
  }
}

extension UserDatabase {
  fileprivate func size(of changeset: TemporaryBuffer) -> String {
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

  /// A run on a copy of the older database, without triggers and foreign-key actions.
  fileprivate func run(
    in folder: ScratchFolder, _ work: @escaping (borrowing SQLiteConnection) throws -> Void
  ) throws -> any PreparedRun {
    let path = try folder.copy(of: older)
    let connection = try SQLiteConnection(opening: path, as: .readWrite)
    try connection.execute("PRAGMA foreign_keys = OFF")
    try connection.enableTriggers(false)
    return ConnectionRun(connection, content: { try self.content(on: $0) }, work)
  }

  fileprivate func requireContent(
    _ after: UInt64, with difference: DatabaseDifference?, in folder: ScratchFolder
  ) throws -> UInt64? {
    guard let difference else { return nil }
    let changeset = try difference.changeset.allBytes()
    let connection = try SQLiteConnection.withoutSideEffects(opening: try folder.copy(of: older))
    try StockCalls.apply(StockChangeset(changeset), to: connection)
    let found = try content(on: connection)
    guard found == after else {
      throw BuckiaError(.resultsDiffer, "\(path): the difference that was found does not lead to the newer rows")
    }
    return nil
  }
}
