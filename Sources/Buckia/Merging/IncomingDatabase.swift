import SQLiteConnections

/// The changes of a database that is merged into another one, since their base.
struct IncomingDatabase {
  /// The database.
  let source: RowSource
  /// The base; without tables if there is none.
  let base: RowSource
  /// Columns that were renamed since the base.
  let renames: [ColumnRename]
  /// The changes.
  let difference: DatabaseDifference
  /// The tables with another key than the other side's.
  let rekeyed: Set<TableName>
  /// The tables whose rows no key tells apart that the base has, too.
  let unpaired: [TableName]
  /// True if there is a base.
  let hasBase: Bool
  /// The statements of the base.
  let baseStatements: [SchemaStatement]
  /// The name of its file.
  let name: String
  /// The items that could not be compared or merged, except those that each database keeps for itself.
  let skipped: [SkippedItem]

  /// Compares a database with the base.
  ///
  /// - Parameters:
  ///   - path: The database.
  ///   - base: The base; nil or an empty file for none.
  ///   - busyTimeout: How long to wait for another program's lock, in milliseconds.
  ///   - options: How to merge.
  ///   - ours: The database that receives the changes.
  ///   - poll: Called from time to time; may throw to stop.
  ///   - progress: Called with the progress of the comparison. May throw to stop it.
  /// - Throws: `BuckiaError` when a file is missing, or with `nothingInCommon`; `SQLiteError` when the receiving database is damaged; what `DatabaseComparison` throws.
  init(
    _ path: String, since base: String?, busyTimeout: Int32, _ options: MergeOptions,
    into ours: borrowing SQLiteConnection, polling poll: () throws -> Void,
    progress: @escaping (DiffProgress) throws -> Void
  ) throws {
    guard FileSystem.exists(path) else {
      throw BuckiaError(.noSuchFile, "there is no such database to merge; check the path", path: path)
    }
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
    self.base = older
    if hasBase {
      try source.connection.requireContent()
      try ours.requireContent()
    }
    if !options.allowsUnrelated { try older.requireRelation(to: source) }
    // All pages of this database go into the result. Of the others, what goes there is read.
    try ours.requireReadableTables(polling: poll)
    let (known, theirs) = (try SchemaReader(older.connection), try SchemaReader(source.connection))
    baseStatements = try known.statements()
    renames = try known.renames(to: theirs, besides: options.renames)
    var compared = DiffOptions(renames: renames)
    let mine = try SchemaReader(ours)
    let named = OptionNames(options.ignoredColumns, options.matches, options.conflicts)
    if let unknown = try named.unknownTables(in: [known, mine, theirs]).first {
      throw BuckiaError(.noSuchTable, "there is no table \"\(unknown)\"; check its name")
    }
    for entry in known.entries where entry.kind == .table && !Replicability.isOwn(entry.name) {
      let table = try known.definition(of: entry)
      guard table.isKeyedByRowID, Replicability.refusal(of: table) == nil else { continue }
      if try known.mayHaveMovedRows(of: table, in: theirs) || known.mayHaveMovedRows(of: table, in: mine) {
        compared.contentTables.insert(entry.name)
      }
    }
    let toMine = try known.renames(to: mine, besides: options.renames)
    for entry in theirs.entries where entry.kind == .table && !Replicability.isOwn(entry.name) {
      guard let before = try known.table(named: entry.name), let here = try mine.table(named: entry.name) else {
        continue
      }
      let table = try theirs.definition(of: entry)
      if !here.hasSameKey(as: before), !here.hasSameKey(as: table) { compared.keys[entry.name] = here }
      for (place, column) in table.columns.enumerated() {
        let oldName = renames.first { $0.table == entry.name && ASCIIName.matches($0.newName, column.name) }?.oldName
        guard let old = before.column(named: oldName ?? column.name) else { continue }
        let newName = toMine.first {
          $0.table == entry.name && ASCIIName.matches($0.oldName, before.columns[old].name)
        }?.newName
        let own = here.column(named: newName ?? before.columns[old].name).map { here.affinity(at: $0) }
        let (first, last) = (before.affinity(at: old), table.affinity(at: place))
        guard let wanted = own != nil && own != first ? own : last, wanted != first || wanted != last else { continue }
        compared.affinities[entry.name, default: [:]][column.name] = wanted
      }
    }
    var found = try DatabaseComparison.run(from: older, to: source, options: compared, progress: progress)
    // If the other side's new key does not identify the rows, the local rows still have the old key.
    let unpaired = found.skipped.filter { $0.reason.code == .keyDiffers && compared.keys[TableName($0.name)] == nil }
    if !unpaired.isEmpty {
      for item in unpaired { compared.keys[TableName(item.name)] = try mine.table(named: TableName(item.name)) }
      found = try DatabaseComparison.run(from: older, to: source, options: compared, progress: progress)
    }
    difference = found
    rekeyed = Set(compared.keys.keys)
    self.unpaired = found.skipped.filter { $0.reason.code == .keyDiffers }.map { TableName($0.name) }
    let derived = Set(theirs.entries.filter(\.kind.isDerived).map(\.name))
    skipped = try difference.skipped.filter { item in
      let name = TableName(item.name)
      if derived.contains(name) { return false }
      return try item.reason.code != .notReplicated || !mine.hasTheSame(of: name, as: theirs)
    }
  }
}

extension SchemaReader {
  /// True if two databases have the same of a table that does not replicate, or neither has it.
  fileprivate func hasTheSame(of table: TableName, as other: SchemaReader) throws -> Bool {
    guard let mine = entry(named: table), let theirs = other.entry(named: table) else {
      return entry(named: table) == nil && other.entry(named: table) == nil
    }
    guard mine.isDefined(like: theirs) else { return false }
    do {
      return try contentStaying(of: mine) == other.contentStaying(of: theirs)
    } catch let error as SQLiteError where error.primaryCode == 1 {
      // A statement cannot contain its name.
      return false
    }
  }

  /// The columns that were renamed in a later state of the database: the declared ones, and those that the definitions
  /// show.
  func renames(to newer: SchemaReader, besides declared: [ColumnRename]) throws -> [ColumnRename] {
    func has(_ schema: SchemaReader, _ table: TableName, _ column: String) throws -> Bool {
      try schema.entry(named: table).map { try schema.definition(of: $0).column(named: column) != nil } ?? false
    }
    let known = try declared.filter { rename in
      try has(self, rename.table, rename.oldName) && !has(self, rename.table, rename.newName)
        && has(newer, rename.table, rename.newName) && !has(newer, rename.table, rename.oldName)
    }
    let found = try renames(to: newer).filter { other in
      !known.contains { rename in
        rename.table == other.table
          && (ASCIIName.matches(rename.oldName, other.oldName) || ASCIIName.matches(rename.newName, other.newName))
      }
    }
    return known + found
  }
}

extension TableKind {
  /// True if the rows follow from other tables: triggers or SQLite write them in each database.
  fileprivate var isDerived: Bool {
    switch self {
    case .shadow, .virtual(_, .keptByTriggers), .virtual(_, .external): true
    case .table, .view, .virtual: false
    }
  }
}

extension FileSystem {
  /// True if there is nothing in a file, as in the null device.
  fileprivate static func isEmpty(_ path: String) -> Bool {
    byteCount(of: resolved(path) ?? path) == 0
  }
}
