import BuckiaDiff
import BuckiaSchemaPlans
import SQLiteSchemas

/// A database that is to be merged into another one: what it has changed since their base.
struct IncomingDatabase {
  /// The database.
  let source: RowSource
  /// What it has changed.
  let difference: DatabaseDifference
  /// Whether there is a base.
  let hasBase: Bool
  /// The statements of the base.
  let baseStatements: [SchemaStatement]
  /// The name of its file.
  let name: String
  /// What could not be compared or taken, but for what each database keeps by itself.
  let skipped: [SkippedItem]

  /// Compares a database with the base.
  ///
  /// - Parameters:
  ///   - path: The database.
  ///   - base: The base; nil or an empty file where there is none.
  ///   - busyTimeout: How long to wait for another program's lock, in milliseconds.
  ///   - allowsUnrelated: Whether the two may share no table.
  ///   - progress: Is told how far the comparison has come. May throw to stop.
  /// - Throws: `BuckiaError` when a file is missing, or with `nothingInCommon`; what `DatabaseComparison` throws.
  init(
    _ path: String, since base: String?, busyTimeout: Int32, allowsUnrelated: Bool,
    progress: @escaping (DiffProgress) throws -> Void
  ) throws {
    try DatabaseManager(path).requireFile()
    if let base {
      guard FileSystem.exists(base) else {
        throw BuckiaError(
          .noSuchFile,
          "there is no such base; check the path, and where the two have no base in common, name an empty file, such as /dev/null",
          path: base)
      }
      try DatabaseManager(base).requireFile()
    }
    name = FileSystem.name(of: path)
    source = try RowSource(opening: path, busyTimeout: busyTimeout)
    // An empty file is a database without tables: no state that two sides can have begun with.
    let base = base.flatMap { FileSystem.isEmpty($0) ? nil : $0 }
    hasBase = base != nil
    let older = try base.map { try RowSource(opening: $0, busyTimeout: busyTimeout) } ?? RowSource.empty()
    if !allowsUnrelated { try older.requireRelation(to: source) }
    baseStatements = try SchemaReader(older.connection).statements()
    difference = try DatabaseComparison.run(from: older, to: source, progress: progress)
    let derived = Set(try SchemaReader(source.connection).entries.filter(\.kind.isDerived).map(\.name))
    skipped = difference.skipped.filter { !derived.contains(TableName($0.name)) }
  }
}

extension TableKind {
  /// Whether the rows follow from other tables: triggers or SQLite write them in each database.
  fileprivate var isDerived: Bool {
    switch self {
    case .shadow, .virtual(_, .keptByTriggers), .virtual(_, .external): true
    case .table, .view, .virtual: false
    }
  }
}

extension FileSystem {
  /// Whether there is nothing in a file, as in the null device.
  fileprivate static func isEmpty(_ path: String) -> Bool {
    byteCount(of: resolved(path) ?? path) == 0
  }
}
