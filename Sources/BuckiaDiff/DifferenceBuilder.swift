import BuckiaBytes
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Compares two snapshots table by table, and gathers the result.
struct DifferenceBuilder {
  let older: DatabaseSnapshot
  let newer: DatabaseSnapshot
  let options: DiffOptions
  private let progress: ProgressReporter
  /// The pages of both; nil if another method was asked for.
  private let pages: PagePair?
  /// SQLite's own comparison; nil if another method was asked for.
  private let session: SessionComparison?
  /// The collating sequence that orders text.
  private let collation: String

  private let changeset = TemporaryBuffer()
  private(set) var tables: [TableDifference] = []
  private var skipped: [SkippedItem] = []
  private var fallbacks: [SkippedItem] = []
  private var newTableCount = 0
  var documents = DocumentSizeBudget()
  var author: AuthorSchema?

  /// - Parameters:
  ///   - older: The database to start from.
  ///   - newer: The database to arrive at.
  ///   - pages: The pages of both, if these are compared.
  init(
    _ older: DatabaseSnapshot, _ newer: DatabaseSnapshot, pages: PagePair?, options: DiffOptions,
    _ progress: ProgressReporter
  ) throws {
    self.older = older
    self.newer = newer
    self.options = options
    self.progress = progress
    self.pages = pages
    if older.isUTF16 || newer.isUTF16 {
      try older.source.requireByteCollation()
      try newer.source.requireByteCollation()
      collation = SQLiteConnection.byteCollation
    } else {
      collation = "BINARY"
    }
    if options.method == .session, let olderPath = older.source.attachablePath,
      let newerPath = newer.source.attachablePath, older.isUTF16 == newer.isUTF16
    {
      session = try SessionComparison(olderPath: olderPath, newerPath: newerPath)
    } else {
      session = nil
    }
  }

  /// The difference.
  var difference: DatabaseDifference {
    DatabaseDifference(changeset: changeset, tables: tables, skipped: skipped, fallbacks: fallbacks, author: author)
  }

  mutating func skip(_ name: String, _ code: SkipReason.Code, _ arguments: String...) {
    skipped.append(SkippedItem(name: name, reason: SkipReason(code, arguments)))
  }

  /// Names a table whose rows do not travel.
  private mutating func skipRows(of entry: SchemaEntry, because reason: String) throws {
    let known = older.schema.entry(named: entry.name)
    var isSame = false
    do {
      if let known {
        isSame =
          try pages?.isUnchanged(entry) == true
          || older.schema.contentStaying(of: known) == newer.schema.contentStaying(of: entry)
      } else {
        isSame = try newer.schema.contentStaying(of: entry)?.rows ?? 0 == 0
      }
    } catch let error as SQLiteError where error.primaryCode == 1 {
      // A statement cannot contain its name, and its rows may differ.
    }
    // A definition that no receiver makes is left out, too.
    if entry.isUnmade, known?.isDefined(like: entry) != true { isSame = false }
    skipped.append(
      SkippedItem(name: entry.name.text, reason: SkipReason(.notReplicated, reason), differs: !isSame))
  }

  // MARK: Pairing

  /// Compares every table of the newer database.
  mutating func compareTables() throws {
    for entry in newer.schema.entries where options.includes(entry.name) && entry.kind != .view {
      if Replicability.isOwn(entry.name) || options.tables == nil && newer.schema.isInside(entry) { continue }
      if let reason = Replicability.refusal(of: entry) {
        try skipRows(of: entry, because: reason)
        continue
      }
      try progress.beginTable(entry.name.text)
      guard let pair = try pair(entry) else { continue }
      do {
        try compare(pair)
      } catch let error as SQLiteError
        where pair.definition.module != nil && (error.isCorrupt || error.primaryCode == 1)
      {
        // An error inside a virtual table must not keep other tables from being sent.
        skip(entry.name.text, .unreadable, error.message)
      }
    }
  }

