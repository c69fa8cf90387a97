import SQLiteConnections

extension DatabaseManager {
  /// Writes the differences between an older database and this one to a diff file.
  ///
  /// No row of either database is changed, and both may be in use: each is read in one transaction. A snapshot
  /// (``snapshot(to:replacing:)``) as the older one records the sent changes. The ledger of the newer one, if it has one, records
  /// the id of the diff and, with clocks, its rows; see <doc:Replicas>. Other databases are only read. A borrowed
  /// database is read through the app's connection, with the uncommitted changes of its open transaction.
  ///
  /// ```swift
  /// let report = try database.createDatabaseDiff(since: "before.sqlite", output: .folder("outbox"))
  /// print(report.path ?? "nothing has changed")
  /// ```
  ///
  /// - Parameters:
  ///   - older: The older database; nil to send all rows of this one as INSERTs.
  ///   - output: The destination of the file.
  ///   - options: The tables, rows and columns to compare, the method, and the kind of file.
  ///   - identity: The signing identity, such as ``BuckiaHome/identity()``; nil for an unsigned file, which receivers
  ///     refuse that trust only known senders.
  ///   - progress: Called before each table, and every few thousand rows. May throw to stop.
  /// - Returns: The differences and the written file; `id` is nil if there are no differences, and no file.
  /// - Throws: `BuckiaError` when a database cannot be read, a table is nowhere, a selection cannot be used, or the file
  ///   cannot be written; with code `cannotSign` when a bare changeset is to be signed; with code `nothingInCommon` when the two share no table, unless the options allow it; whatever
  ///   `progress` and a stream throw. No file then.
  @discardableResult
  public func createDatabaseDiff(
    since older: String?, output: DiffOutput, options: DiffOptions = DiffOptions(), signedBy identity: Identity? = nil,
    progress: @escaping (DiffProgress) throws -> Void = { _ in }
  ) throws -> DiffReport {
    if identity != nil, options.isRaw {
      throw BuckiaError(
        .cannotSign, "a bare changeset has no room for a signature; write a diff file, or leave it unsigned")
    }
    let signer = try BuckiaError.wrapping { try identity.map { try ManifestSigner($0) } }
    let traces = ReadTraces(besides: [older, isBorrowed ? nil : path].compactMap { $0 })
    defer { traces.remove() }
    var (report, seconds) = try WallClock.timing {
      try withRows { newer in
        if let older {
          guard FileSystem.exists(older) else {
            throw BuckiaError(
              .noSuchFile,
              "there is no such older database; check the path; the first one is a snapshot that is made while others have the same rows",
              path: older)
          }
          try DatabaseManager(older).requireFile()
        }
        let repair = try older.flatMap {
          try SnapshotMark.repair($0, marked: SnapshotMark(at: $0), of: newer.connection)
        }
        var report = try Self.writeDiff(
          from: older.map { try RowSource(opening: $0) } ?? RowSource.empty(), to: newer,
          kind: older == nil ? .snapshot : .delta, output: output, options: options, signer: signer, home: home,
          progress: progress)
        if let repair { report.warnings.append(repair) }
        return report
      }
    }
    report.seconds = seconds
    return report
  }

  /// Writes the differences between an older database and this one to a diff file, on another thread.
  ///
  /// It does the same as the synchronous call of this name. When the task is cancelled, it stops within a few thousand
  /// rows and leaves no file. A borrowed database belongs to its thread: use the synchronous call there.
  ///
  /// - Throws: As the synchronous call; `CancellationError`.
  @discardableResult
  public func createDatabaseDiff(
    since older: String?, output: DiffOutput, options: DiffOptions = DiffOptions(), signedBy identity: Identity? = nil,
    progress: @escaping @Sendable (DiffProgress) throws -> Void = { _ in }
  ) async throws -> DiffReport {
    try await CancellationFlag.onThreadOfItsOwn { cancellation in
      try createDatabaseDiff(
        since: older, output: output, options: options, signedBy: identity,
        progress: cancellation.checking(progress))
    }
  }

  /// Works on the database as a side of a comparison.
  private func withRows<Result>(_ body: (RowSource) throws -> Result) throws -> Result {
    if isBorrowed { return try withReader { try body(RowSource(on: $0)) } }
    return try BuckiaError.wrapping {
      try requireFile()
      return try body(RowSource(opening: path, busyTimeout: busyTimeout))
    }
  }

