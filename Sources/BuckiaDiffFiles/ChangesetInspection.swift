import SQLiteChangesets
import SQLiteSchemas

/// What one pass over a changeset finds: that all of it is well-formed, and what it does to which table.
public struct ChangesetInspection: Equatable, Sendable {
  /// A table and how many changes it has.
  public struct Table: Equatable, Sendable {
    /// The table's header.
    public let header: ChangesetTable
    /// How many INSERTs there are.
    public internal(set) var inserted: Int64 = 0
    /// How many UPDATEs there are.
    public internal(set) var updated: Int64 = 0
    /// How many DELETEs there are, withdrawals included.
    public internal(set) var deleted: Int64 = 0
    /// How many of the DELETEs the annotations call withdrawals.
    public internal(set) var withdrawn: Int64 = 0

    init(header: ChangesetTable) { self.header = header }
  }

  /// The tables in the order in which they first appear.
  public private(set) var tables: [Table] = []
  /// How many changes there are.
  public private(set) var changes: Int64 = 0

  /// Whether it is a patchset; nil when it has no changes.
  public var format: ChangesetFormat? { tables.first?.header.format }

  /// Reads all of a spool.
  ///
  /// - Throws: `DiffFileError` with code `badChangeset`, `badName`, `contradiction`, or for the spool's file.
  init(_ spool: ChangesetSpool, annotations: Annotations? = nil) throws(DiffFileError) {
    do {
      self = try spool.withBytes { bytes in try ChangesetInspection(bytes, annotations: annotations) }
    } catch {
      throw DiffFileError(spooling: error)
    }
  }

  /// Reads all of a changeset.
  init(_ bytes: RawSpan, annotations: Annotations?) throws(DiffFileError) {
    var reader = ChangesetReader()
    var places: [TableName: Int] = [:]
    var cursor = AnnotationCursor(annotations)
    var place = 0
    var end = 0
    while let change = try Self.next(&reader, in: bytes), let header = reader.table {
      if change.startsTable {
        try Self.checkHeader(header, at: reader.headerRange, after: end, in: bytes)
        place = try enter(header, places: &places, at: reader.headerRange.lowerBound)
      }
      try count(change, in: place, run: cursor.next())
      end = change.range.upperBound
    }
    guard end == bytes.byteCount else { throw Self.fault("a table header has no changes", at: end) }
    try cursor.finish()
  }

  private static func next(
    _ reader: inout ChangesetReader, in bytes: RawSpan
  ) throws(DiffFileError) -> Change? {
    do throws(ChangesetError) { return try reader.next(in: bytes) } catch { throw DiffFileError(error) }
  }

  private static func fault(_ message: String, at offset: Int, table: String? = nil) -> DiffFileError {
    DiffFileError(.badChangeset, message, member: MemberName.changeset, table: table, offset: offset)
  }

  /// A header must follow its predecessor's last change and be written in the one shortest way.
  ///
  /// Headers without changes would otherwise be stepped over unseen, and a name that is no UTF-8 be taken for another.
  private static func checkHeader(
    _ header: ChangesetTable, at range: Range<Int>, after end: Int, in bytes: RawSpan
  ) throws(DiffFileError) {
    guard range.lowerBound == end else { throw fault("a table header has no changes", at: end) }
    var writer = ChangesetWriter()
    writer.beginTable(header)
    guard bytes.array(range) == writer.bytes else {
      throw fault("a table header is not UTF-8, or not in its shortest form", at: range.lowerBound)
    }
    guard header.name.utf8.count <= DiffFileLimits.nameBytes else {
      throw fault("a table name has more than \(DiffFileLimits.nameBytes) bytes", at: range.lowerBound)
    }
    guard header.keyFlags.contains(where: { $0 != 0 }) else {
      throw fault("a table has no key", at: range.lowerBound, table: header.name)
    }
    if let refusal = TableName(header.name).refusal {
      throw DiffFileError(
        .badName, "the table \(ShownText.quoted(header.name)) cannot be part of a diff: \(refusal)",
        member: MemberName.changeset, table: header.name, offset: range.lowerBound)
    }
  }

  private mutating func enter(
    _ header: ChangesetTable, places: inout [TableName: Int], at offset: Int
  ) throws(DiffFileError) -> Int {
    if let place = places[TableName(header.name)] {
      let known = tables[place].header
      guard known == header, known.name.utf8.elementsEqual(header.name.utf8) else {
        throw Self.fault(
          "the table \(ShownText.quoted(header.name)) comes again with other columns, another key or another spelling",
          at: offset, table: header.name)
      }
      return place
    }
    guard tables.count < DiffFileLimits.tables else {
      throw DiffFileError(
        .tooLarge, "it changes more than \(DiffFileLimits.tables) tables", member: MemberName.changeset)
    }
    tables.append(Table(header: header))
    places[TableName(header.name)] = tables.count - 1
    return tables.count - 1
  }

  private mutating func count(
    _ change: Change, in place: Int, run: Annotations.Run?
  ) throws(DiffFileError) {
    changes += 1
    switch change.operation {
    case .insert: tables[place].inserted += 1
    case .update: tables[place].updated += 1
    case .delete: tables[place].deleted += 1
    }
    guard let run else { return }
    let header = tables[place].header
    if run.kind == .withdraw {
      guard change.operation == .delete else {
        throw DocumentKind.annotations.fault(
          "kind", "calls a change of \(ShownText.quoted(header.name)) a withdrawal that is no DELETE")
      }
      tables[place].withdrawn += 1
    }
    if let last = run.columns.last, last.column >= header.columnCount {
      throw DocumentKind.annotations.fault(
        "columns", "names a column that \(ShownText.quoted(header.name)) does not have", table: header.name)
    }
  }
}

extension DiffFileError {
  /// A changeset that is not well-formed.
  init(_ error: ChangesetError) {
    self.init(.badChangeset, "\(error)", member: MemberName.changeset, table: error.table, offset: error.offset)
    tellsOffset = true
  }

  /// Whatever came out of a closure over a spool's bytes.
  init(spooling error: any Error) {
    switch error {
    case let error as DiffFileError: self = error
    case let error as ChangesetError: self.init(error)
    case let error as ChangesetSpool.Failure: self.init(error)
    default: self.init(.unreadable, "\(error)")
    }
  }

  /// A temporary file that cannot be used.
  init(_ failure: ChangesetSpool.Failure) {
    self.init(
      Self.code(ofSystemError: failure.errno, otherwise: .unwritable), failure.description,
      systemError: failure.errno)
  }
}
