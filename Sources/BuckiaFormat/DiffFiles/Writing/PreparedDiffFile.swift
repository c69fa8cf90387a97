import BuckiaBytes
import SQLiteChangesets
import SQLiteSchemas

/// A diff file that is ready to be written: its members, and the manifest with their sizes and digests.
struct PreparedDiffFile {
  var manifest: Manifest
  private(set) var members: [PreparedMember] = []

  init(_ draft: DiffFileDraft, changeset: TemporaryBuffer, limits: DiffFileLimits) throws(DiffFileError) {
    manifest = draft.manifest
    manifest.members = []
    manifest.schema = nil
    var definitions: [TableDefinition]?
    switch draft.schema {
    case .included(let tables):
      let bytes = try SchemaDocument.bytes(tables, author: draft.author)
      definitions = tables
      manifest.schema = ContentDigest(of: bytes)
      try add(MemberName.schema, .memory(bytes))
    case .known(let digest): manifest.schema = digest
    case .absent: break
    }
    try addParts(of: changeset, splitBytes: limits.splitBytes)
    if let annotations = draft.annotations {
      try annotations.check(id: manifest.id)
      try add(MemberName.annotations, .memory(annotations.bytes()))
    }
    for attachment in draft.attachments.sorted(by: { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }) {
      try add(MemberName.filesPrefix + attachment.name, .buffer(attachment.content, 0..<attachment.content.count))
    }
    try describeTables(draft, definitions: definitions, changeset: changeset)
  }

  private mutating func describeTables(
    _ draft: DiffFileDraft, definitions: [TableDefinition]?, changeset: TemporaryBuffer
  ) throws(DiffFileError) {
    let inspection = try ChangesetInspection(changeset, annotations: draft.annotations)
    let byRowID =
      definitions.map { Set($0.filter(\.isKeyedByRowID).map { TableName($0.name) }) } ?? draft.tablesByRowID
    manifest.tables = inspection.tables.map { table in
      let name = TableName(table.header.name)
      return Manifest.Table(
        name: table.header.name, columns: table.header.columnCount,
        key: byRowID.contains(name) ? .rowid : .primary,
        order: draft.tablesInKeyOrder.contains(name) ? .key : .author,
        inserted: table.inserted, updated: table.updated, deleted: table.deleted, withdrawn: table.withdrawn)
    }
    try inspection.checkConsistency(with: manifest)
    if let definitions { try inspection.checkConsistency(with: definitions, keys: manifest) }
  }

  private mutating func addParts(of changeset: TemporaryBuffer, splitBytes: Int64) throws(DiffFileError) {
    var start = 0
    var index = 0
    repeat {
      let end = min(changeset.count, start + Int(clamping: splitBytes))
      try add(MemberName.changesetPart(index), .buffer(changeset, start..<end))
      start = end
      index += 1
    } while start < changeset.count
  }

  private mutating func add(_ name: String, _ content: PreparedMember.Content) throws(DiffFileError) {
    var hasher = ContentHasher()
    try content.forEachPiece { (piece) throws(DiffFileError) in hasher.update(piece) }
    manifest.members.append(Manifest.Member(name: name, size: content.byteCount, sha256: hasher.digest))
    members.append(PreparedMember(name: name, content: content))
  }
}

/// One member of a diff file that is ready to be written.
struct PreparedMember {
  /// Where its bytes are; they can be read any number of times.
  enum Content {
    case memory([UInt8])
    case buffer(TemporaryBuffer, Range<Int>)
  }

  let name: String
  let content: Content

  func write(to archive: ArchiveWriter) throws(DiffFileError) {
    try archive.begin(name, size: content.byteCount)
    try content.forEachPiece { (piece) throws(DiffFileError) in try archive.append(piece) }
    try archive.end()
  }
}

extension PreparedMember.Content {
  var byteCount: Int64 {
    switch self {
    case .memory(let bytes): Int64(bytes.count)
    case .buffer(_, let range): Int64(range.count)
    }
  }

  /// Gives the bytes to `body`, piece by piece.
  func forEachPiece(_ body: (UnsafeRawBufferPointer) throws(DiffFileError) -> Void) throws(DiffFileError) {
    switch self {
    case .memory(let bytes):
      try bytes.withUnsafeBufferPointer { (buffer) throws(DiffFileError) in
        try body(UnsafeRawBufferPointer(buffer))
      }
    case .buffer(let buffer, let range):
      do { try buffer.forEachPiece(range, body) } catch { throw DiffFileError(spooling: error) }
    }
  }
}