  /// Writes the differences between two sources of rows to a diff file.
  ///
  /// - Parameters:
  ///   - signer: The signing identity; nil for an unsigned file.
  ///   - home: Assigns the id of the file.
  /// - Throws: As `createDatabaseDiff`; `IncompleteChangeset` where the options refuse that.
  package static func writeDiff(
    from older: RowSource, to newer: RowSource, kind: Manifest.Kind = .delta, output: DiffOutput,
    options: DiffOptions = DiffOptions(), signer: ManifestSigner? = nil,
    home: any OutgoingIDs = BuckiaHome.standard,
    progress: @escaping (DiffProgress) throws -> Void = { _ in }
  ) throws -> DiffReport {
    if !options.allowsUnrelated {
      for source in [older, newer] where source.isFile { try source.connection.requireContent() }
      try older.requireRelation(to: newer)
    } else if newer.isFile {
      try newer.connection.requireContent()
    }
    let found = try DatabaseComparison.run(from: older, to: newer, options: options, progress: progress)
    if options.refusesIncomplete, let item = found.skipped.first(where: \.reason.needsDefinition) {
      throw IncompleteChangeset(item: item)
    }
    let isSnapshot = try SentChanges.areKept(in: older.connection)
    let difference = try isSnapshot ? unsent(of: found, from: older, to: newer, options) : found
    var report = DiffReport(difference, options: options)
    let left = found.changeCount - difference.changeCount
    if left > 0 { report.warnings.append(Warning(.sentBefore, "\(left)")) }
    // A raw changeset without changes is no file; a diff file may carry nothing but new definitions.
    guard options.isRaw ? !difference.changeset.isEmpty : !difference.isEmpty else { return report }
    try write(
      difference, kind: kind, after: older, from: newer, signer, to: output, home, isRaw: options.isRaw, &report)
    // A selection of columns does not update the snapshot's rows. They are sent again with the rest.
    if options.selections.isEmpty, isSnapshot {
      do {
        try SentChanges.note(found.changeset, in: older)
      } catch {
        report.warnings.append(Warning(.sentNotNoted, older.connection.path, "\(error)"))
      }
    }
    return report
  }

  /// The unsent part of a difference from a snapshot, after other diffs from it.
  private static func unsent(
    of found: DatabaseDifference, from older: RowSource, to newer: RowSource, _ options: DiffOptions
  ) throws -> DatabaseDifference {
    let sent = try SentChanges.read(from: older.connection)
    // With a later id, sent changes would win over later changes of others.
    if !options.includesSent, options.tables == nil, options.selections.isEmpty,
      try !RowClocks.tables(on: newer.connection).isEmpty, let unsent = try found.leavingOut(sent, in: newer)
    {
      return unsent
    }
    // For receivers that have applied a deletion, a row that exists again is an insertion.
    return try found.reinserting(rowsDeletedBy: sent)
  }

  /// Row versions the changes of the diff in the clocks of the newer database, like the clocks of its receivers.
  ///
  /// - Parameter origins: The origins of the changes; empty if all are the diff's own.
  /// - Returns: A warning when that could not be done.
  static func rowVersion(
    _ difference: DatabaseDifference, by id: KSUID, _ origins: [OriginRun] = [], in newer: RowSource
  ) -> Warning? {
    let columns = Dictionary(
      difference.tables.map { (TableName($0.definition.name), $0.definition.changesetColumns) }
    ) { first, _ in first }
    do {
      guard try !RowClocks.tables(on: newer.connection).isEmpty else { return nil }
      if let path = newer.attachablePath {
        let connection = try SQLiteConnection(opening: path, as: .readWrite)
        try RowClocks.recordOwnVersions(difference.changeset, columns: columns, by: id, origins, on: connection)
      } else {
        try RowClocks.recordOwnVersions(difference.changeset, columns: columns, by: id, origins, on: newer.connection)
      }
      return nil
    } catch {
      return Warning(.clocksNotKept, newer.name, "\(error)")
    }
  }

  /// Writes a difference to a diff file, and records that in the newer database.
  ///
  /// - Parameters:
  ///   - older: The older database; nil for none.
  ///   - report: Gets the id, the path and warnings.
  /// - Throws: As `createDatabaseDiff`.
  static func write(
    _ difference: DatabaseDifference, kind: Manifest.Kind, after older: RowSource? = nil, from newer: RowSource,
    _ signer: ManifestSigner?, to output: DiffOutput, _ home: any OutgoingIDs, isRaw: Bool = false,
    _ report: inout DiffReport
  ) throws {
    let sources = [older, newer].compactMap { $0 }
    let known = try sources.flatMap { try LedgerProgress.knownIDs(on: $0.connection) }
    let (id, warning) = try home.next(after: known)
    if let warning { report.warnings.append(warning) }
    // Before the file exists, because a crash must not leave a file that is not recorded.
    let origin = try home.begin(id, from: newer)
    report.warnings += origin.warnings
    try report.add(
      write(
        difference, id: id, kind: kind, from: origin.sender, of: Dataset.read(on: newer.connection), signer, to: output,
        isRaw: isRaw, isPrivate: sources.compactMap(\.attachablePath).contains { !FileSystem.isReadableByAll($0) }))
    if let warning = rowVersion(difference, by: id, in: newer) { report.warnings.append(warning) }
  }

