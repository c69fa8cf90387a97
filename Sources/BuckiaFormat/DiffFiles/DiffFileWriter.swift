import BuckiaBytes
import CBuckiaZstd
import SQLiteChangesets
import SQLiteSchemas

/// Writes diff files.
///
/// ```swift
/// let draft = DiffFileDraft(manifest: Manifest(id: id), schema: .included(tables))
/// let written = try DiffFileWriter().write(draft, changeset: spool, to: "outbox/\(DiffFileName.diff(id))")
/// print(written.bytes)
/// ```
package struct DiffFileWriter: Sendable {
  /// zstd's level, 1 to 19. On changesets 3 and 9 gain next to nothing over 1.
  package var level = 1
  /// True to replace a file of that name; else it is an error.
  package var replacesExisting = false
  /// True if only its owner may read the file.
  package var isPrivate = false
  /// The signer, whose key becomes the manifest's `sender.identity`. Without a signer that must be empty.
  package var signer: ManifestSigner?
  /// The limits of readers. The writer refuses what they could not read.
  package var limits = DiffFileLimits()

  /// The version of the zstd library, such as `1.5.4`. Another version may compress the same bytes differently.
  package static var zstdVersion: String { String(cString: ZSTD_versionString()) }

  /// Creates a writer of unsigned files.
  package init() {}

  /// Writes a diff file under a name, complete or not at all.
  ///
  /// - Parameters:
  ///   - draft: The content of the file.
  ///   - changeset: The changes, a changeset of SQLite's session extension. May be empty.
  ///   - path: The file. For an inbound folder it must be called `<KSUID>.bdiff`.
  /// - Returns: The written file.
  /// - Throws: `DiffFileError`: for what a reader would refuse, `alreadyExists`, `fullDisk`, or `unwritable`. The file
  ///   then does not exist (or is still the old one), and nothing is left behind.
  @discardableResult
  package func write(
    _ draft: DiffFileDraft, changeset: TemporaryBuffer, to path: String
  ) throws(DiffFileError) -> WrittenDiffFile {
    do throws(DiffFileError) {
      let prepared = try prepare(draft, changeset: changeset)
      let file: AtomicFileOutput
      do throws(ByteStreamError) {
        file = try AtomicFileOutput(
          at: path, replacing: replacesExisting, followingLinks: true, isPrivate: isPrivate)
      } catch {
        throw DiffFileError(error)
      }
      let written = try write(prepared, to: file)
      do throws(ByteStreamError) { try file.publish() } catch { throw DiffFileError(error) }
      return written
    } catch {
      throw error.naming(path: path)
    }
  }

  /// Writes a diff file to any output.
  ///
  /// - Parameters:
  ///   - draft: The content of the file.
  ///   - changeset: The changes, a changeset of SQLite's session extension. May be empty.
  ///   - output: The output for its bytes.
  /// - Returns: The written file.
  /// - Throws: `DiffFileError`: for what a reader would refuse, or one of the output's. What has been written by then must
  ///   not be used.
  @discardableResult
  package func write(
    _ draft: DiffFileDraft, changeset: TemporaryBuffer, to output: any ByteOutput
  ) throws(DiffFileError) -> WrittenDiffFile {
    try write(prepare(draft, changeset: changeset), to: output)
  }

  /// Counts, hashes and signs the content.
  ///
  /// The changeset is read twice, once here and once to write it; memory does not grow with it.
  private func prepare(_ draft: DiffFileDraft, changeset: TemporaryBuffer) throws(DiffFileError) -> PreparedDiffFile {
    var prepared = try PreparedDiffFile(draft, changeset: changeset, limits: limits)
    if let signer {
      var sender = prepared.manifest.sender ?? Manifest.Sender()
      guard sender.identity == nil || sender.identity == signer.identity else {
        throw DiffFileError(.badSignature, "the manifest names another sender than the one who signs")
      }
      sender.identity = signer.identity
      prepared.manifest.sender = sender
    } else if prepared.manifest.sender?.identity != nil {
      throw DiffFileError(.badSignature, "the manifest names the key of its sender, who does not sign")
    }
    return prepared
  }

  private func write(
    _ prepared: PreparedDiffFile, to output: any ByteOutput
  ) throws(DiffFileError) -> WrittenDiffFile {
    let manifest = prepared.manifest
    let manifestBytes = manifest.json.bytes()
    // A manifest that the parser would refuse must not be written.
    guard try Manifest(parsing: manifestBytes, splitBytes: limits.splitBytes) == manifest else {
      throw JSONMember.manifest.invalid("manifest", "would not be read as written")
    }
    let file = DigestingOutput(output, ContentHasher())
    let archive = try ArchiveWriter(file, level: level)
    try archive.append(MemberName.manifest, manifestBytes)
    if let signer { try archive.append(MemberName.signature, signer.signature(of: manifestBytes)) }
    for (name, content) in prepared.members {
      try archive.begin(name, size: content.byteCount)
      try content.forEachPiece { (piece) throws(DiffFileError) in try archive.append(piece) }
      try archive.end()
    }
    try archive.finish()
    let content = manifest.members.reduce(Int64(0)) { $0 + $1.size }
    try limits.check(content: content)
    try limits.check(content: content, fileBytes: file.byteCount)
    return WrittenDiffFile(
      bytes: file.byteCount, manifest: manifest, manifestDigest: ContentDigest(of: manifestBytes),
      fileDigest: file.hasher.digest)
  }
}

