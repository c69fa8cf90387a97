/// The changes of files, inverted, joined, sorted or rebased without a database, and not written yet.
///
/// Diff files and raw changesets are taken alike, whatever their size: changes that do not fit into memory are kept in
/// temporary files. Every file is checked completely first.
///
/// ```swift
/// let both = try RewrittenChanges(concatenating: ["monday.bdiff", "tuesday.bdiff"])
/// let report = try both.write(to: .file("both.bdiff", replacing: false))
/// ```
public struct RewrittenChanges {
  /// The tables and how many changes each has; empty when nothing remains to be changed.
  public let tables: [ChangesetReport.Table]
  /// Warnings about the changes.
  public internal(set) var warnings: [Warning]
  /// The result of rebasing; nil for changes that were made in another way.
  public internal(set) var rebase: RebaseReport?
  private let changeset: TemporaryBuffer
  private let inputs: [InspectedFile]
  /// The definitions of all tables, when every file brought its own.
  private let definitions: [TableDefinition]?
  /// The author's whole schema as SQL, if the changes are still those of one file.
  private let author: AuthorSchema?
  private let tablesInKeyOrder: Set<TableName>
  private let began: ContinuousClock.Instant

  /// Called with the progress.
  package typealias Progress = (RewritingProgress) -> Void

  /// The changes that undo those of a file: they undo what the author did, and not the effects of applying the file to
  /// a database. If a conflict was met there and a local row was replaced, that row does not come back. A warning says
  /// this.
  ///
  /// The tables come from the last to the first. In each, inserted rows are deleted first, then rows are updated, then
  /// deleted rows are inserted, by key. If one row is changed more than once, or a diff file declares the author's
  /// order, the changes of the table come from the last to the first, because foreign-key actions and triggers may
  /// depend on it. The author's schema as SQL is left out, and a warning says so.
  ///
  /// - Parameters:
  ///   - path: The file.
  ///   - poll: Called every few thousand changes. May throw to stop.
  /// - Throws: `BuckiaError` when the file is missing, encrypted or not entirely in order, or holds a patchset, which does
  ///   not say what was there before; whatever `poll` throws.
  public init(inverting path: String, poll: @escaping () throws -> Void = {}) throws {
    try self.init(inverting: .path(path), poll: poll)
  }

  /// The same for a file, or bytes that came without one.
  package init(
    inverting source: InboundSource, progress: Progress? = nil, poll: @escaping () throws -> Void = {}
  ) throws {
    try self.init([source], warnings: [Warning(.inverseOfChanges)], progress, poll) { inputs, output, poll in
      let input = inputs[0]
      let sorted = try Changesets.invert(
        input.changeset, into: output, keepsOrder: { input.tablesInAuthorOrder.contains(TableName($0.name)) },
        poll: poll)
      return (
        input.summary.tables.map { ChangesetReport.Table(inverting: $0) },
        inKeyOrder: Set(sorted.map { TableName($0.name) })
      )
    }
  }

  /// The changes of several files, joined into at most one change for each row. The schemas of the authors as SQL are
  /// left out, and a warning says so.
  ///
  /// - Parameters:
  ///   - paths: The files, in the order in which they would be applied.
  ///   - poll: Called every few thousand changes. May throw to stop.
  /// - Throws: `BuckiaError` when a file is missing, encrypted or not entirely in order, or two files describe one table
  ///   differently; whatever `poll` throws.
  public init(concatenating paths: [String], poll: @escaping () throws -> Void = {}) throws {
    try self.init(concatenating: paths.map { InboundSource.path($0) }, poll: poll)
  }

  /// The same for files, and bytes that came without one.
  package init(
    concatenating sources: [InboundSource], progress: Progress? = nil, poll: @escaping () throws -> Void = {}
  ) throws {
    try self.init(sources, progress, poll) { inputs, output, poll in
      try Changesets.concatenate(inputs.map(\.changeset), into: output, poll: poll)
      let summary = try ChangesetSummary.of(output, poll: poll)
      return (summary.tables.map { ChangesetReport.Table($0) }, inKeyOrder: [])
    }
  }

  /// The changes of a file by table, then deletes, updates and inserts, each by key: the order in which they are applied
  /// fastest. A table in which one row is changed more than once stays in its author's order.
  ///
  /// - Parameters:
  ///   - path: The file.
  ///   - poll: Called every few thousand changes. May throw to stop.
  /// - Throws: `BuckiaError` when the file is missing, encrypted or not entirely in order; whatever `poll` throws.
  public init(sorting path: String, poll: @escaping () throws -> Void = {}) throws {
    try self.init(sorting: .path(path), poll: poll)
  }

