import SQLiteChangesets
import SQLiteSchemas

/// The members of a diff file to be written, and the manifest that speaks of them.
struct MemberPlan {
  var manifest: Manifest
  private(set) var contents: [MemberContent] = []

  init(_ draft: DiffFileDraft, changeset: ChangesetSpool, limits: DiffFileLimits) throws(DiffFileError) {
    manifest = draft.manifest
    manifest.members = []
    manifest.schema = nil
    var definitions: [TableDefinition]?
    switch draft.schema {
    case .included(let tables):
      let bytes = try SchemaDocument.bytes(tables)
      definitions = tables
      manifest.schema = RunningDigest.of(bytes)
      try add(MemberName.schema, bytes)
    case .known(let digest): manifest.schema = digest
    case .absent: break
    }
    try addParts(of: changeset, splitBytes: limits.splitBytes)
    if let annotations = draft.annotations {
      try annotations.check(id: manifest.id)
      try add(MemberName.annotations, annotations.bytes())
    }
    for attachment in draft.attachments.sorted(by: { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }) {
      try add(MemberName.filesPrefix + attachment.name, attachment.content, 0..<attachment.content.count)
    }
    try describeTables(draft, definitions: definitions, changeset: changeset)
  }

  private mutating func describeTables(
    _ draft: DiffFileDraft, definitions: [TableDefinition]?, changeset: ChangesetSpool
  ) throws(DiffFileError) {
    let inspection = try ChangesetInspection(changeset, annotations: draft.annotations)
    let byRowID =
      definitions.map { Set($0.filter(\.goesByRowID).map { TableName($0.name) }) } ?? draft.tablesByRowID
    manifest.tables = inspection.tables.map { table in
      let name = TableName(table.header.name)
      return Manifest.Table(
        name: table.header.name, columns: table.header.columnCount,
        key: byRowID.contains(name) ? .rowid : .primary,
        order: draft.tablesInKeyOrder.contains(name) ? .key : .author,
        inserted: table.inserted, updated: table.updated, deleted: table.deleted, withdrawn: table.withdrawn)
    }
    try inspection.checkAgreement(with: manifest)
    if let definitions { try inspection.checkAgreement(with: definitions, keys: manifest) }
  }

  private mutating func addParts(of changeset: ChangesetSpool, splitBytes: Int64) throws(DiffFileError) {
    var start = 0
    var index = 0
    repeat {
      let end = min(changeset.count, start + Int(clamping: splitBytes))
      try add(MemberName.changesetPart(index), changeset, start..<end)
      start = end
      index += 1
    } while start < changeset.count
  }

  private mutating func add(_ name: String, _ bytes: [UInt8]) throws(DiffFileError) {
    try add(name, ChangesetSpool(bytes), 0..<bytes.count)
  }

  private mutating func add(
    _ name: String, _ spool: ChangesetSpool, _ range: Range<Int>
  ) throws(DiffFileError) {
    let content = MemberContent(name: name, spool: spool, range: range)
    var digest = RunningDigest()
    try content.forEachPiece { (piece) throws(DiffFileError) in digest.update(piece) }
    manifest.members.append(Manifest.Member(name: name, size: Int64(range.count), sha256: digest.digest))
    contents.append(content)
  }
}

/// The bytes of one member: a piece of a spool.
struct MemberContent {
  let name: String
  let spool: ChangesetSpool
  let range: Range<Int>

  func write(to archive: ArchiveWriter) throws(DiffFileError) {
    try archive.begin(name, size: Int64(range.count))
    try forEachPiece { (piece) throws(DiffFileError) in try archive.append(piece) }
    try archive.end()
  }

  /// Gives the bytes to `body`, at most a mebibyte at a time.
  func forEachPiece(
    _ body: (UnsafeRawBufferPointer) throws(DiffFileError) -> Void
  ) throws(DiffFileError) {
    do {
      try spool.withBytes { bytes in
        var start = range.lowerBound
        while start < range.upperBound {
          let end = min(range.upperBound, start + (1 << 20))
          try bytes.extracting(start..<end).withUnsafeBytes { (piece) throws(DiffFileError) in try body(piece) }
          start = end
        }
      }
    } catch {
      throw DiffFileError(spooling: error)
    }
  }
}