  private static func write(
    _ difference: DatabaseDifference, id: KSUID, kind: Manifest.Kind, from sender: Manifest.Sender?,
    of dataset: Dataset?,
    _ signer: ManifestSigner?, to output: DiffOutput, isRaw: Bool, isPrivate: Bool
  ) throws -> (id: KSUID, path: String?, bytes: Int64) {
    let file = try output.file(named: isRaw ? DiffFileName.changeset(id) : DiffFileName.diff(id))
    if isRaw { return (id, file.path, try file.write(raw: difference.changeset, isPrivate: isPrivate)) }
    let renames = difference.tables.flatMap(\.renames)
    // A reader that does not know the rename would add a new column, without the values of unchanged rows.
    let manifest = Manifest(
      id: id, kind: kind, critical: renames.isEmpty ? [] : ["renames"], dataset: dataset?.id, sender: sender,
      renames: renames)
    let draft = DiffFileDraft(
      manifest: manifest, schema: .included(difference.tables.map(\.definition)), author: difference.author,
      tablesInKeyOrder: Set(difference.tables.map { TableName($0.definition.name) }))
    var writer = DiffFileWriter()
    writer.signer = signer
    writer.isPrivate = isPrivate
    let written = try writer.write(draft, changeset: difference.changeset, to: file)
    return (id, file.path, written)
  }
}

extension DiffReport {
  init(_ difference: DatabaseDifference, options: DiffOptions) {
    method = options.method
    let reasons = Dictionary(difference.fallbacks.map { (TableName($0.name), $0.reason) }) { first, _ in first }
    tables = difference.tables.map { table in
      Table(
        name: table.definition.name, inserted: table.inserted, updated: table.updated, deleted: table.deleted,
        method: table.method, methodReason: reasons[TableName(table.definition.name)], isNew: table.isNew,
        newColumns: table.newColumns, renames: table.renames)
    }
    skipped = difference.skipped
    comparedByRows = difference.fallbacks
    includesSchema = difference.author != nil
  }

  mutating func add(_ written: (id: KSUID, path: String?, bytes: Int64)) {
    id = written.id
    path = written.path
    bytes = Int(written.bytes)
  }
}

/// A raw changeset would have to leave out rows that a diff file has: `DiffOptions.refusesIncomplete`.
package struct IncompleteChangeset: Error, CustomStringConvertible {
  /// The first table with such rows.
  package let item: SkippedItem

  package var description: String { "\(item.name): \(item.reason)" }
}

extension SQLiteConnection {
  /// Makes sure that there is a database in the file: an empty one is what a failed copy leaves, and to take it for a database without
  /// tables would drop all of them. A file that was cut cannot be opened.
  ///
  /// - Throws: `BuckiaError` with `notADatabase`; `SQLiteError` when the file cannot be read.
  func requireContent() throws {
    guard !path.isEmpty, try integer("PRAGMA main.page_count") == 0 else { return }
    throw BuckiaError(.notADatabase, "the file is empty, where a database was expected", path: path)
  }
}

extension RowSource {
  /// Requires that another source can be a later state of the same database.
  ///
  /// Two databases without a common table are hardly two states of one: the difference would delete and insert
  /// everything, which is rarely intended and mostly a mistake in the paths. A database without any tables can be the
  /// beginning, or the end, of any other.
  ///
  /// - Throws: `BuckiaError` with `nothingInCommon`; `SQLiteError` when a schema cannot be read.
  func requireRelation(to newer: RowSource) throws {
    let mine = try SchemaReader(connection)
    let others = try SchemaReader(newer.connection)
    let tables = mine.tables
    guard !tables.isEmpty, !others.tables.isEmpty else { return }
    for entry in tables {
      guard let other = others.entry(named: entry.name) else { continue }
      if entry.isDefined(like: other) { return }
      let columns = Set(try mine.columns(of: entry))
      if try others.columns(of: other).contains(where: columns.contains) { return }
    }
    throw BuckiaError(
      .nothingInCommon,
      "these are hardly two states of one database: \(connection.path) has \(Self.list(tables)), and "
        + "\(newer.connection.path) has \(Self.list(others.tables))")
  }

  /// The first names, and how many more there are.
  private static func list(_ tables: [SchemaEntry]) -> String {
    let shown = tables.prefix(3).map { EscapedText.quoted($0.name.text) }.joined(separator: ", ")
    let left = tables.count - 3
    return "the table\(tables.count == 1 ? "" : "s") \(shown)" + (left > 0 ? " and \(left) more" : "")
  }
}

extension SchemaReader {
  /// The tables that the user has made.
  fileprivate var tables: [SchemaEntry] {
    entries.filter { entry in
      switch entry.kind {
      case .table, .virtual: !Replicability.isOwn(entry.name)
      case .view, .shadow: false
      }
    }
  }

  /// The names of a table's columns, in lower case.
  fileprivate func columns(of entry: SchemaEntry) throws -> [String] {
    // The module of a virtual table may be missing here; the name is enough.
    guard case .table = entry.kind else { return [entry.name.text.lowercased()] }
    return try definition(of: entry).columns.map { ASCIIName.folded($0.name) }
  }
}