  /// The same for a file, or bytes that came without one.
  package init(
    sorting source: InboundSource, progress: Progress? = nil, poll: @escaping () throws -> Void = {}
  ) throws {
    try self.init([source], keepingSchema: true, progress, poll) { inputs, output, poll in
      let summary = inputs[0].summary
      let unsorted = try Changesets.sort(inputs[0].changeset, summary, into: output, poll: poll)
      let tables = Set(summary.tables.map { TableName($0.table.name) })
      return (
        summary.tables.map { ChangesetReport.Table($0) },
        inKeyOrder: tables.subtracting(unsorted.map { TableName($0.name) })
      )
    }
  }

  /// - Parameters:
  ///   - warnings: Warnings, if any changes are left.
  ///   - rewrite: Writes the result, counts it, and names the tables in key order.
  init(
    _ sources: [InboundSource], warnings: [Warning] = [], keepingSchema: Bool = false,
    _ progress: Progress?, _ poll: @escaping () throws -> Void,
    _ rewrite: (_ inputs: [InspectedFile], _ output: TemporaryBuffer, _ poll: () throws -> Void) throws -> (
      [ChangesetReport.Table], inKeyOrder: Set<TableName>
    )
  ) throws {
    began = .now
    let output = TemporaryBuffer()
    changeset = output
    (inputs, definitions, author, tablesInKeyOrder, tables) = try BuckiaError.wrapping {
      let inputs = try sources.map { source in
        try DiffInspection.open(source, progress: progress.map { tell in { tell(.checking($0)) } }, poll: poll)
      }
      let definitions = try Self.commonDefinitions(of: inputs)
      let changeCount = inputs.reduce(0) { $0 + $1.summary.changeCount }
      let byteCount = inputs.reduce(0) { $0 + $1.changeset.count }
      let (tables, inKeyOrder) = try rewrite(inputs, output) {
        progress?(.rewriting(changes: changeCount, bytes: output.count, byteCount: byteCount))
        try poll()
      }
      return (inputs, definitions, keepingSchema ? inputs.first?.author : nil, inKeyOrder, tables)
    }
    let leftOut = author == nil ? inputs.filter { $0.author != nil } : []
    self.warnings = output.isEmpty ? [] : warnings + leftOut.map { Warning(.schemaLeftOut, $0.path) }
  }

  /// The definitions of all tables, when every file brought its own; nil otherwise.
  ///
  /// - Throws: `BuckiaError` when two files describe one table differently: their columns must not be mixed.
  private static func commonDefinitions(of inputs: [InspectedFile]) throws(BuckiaError) -> [TableDefinition]? {
    var known: [TableName: TableDefinition] = [:]
    var ordered: [TableDefinition] = []
    for input in inputs {
      for definition in input.schema ?? [] {
        let other = known.updateValue(definition, forKey: TableName(definition.name))
        guard other == nil || other == definition else {
          throw BuckiaError(
            .definitionsDiffer,
            "it describes the table \"\(definition.name)\" differently from a file before it, so their columns cannot be joined",
            path: input.path)
        }
        if other == nil { ordered.append(definition) }
      }
    }
    return inputs.allSatisfy { $0.schema != nil } ? ordered : nil
  }

  /// Writes the changes into a new file, complete or not at all; nothing when no changes are left.
  ///
  /// A diff file is written if the name ends in `.bdiff`, and into a folder if all inputs are diff files; otherwise,
  /// and to a stream, a raw changeset. The file is not signed.
  ///
  /// - Parameters:
  ///   - output: The destination of the file.
  ///   - home: The home with the clock of ids.
  /// - Returns: The written file; `id` is nil if no changes are left.
  /// - Throws: `BuckiaError` when the file cannot be written; with code `noDefinitions` or `carriesMore` when what went in
  ///   cannot make a diff file.
  public func write(to output: DiffOutput, home: BuckiaHome = .standard) throws -> ChangesetReport {
    var report = ChangesetReport(
      id: nil, path: nil, bytes: 0, tables: tables, warnings: warnings, rebase: rebase, seconds: 0)
    if !changeset.isEmpty { try BuckiaError.wrapping { try write(to: output, home, &report) } }
    report.seconds = (ContinuousClock.now - began) / .seconds(1)
    return report
  }

