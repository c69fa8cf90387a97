import BuckiaBytes
import SQLiteChangesets
import SQLiteSchemas

/// The result of one pass over a changeset: all of it is well-formed, and the changes of each table are counted.
package struct ChangesetInspection: Equatable, Sendable {
  /// The container of a changeset, which decides its permitted content.
  package enum Container: Sendable {
    /// A diff file. Every UPDATE has its old values, by which conflicts are detected.
    case diffFile
    /// A file with only a changeset. It may be a patchset, and may have SQLite's own tables, such as `sqlite_stat1`,
    /// which sessions record.
    case rawFile
  }

  /// A table and how many changes it has.
  package struct Table: Equatable, Sendable {
    /// The table's header.
    package let header: ChangesetTable
    /// The number of INSERTs.
    package internal(set) var inserted: Int64 = 0
    /// The number of UPDATEs.
    package internal(set) var updated: Int64 = 0
    /// The number of DELETEs, with withdrawals.
    package internal(set) var deleted: Int64 = 0
    /// The number of DELETEs that are withdrawals by the annotations.
    package internal(set) var withdrawn: Int64 = 0

    init(header: ChangesetTable) { self.header = header }
  }

  /// The tables in the order in which they first appear.
  package let tables: [Table]
  /// The number of changes.
  package let changes: Int64
  /// The facts that the engine needs before it applies them.
  package let summary: ChangesetSummary

  /// True if it is a patchset; nil if it has no changes.
  package var format: ChangesetFormat? { tables.first?.header.format }

  /// Reads all of a changeset.
  ///
  /// - Parameters:
  ///   - spool: The changeset.
  ///   - container: Its container.
  ///   - annotations: The annotations of its changes.
  ///   - limits: How large a change may be.
  ///   - isWanted: Called every few thousand changes; if it returns false, the error has the code `abandoned`.
  /// - Throws: `DiffFileError` with code `badChangeset`, `badName`, `contradiction`, or for a temporary file.
  init(
    _ spool: TemporaryBuffer, in container: Container = .diffFile, annotations: Annotations? = nil,
    limits: DiffFileLimits = DiffFileLimits(), isWanted: () -> Bool = { true }
  ) throws(DiffFileError) {
    var scanner = Scanner(of: spool, in: container, annotations: annotations, limits: limits)
    try scanner.advance(to: spool.count, isLast: true, isWanted: isWanted)
    self = try scanner.finish()
    try check(annotations?.keys)
  }

  /// Checks that the row keys describe as many changes as there are.
  ///
  /// - Throws: `DiffFileError` with code `contradiction`.
  func check(_ keys: RowKeys?) throws(DiffFileError) {
    guard let count = keys?.changeCount, count != changes else { return }
    throw DiffFileError(
      .contradiction, "the annotations name the rows of \(count) changes, and there are \(changes)",
      member: MemberName.annotations)
  }

  /// The pass over the changes. It can stop at the last received byte and continue when there are more.
  struct Scanner {
    private let spool: TemporaryBuffer
    private let container: Container
    private var scan: ChangesetScan
    private var builder = ChangesetSummary.Builder()
    private var tables: [Table] = []
    private var cursor: AnnotationCursor
    private let limits: DiffFileLimits

    init(
      of spool: TemporaryBuffer, in container: Container = .diffFile, annotations: Annotations? = nil,
      limits: DiffFileLimits = DiffFileLimits()
    ) {
      self.limits = limits
      self.spool = spool
      self.container = container
      scan = ChangesetScan(arrivingIn: spool)
      cursor = AnnotationCursor(annotations)
    }

    /// The results so far.
    var summary: ChangesetSummary { builder.soFar }

    /// Reads all changes that end before an offset.
    ///
    /// - Parameters:
    ///   - limit: The number of received bytes.
    ///   - isLast: True if there will be no more.
    /// - Throws: `DiffFileError`, as the inspection.
    mutating func advance(
      to limit: Int, isLast: Bool, isWanted: () -> Bool = { true }
    ) throws(DiffFileError) {
      scan.extend(to: limit, isComplete: isLast)
      do {
        while try scan.advance() {
          guard isWanted() else { throw DiffFileError.abandoned }
          try scan.window.withBytes { try read($0) }
        }
      } catch {
        throw DiffFileError(spooling: error)
      }
    }

    private mutating func read(_ bytes: RawSpan) throws {
      while true {
        let end = scan.reader.position
        guard let change = try scan.next(in: bytes) else {
          if scan.isAtEnd, end < bytes.byteCount { _ = try lastHeader(in: end..<bytes.byteCount, of: bytes) }
          return
        }
        let header =
          change.startsTable ? try lastHeader(in: end..<change.range.lowerBound, of: bytes) : nil
        let range = scan.range(of: change)
        try limits.check(change: range.count)
        let place = try builder.add(change, scan.reader, in: bytes, endingAt: range.upperBound)
        if let header {
          try ChangesetInspection.register(
            header, place, &tables, at: scan.reader.base + scan.reader.headerRange.lowerBound)
        }
        if scan.reader.lacksOldValues { try checkOldValues(change) }
        if let run = try cursor.next() { try tables[place].add(run, change) }
      }
    }

    /// Refuses an UPDATE that would overwrite whatever it meets, in a diff file. That it holds no patchset is checked with the
    /// manifest.
    private func checkOldValues(_ change: Change) throws(DiffFileError) {
      guard container == .diffFile, let table = scan.reader.table, table.format == .changeset else { return }
      throw ChangesetInspection.invalid(
        "an UPDATE of \(EscapedText.quoted(table.name)) sets a column without saying what it was before",
        at: scan.reader.base + change.range.lowerBound, table: table.name)
    }

    private func lastHeader(in range: Range<Int>, of bytes: RawSpan) throws(DiffFileError) -> ChangesetTable {
      do throws(DiffFileError) {
        return try ChangesetInspection.lastHeader(in: range, of: bytes, container)
      } catch {
        var error = error
        error.offset = error.offset.map { scan.reader.base + $0 }
        throw error
      }
    }

    /// The inspection of the whole.
    ///
    /// - Throws: `DiffFileError` with code `contradiction` when there are annotations for more changes.
    consuming func finish() throws(DiffFileError) -> ChangesetInspection {
      try cursor.finish()
      return ChangesetInspection(tables: tables, summary: builder.finish(byteCount: spool.count))
    }
  }

  private init(tables: [Table], summary: ChangesetSummary) {
    var tables = tables
    for (index, found) in summary.tables.enumerated() {
      tables[index].inserted = Int64(found.inserted)
      tables[index].updated = Int64(found.updated)
      tables[index].deleted = Int64(found.deleted)
    }
    self.tables = tables
    self.summary = summary
    changes = Int64(summary.changeCount)
  }

  private static func invalid(_ message: String, at offset: Int, table: String? = nil) -> DiffFileError {
    DiffFileError(.badChangeset, message, member: MemberName.changeset, table: table, offset: offset)
  }

  /// Checks the table headers between two changes and returns the last, whose changes follow.
  ///
  /// SQLite's rebaser leaves headers without changes. The reader skips these, which is why their names are checked
  /// here.
  private static func lastHeader(
    in range: Range<Int>, of bytes: RawSpan, _ container: Container
  ) throws(DiffFileError) -> ChangesetTable {
    var start = range.lowerBound
    while true {
      let header = try header(at: start, end: range.upperBound, of: bytes)
      var writer = ChangesetWriter()
      writer.beginTable(header)
      // Decoding would repair a name that is not UTF-8, and turn it into another table's name.
      let end = start + writer.count
      guard end <= range.upperBound, bytes.array(start..<end) == writer.bytes else {
        throw invalid("a table header is not UTF-8, or not in its shortest form", at: start)
      }
      try check(header, in: container, at: start)
      if end == range.upperBound { return header }
      start = end
    }
  }

  /// Decodes a header that `ChangesetReader` has accepted.
  private static func header(at start: Int, end: Int, of bytes: RawSpan) throws(DiffFileError) -> ChangesetTable {
    let head = bytes.array(start..<min(end, start + 4))
    let length = head.dropFirst().prefix { $0 >= 0x80 }.count + 1
    let columns = head.dropFirst().prefix(length).reduce(0) { $0 << 7 | Int($1 & 0x7f) }
    let flags = start + 1 + length
    guard let format = head.first.flatMap({ ChangesetFormat(rawValue: $0) }), flags + columns < end else {
      throw invalid("a table header is not in its shortest form", at: start)
    }
    let rest = bytes.array((flags + columns)..<min(end, flags + columns + DiffFileLimits.nameBytes + 1))
    return ChangesetTable(
      name: String(decoding: rest.prefix { $0 != 0 }, as: UTF8.self), format: format,
      keyFlags: bytes.array(flags..<(flags + columns)))
  }

  private static func check(
    _ header: ChangesetTable, in container: Container, at offset: Int
  ) throws(DiffFileError) {
    guard header.name.utf8.count <= DiffFileLimits.nameBytes else {
      throw invalid("a table name has more than \(DiffFileLimits.nameBytes) bytes", at: offset)
    }
    guard header.columnCount <= DiffFileLimits.columns + 1 else {
      throw invalid("a table has more than \(DiffFileLimits.columns) columns", at: offset, table: header.name)
    }
    guard header.keyFlags.contains(where: { $0 != 0 }) else {
      throw invalid("a table has no key", at: offset, table: header.name)
    }
    let name = TableName(header.name)
    // Such a table is left out when the changes are applied.
    if container == .rawFile, name.isReservedBySQLite { return }
    if let refusal = name.refusal {
      throw DiffFileError(
        .badName, "the table \(EscapedText.quoted(header.name)) cannot be part of a diff: \(refusal)",
        member: MemberName.changeset, table: header.name, offset: offset)
    }
  }

  /// Adds a new table; a known one must have the same header as before.
  private static func register(
    _ header: ChangesetTable, _ place: Int, _ tables: inout [Table], at offset: Int
  ) throws(DiffFileError) {
    if place < tables.count {
      let known = tables[place].header
      guard known == header, known.name.utf8.elementsEqual(header.name.utf8) else {
        throw invalid(
          "the table \(EscapedText.quoted(header.name)) comes again with other columns, another key or another spelling",
          at: offset, table: header.name)
      }
      return
    }
    guard tables.count < DiffFileLimits.tables else {
      throw DiffFileError(
        .tooLarge, "it changes more than \(DiffFileLimits.tables) tables", member: MemberName.changeset)
    }
    tables.append(Table(header: header))
  }
}