  /// A table in both sources.
  ///
  /// - Returns: nil if it has nothing to compare, or cannot be compared, which is then named.
  private mutating func pair(_ entry: SchemaEntry) throws -> TablePair? {
    let renames = options.renames.filter { $0.table == entry.name }
    let olderSelection = older.source.selection(of: entry.name, options)
    let selection = newer.source.selection(of: entry.name, options)
    if renames.isEmpty, olderSelection == nil, selection == nil,
      try pages?.isUnchanged(entry) == true
    {
      return nil
    }
    guard let (table, olderTable) = try definitions(of: entry) else { return nil }
    try RowSelection.requireColumns(of: [selection, olderSelection], in: [table, olderTable])
    try renames.forEach { try $0.validate(olderTable, table, in: older.source.name, newer.source.name) }
    try selection?.validate(for: entry.name, on: newer.source.connection, of: newer.source.name)
    if olderTable != nil {
      try olderSelection?.validate(for: entry.name, on: older.source.connection, of: older.source.name)
    }
    let affinities = options.affinities[entry.name] ?? [:]
    let keyed = try keyed(table, olderTable)
    let newerSide = try SourceTable(
      keyed?.newer ?? table, storedAs: entry.storedName, converting: affinities, selection: selection)
    let rekeyed =
      try keyed?.older
      ?? (isWhole && renames.isEmpty ? olderTable?.rekeyed(like: table, on: older.source.connection) : nil)
    let olderName = older.schema.entry(named: entry.name)?.storedName ?? entry.storedName
    let olderSide = try (rekeyed ?? olderTable).map {
      try SourceTable(
        $0, storedAs: olderName, renames: renames, converting: affinities, selection: olderSelection)
    }
    let reconciliation = TableReconciliation(
      newerSide.definition, with: olderSide?.definition,
      omitting: table.columns.filter { selection?.omits($0.name) == true }, options: options,
      canCreate: newTableCount < TableDefinition.newTableLimit)
    skipped += reconciliation.skipped
    guard let definition = reconciliation.definition else { return nil }
    if olderSide == nil { newTableCount += 1 }
    let pair = TablePair(
      definition: definition, newer: newerSide, older: olderSide, renames: renames, isRekeyed: rekeyed != nil,
      // Full-text tables are linked to others by their rowids.
      isIdentifiedByContent: definition.isKeyedByRowID && definition.module == nil
        && (options.keyless == .content || options.contentTables.contains(entry.name)))
    try skipFullTextSettings(of: pair)
    let isSame =
      try pair.older != nil && !pair.hasCondition && pages?.hasSameShadowTables(definition) == true
    return isSame ? nil : pair
  }

  /// The table with the key from the options; nil if they name none, or its rows have none.
  private func keyed(
    _ table: TableDefinition, _ olderTable: TableDefinition?
  ) throws -> (newer: TableDefinition, older: TableDefinition)? {
    guard let wanted = options.keys[TableName(table.name)], let olderTable,
      let newer = table.hasSameKey(as: wanted) ? table : try table.rekeyed(like: wanted, on: newer.source.connection),
      let older = olderTable.hasSameKey(as: wanted)
        ? olderTable : try olderTable.rekeyed(like: wanted, on: older.source.connection)
    else { return nil }
    return (newer, older)
  }

  /// Names the settings of a full-text table that differ: they do not travel.
  private mutating func skipFullTextSettings(of pair: TablePair) throws {
    let table = pair.definition
    guard let settings = try table.fullTextSettings(on: newer.source.connection),
      let known = try pair.older == nil ? [] : table.fullTextSettings(on: older.source.connection),
      !settings.elementsEqual(known, by: ==)
    else { return }
    skipped.append(
      SkippedItem(
        name: table.name, reason: SkipReason(.fullTextSettings, (settings.isEmpty ? known : settings).map(\.name))))
  }

  /// The definitions of a table in both sources; nil if its rows cannot be sent, which is then reported.
  private mutating func definitions(
    of entry: SchemaEntry
  ) throws -> (newer: TableDefinition, older: TableDefinition?)? {
    let table = try newer.schema.definition(of: entry)
    if let reason = Replicability.refusal(of: table) {
      try skipRows(of: entry, because: reason)
      return nil
    }
    guard let olderEntry = older.schema.entry(named: entry.name) else { return (table, nil) }
    guard olderEntry.kind.hasOwnRows else {
      var what = "no ordinary table"
      if case .virtual = olderEntry.kind { what = Replicability.refusal(of: olderEntry) ?? what }
      skip(entry.name.text, .unlikeOlderTable, older.source.name, what)
      return nil
    }
    if entry.isDefined(like: olderEntry) { return (table, table) }
    return (table, try older.schema.definition(of: olderEntry))
  }

  // MARK: Comparing

  private mutating func compare(_ pair: TablePair) throws {
    let (changes, method) = try changes(of: pair)
    guard !changes.isEmpty || pair.isDefinitionNew else { return }
    let table = pair.definition
    guard options.isRaw || documents.reserve(table) else { return skip(table.name, .sizeLimit) }
    try changes.finish(ChangesetTable(name: table.name, keyFlags: table.keyFlags), into: changeset)
    tables.append(
      TableDifference(
        definition: table, inserted: changes.inserted, updated: changes.updated, deleted: changes.deleted,
        method: method, isNew: pair.older == nil, newColumns: pair.newColumns, renames: pair.renames))
  }