  /// Calls `body` with the changes as a raw changeset, piece by piece, without writing a file or creating an id.
  ///
  /// - Throws: `BuckiaError` when a temporary file cannot be read; whatever `body` throws.
  package func forEachPiece(_ body: (UnsafeRawBufferPointer) throws -> Void) throws {
    try BuckiaError.wrapping { try changeset.forEachPiece { try body($0) } }
  }

  private func write(to output: DiffOutput, _ home: BuckiaHome, _ report: inout ChangesetReport) throws {
    var id = try newID(in: home)
    var isDiffFile = false
    switch output {
    case .folder: isDiffFile = definitions != nil
    case .file(let path, _):
      isDiffFile = path.hasSuffix(DiffFileName.diffSuffix)
      if let named = DiffFileName.diffID(path) { id = named }
    case .stream: break
    }
    let file = try output.file(named: isDiffFile ? DiffFileName.diff(id) : DiffFileName.changeset(id))
    report.bytes = try isDiffFile ? writeDiffFile(id, to: file) : Int(file.write(raw: changeset, isPrivate: isPrivate))
    report.id = id
    report.path = file.path
  }

  /// True if others may not read one of the input files.
  private var isPrivate: Bool { inputs.contains { !FileSystem.isReadableByAll($0.path) } }

  private func writeDiffFile(_ id: KSUID, to file: DiffOutput.File) throws -> Int {
    guard let definitions else {
      throw BuckiaError(
        .noDefinitions,
        "a diff file needs the definitions of its tables, and a raw changeset has none; only a raw changeset can be made of it"
      )
    }
    if let input = inputs.first(where: \.carriesMore) {
      throw BuckiaError(
        .carriesMore,
        "its changes have several authors, files travel with it, or it renames columns, which a new diff file cannot keep yet; only a raw changeset can be made of it",
        path: input.path)
    }
    let datasets = inputs.compactMap(\.dataset)
    if let other = inputs.first(where: { $0.dataset != nil && $0.dataset != datasets.first }) {
      throw BuckiaError(
        .otherDataset, "it is of another dataset than the files before it, and one diff file cannot be of two",
        path: other.path)
    }
    var manifest = Manifest(id: id)
    manifest.dataset = datasets.first
    let draft = DiffFileDraft(
      manifest: manifest, schema: .included(definitions), author: author, tablesInKeyOrder: tablesInKeyOrder)
    var writer = DiffFileWriter()
    writer.isPrivate = isPrivate
    return try Int(writer.write(draft, changeset: changeset, to: file))
  }

  /// An id greater than those of the input files, unless these are from the future.
  private func newID(in home: BuckiaHome) throws(KSUIDError) -> KSUID {
    let now = WallClock.unixMilliseconds / 1_000
    let observed = inputs.compactMap(\.id).filter { $0.unixSeconds <= now + KSUIDClock.tolerance }
    return try home.newIDs(after: observed, unixSeconds: now).ids[0]
  }
}

/// How far files have been checked, and their changes rewritten.
package enum RewritingProgress {
  /// A file is being checked.
  case checking(InspectionProgress)
  /// All files are in order. They have this many changes, which take `byteCount` bytes; `bytes` have been written.
  case rewriting(changes: Int, bytes: Int, byteCount: Int)
}

/// What ``RewrittenChanges`` wrote.
public struct ChangesetReport: Hashable, Codable, Sendable {
  /// A table and how many changes it has.
  public struct Table: Hashable, Codable, Sendable {
    /// The table's name.
    public let name: String
    /// The number of inserted rows.
    public let inserted: Int
    /// The number of updated rows.
    public let updated: Int
    /// The number of deleted rows.
    public let deleted: Int

    init(_ table: ChangesetSummary.Table) {
      name = table.table.name
      inserted = table.inserted
      updated = table.updated
      deleted = table.deleted
    }

    init(inverting table: ChangesetSummary.Table) {
      name = table.table.name
      inserted = table.deleted
      updated = table.updated
      deleted = table.inserted
    }
  }

  /// The id of the file; nil if no changes were left.
  public internal(set) var id: KSUID?
  /// The file; nil if no changes were left, and for a stream.
  public internal(set) var path: String?
  /// Its size in bytes.
  public internal(set) var bytes: Int
  /// The tables that have changes.
  public let tables: [Table]
  /// Warnings about the changes.
  public let warnings: [Warning]
  /// The result of rebasing; nil for changes that were made in another way.
  public let rebase: RebaseReport?
  /// How long it took, in seconds, with opening and rewriting.
  public internal(set) var seconds: Double
}