extension ChangesetInspection.Table {
  /// Checks the annotation of a change, and counts withdrawals.
  fileprivate mutating func add(_ run: Annotations.Run, _ change: Change) throws(DiffFileError) {
    if run.kind == .withdraw {
      guard change.operation == .delete else {
        throw JSONMember.annotations.invalid(
          "kind", "calls a change of \(EscapedText.quoted(header.name)) a withdrawal that is no DELETE")
      }
      withdrawn += 1
    }
    if let last = run.columns.last, last.column >= header.columnCount {
      throw JSONMember.annotations.invalid(
        "columns", "names a column that \(EscapedText.quoted(header.name)) does not have", table: header.name)
    }
  }
}

extension ChangesetInspection {
  /// Checks that the manifest describes exactly these changes.
  ///
  /// - Throws: `DiffFileError` with code `badChangeset` or `contradiction`.
  func checkConsistency(with manifest: Manifest) throws(DiffFileError) {
    guard format != .patchset else {
      throw DiffFileError(
        .badChangeset, "it is a patchset, and a diff file holds a changeset", member: MemberName.changeset)
    }
    guard tables.count == manifest.tables.count else {
      throw Self.contradiction(
        "the changeset changes \(tables.count) tables, the manifest lists \(manifest.tables.count)")
    }
    for (found, claimed) in zip(tables, manifest.tables) { try found.checkConsistency(with: claimed) }
  }