  /// Finds the changes of a table by the requested method, or by `rows` if that cannot.
  private mutating func changes(of pair: TablePair) throws -> (ChangeCollector, DiffMethod) {
    let changes = ChangeCollector(of: pair.definition)
    // That a virtual table takes `rows` is no fallback: it has no pages, and there is no other way.
    if let pages, let olderTable = pair.older, pair.definition.module == nil {
      let reason =
        try pair.pagesRefusal ?? pages.compare(pair.definition, with: olderTable.definition, into: changes)
      guard let reason else { return (changes, .pages) }
      fallbacks.append(SkippedItem(name: pair.definition.name, reason: reason))
    } else if let session, !pair.hasSelection, let olderTable = pair.older, pair.renames.isEmpty, !pair.isRekeyed,
      try session.compare(pair.definition, olderTable.definition, into: changes)
    {
      return (changes, .session)
    }
    let rowChanges = ChangeCollector(of: pair.definition)
    let candidates = options.candidates[TableName(pair.definition.name)]
    var merge = RowMerge(pair, collation: collation, among: candidates, into: rowChanges, progress)
    try merge.run(older: older, newer: newer)
    for column in merge.invalidText.sorted() {
      skip("\(pair.definition.name).\(pair.definition.changesetColumns[column])", .invalidUTF16)
    }
    return (rowChanges, .rows)
  }

  // MARK: What does not travel

  /// True if two whole databases are compared. Receivers may then adopt the schema of the newer one.
  var isWhole: Bool {
    !options.isRaw && options.tables == nil && options.excludedTables.isEmpty && options.selections.isEmpty
      && older.source.selectedTables.isEmpty && newer.source.selectedTables.isEmpty
  }

  /// Reports differences that are not in the changeset.
  mutating func reportUntransferredObjects() throws {
    reportDroppedTables()
    reportClauses()
    try reportCollations()
    if options.tables == nil { try reportObjects() }
  }
}

extension TablePair {
  /// Why the pages of the table cannot be compared, whatever they hold.
  fileprivate var pagesRefusal: SkipReason? {
    let code: SkipReason.Code? =
      isIdentifiedByContent
      ? .comparedByContent
      : isRekeyed
        ? .definitionDiffers
        : !renames.isEmpty ? .columnsRenamed : hasCondition || hasRewrittenColumns ? .rowsSelected : nil
    return code.map { SkipReason($0) }
  }
}

extension ColumnRename {
  /// Requires that the column can have been renamed.
  ///
  /// - Throws: `ReplicationError` with `columnsDiffer`.
  fileprivate func validate(
    _ older: TableDefinition?, _ newer: TableDefinition, in olderName: String, _ newerName: String
  ) throws(ReplicationError) {
    guard older?.column(named: oldName) != nil, older?.column(named: newName) == nil,
      newer.column(named: newName) != nil, newer.column(named: oldName) == nil
    else {
      throw ReplicationError(
        .columnsDiffer,
        "column \"\(newer.name).\(oldName)\" has not become \"\(newName)\": the first must be in \(olderName) only, "
          + "the second in \(newerName) only", table: newer.name, column: oldName)
    }
  }
}

/// How much more the documents of one diff file can hold. Its manifest and its `schema.json` are of limited size, and thousands
/// of tables can change at once (`Schemas/diff-file.md`). What does not fit has to wait for the next diff.
struct DocumentSizeBudget {
  private var manifestBytes = 1 << 20 - 16 << 10
  private var schemaBytes = 16 << 20 - 16 << 10
  private var tables = 10_000

  /// Reserves the room for a table.
  ///
  /// - Returns: false where that is too much.
  mutating func reserve(_ table: TableDefinition) -> Bool {
    // Besides the name there are three numbers and the names of fields.
    let inManifest = 150 + Self.length(table.name)
    let inSchema = Self.schemaLength(table)
    guard tables > 0, inManifest <= manifestBytes, inSchema <= schemaBytes else { return false }
    tables -= 1
    manifestBytes -= inManifest
    schemaBytes -= inSchema
    return true
  }

  /// Reserves the room for the author's statements.
  ///
  /// - Returns: false where that is too much.
  mutating func reserve(_ author: AuthorSchema) -> Bool {
    let all = author.statements + author.replaced.map(\.statement)
    let length = all.reduce(40) { count, statement in
      count + 120 + Self.length(statement.name.text) + Self.length(statement.table.text) + Self.length(statement.sql)
    }
    guard length <= schemaBytes, author.statements.count <= AuthorSchema.statementLimit,
      author.replaced.count <= AuthorSchema.statementLimit
    else { return false }
    schemaBytes -= length
    return true
  }

  /// How long a definition is at most.
  private static func schemaLength(_ table: TableDefinition) -> Int {
    var count = 200 + length(table.name) + 6 * table.primaryKey.count
    for column in table.columns {
      count += 80 + length(column.name) + length(column.declaredType) + length(column.collation)
      count += length(column.defaultValue?.sql ?? "")
    }
    for column in table.generated { count += 60 + length(column.name) + length(column.declaredType) }
    for constraint in table.unique { count += 6 + 6 * constraint.count }
    for key in table.foreignKeys {
      count += 130 + length(key.parent)
      for name in key.columns + key.parentColumns { count += 4 + length(name) }
    }
    return count
  }

  /// How long a text is in JSON.
  private static func length(_ text: String) -> Int {
    text.utf8.reduce(0) { $0 + ($1 < 0x20 ? 6 : $1 == 0x22 || $1 == 0x5c ? 2 : 1) }
  }
}