/// A diff file that has been written.
package struct WrittenDiffFile: Sendable {
  /// The size of the file.
  package let bytes: Int64
  /// The manifest as written, with counts and digests.
  package let manifest: Manifest
  /// SHA-256 of the manifest's bytes, by which successors name this diff.
  package let manifestDigest: ContentDigest
  /// SHA-256 of the file's bytes.
  package let fileDigest: ContentDigest
}

/// The contents of a new diff file besides its changes. The writer adds counts, sizes and digests.
package struct DiffFileDraft {
  /// How the tables are described.
  package enum Schema: Sendable {
    /// By included definitions: all tables with changes, and any others, such as new empty ones.
    case included([TableDefinition])
    /// By definitions that every reader has already, identified by the digest of their `schema.json`.
    case known(ContentDigest)
    /// Not at all: columns are positional, as in a raw changeset.
    case absent
  }

  /// A file to travel along.
  package struct Attachment {
    /// Its name below `files/`.
    package var name: String
    /// Its bytes.
    package var content: TemporaryBuffer

    /// Creates an attachment.
    package init(name: String, content: TemporaryBuffer) {
      self.name = name
      self.content = content
    }
  }

  /// The manifest; the writer fills in `tables`, `members` and `schema`.
  package var manifest: Manifest
  /// How the tables are described.
  package var schema: Schema
  /// The author's whole schema as SQL, to travel with included definitions; nil if it does not.
  package var author: AuthorSchema?
  /// The tables whose changes are in the order of their key; all others are in their author's order.
  package var tablesInKeyOrder: Set<TableName>
  /// Tables that go by rowid. Only needed when no definitions are included.
  package var tablesByRowID: Set<TableName>
  /// The origins of the changes, unless all are the sender's own edits.
  package var annotations: Annotations?
  /// Files to travel along.
  package var attachments: [Attachment]

  /// Creates a draft.
  package init(
    manifest: Manifest, schema: Schema, author: AuthorSchema? = nil, tablesInKeyOrder: Set<TableName> = [],
    tablesByRowID: Set<TableName> = [],
    annotations: Annotations? = nil, attachments: [Attachment] = []
  ) {
    self.manifest = manifest
    self.schema = schema
    self.author = author
    self.tablesInKeyOrder = tablesInKeyOrder
    self.tablesByRowID = tablesByRowID
    self.annotations = annotations
    self.attachments = attachments
  }
}

/// A diff file that is ready to be written: its members, and the manifest with their sizes and digests.
struct PreparedDiffFile {
  var manifest: Manifest
  private(set) var members: [(name: String, content: MemberContent)] = []

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

  private mutating func add(_ name: String, _ content: MemberContent) throws(DiffFileError) {
    var hasher = ContentHasher()
    try content.forEachPiece { (piece) throws(DiffFileError) in hasher.update(piece) }
    manifest.members.append(Manifest.Member(name: name, size: content.byteCount, sha256: hasher.digest))
    members.append((name, content))
  }
}

/// The source of a member's bytes, which can be read any number of times.
enum MemberContent {
  case memory([UInt8])
  case buffer(TemporaryBuffer, Range<Int>)

  var byteCount: Int64 {
    switch self {
    case .memory(let bytes): Int64(bytes.count)
    case .buffer(_, let range): Int64(range.count)
    }
  }

  /// Calls `body` with the bytes, piece by piece.
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