  /// Checks that every table with changes is defined, with the columns and the key of the changes.
  ///
  /// - Throws: `DiffFileError` with code `contradiction`.
  func checkConsistency(with schema: [TableDefinition], keys manifest: Manifest) throws(DiffFileError) {
    let definitions = Dictionary(schema.map { (TableName($0.name), $0) }) { first, _ in first }
    for (found, claimed) in zip(tables, manifest.tables) {
      let name = found.header.name
      let shown = EscapedText.quoted(name)
      guard let table = definitions[TableName(name)], table.name.utf8.elementsEqual(name.utf8) else {
        throw Self.contradiction("the changeset changes \(shown), which schema.json does not define", name)
      }
      guard table.isKeyedByRowID == (claimed.key == .rowid) else {
        throw Self.contradiction("manifest and schema.json disagree on the key of \(shown)", name)
      }
      guard table.changesetColumns.count == found.header.columnCount else {
        throw Self.contradiction(
          "\(shown) has \(found.header.columnCount) columns in the changeset and"
            + " \(table.changesetColumns.count) in schema.json", name)
      }
      // Older SQLite versions mark every key column with 1, without its position in the key. Therefore only the set is
      // compared.
      guard table.keyFlags.map({ $0 != 0 }) == found.header.keyFlags.map({ $0 != 0 }) else {
        throw Self.contradiction("\(shown) has another primary key in the changeset than in schema.json", name)
      }
    }
  }

  fileprivate static func contradiction(_ message: String, _ table: String? = nil) -> DiffFileError {
    DiffFileError(.contradiction, message, table: table)
  }
}

extension ChangesetInspection.Table {
  fileprivate func checkConsistency(with claimed: Manifest.Table) throws(DiffFileError) {
    let shown = EscapedText.quoted(header.name)
    guard claimed.name.utf8.elementsEqual(header.name.utf8) else {
      throw ChangesetInspection.contradiction(
        "the changeset changes \(shown) where the manifest lists \(EscapedText.quoted(claimed.name))", header.name)
    }
    guard claimed.columns == header.columnCount else {
      throw ChangesetInspection.contradiction(
        "\(shown) has \(header.columnCount) columns in the changeset and \(claimed.columns) in the manifest",
        header.name)
    }
    if claimed.key == .rowid {
      guard header.isKey(0), !header.keyFlags.dropFirst().contains(where: { $0 != 0 }) else {
        throw ChangesetInspection.contradiction(
          "\(shown) is keyed by rowid in the manifest and by something else in the changeset", header.name)
      }
    }
    let counts =
      [("INSERTs", inserted, claimed.inserted), ("UPDATEs", updated, claimed.updated)]
      + [("DELETEs", deleted, claimed.deleted), ("withdrawals", withdrawn, claimed.withdrawn)]
    for (what, found, said) in counts where found != said {
      throw ChangesetInspection.contradiction(
        "\(shown) has \(found) \(what) in the changeset and \(said) in the manifest", header.name)
    }
  }
}
