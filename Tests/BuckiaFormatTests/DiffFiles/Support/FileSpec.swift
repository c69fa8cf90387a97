import BuckiaBytes
import SQLiteChangesets
import SQLiteSchemas
import TestSupport

@testable import BuckiaFormat

/// A diff file as a literal: its manifest, its members, and its faults.
///
/// The defaults describe a small, valid file.
struct FileSpec: Sendable {
  /// The manifest, except tables, schema and members.
  var manifest = Manifest(id: Sample.id)
  /// The manifest's description of the changes.
  var tables: [Manifest.Table] = [.notes(), .log()]
  var schema: [TableDefinition]? = Sample.schema
  /// The author's schema as SQL.
  var author: AuthorSchema?
  var changes = Sample.changes
  var annotations: Annotations?
  /// Attachments: names and texts.
  var files: [(name: String, text: String)] = []
  /// True if the samples' key signs the file.
  var isSigned = false
  /// Faults that the writer would not produce, in this order.
  var corruptions: [Corruption] = []

  /// The draft for the writer.
  var draft: DiffFileDraft {
    get throws {
      DiffFileDraft(
        manifest: manifest, schema: schema.map { .included($0) } ?? .absent, author: author,
        tablesInKeyOrder: Set(tables.filter { $0.order == .key }.map { TableName($0.name) }), annotations: annotations,
        attachments: try files.map { file in
          let content = TemporaryBuffer(folder: TemporaryBuffer.standardFolder)
          try content.write(Array(file.text.utf8))
          return .init(name: file.name, content: content)
        })
    }
  }

  /// The file made by our writer.
  func written(level: Int = 1) throws -> [UInt8] {
    var writer = DiffFileWriter()
    writer.level = level
    if isSigned { writer.signer = try Sample.signer() }
    let output = MemoryOutput()
    try writer.write(draft, changeset: TemporaryBuffer(TableChanges.bytes(changes)), to: output)
    return output.bytes
  }

  /// The archive described by this literal, with its faults, built without the writer.
  func archive() throws -> [UInt8] {
    var contents: [ArchiveMember] = []
    if let schema { contents.append(ArchiveMember("schema.json", try SchemaDocument.bytes(schema, author: author))) }
    contents.append(ArchiveMember("changeset", TableChanges.bytes(changes)))
    if let annotations { contents.append(ArchiveMember("annotations", annotations.bytes())) }
    for file in files { contents.append(ArchiveMember("files/\(file.name)", Array(file.text.utf8))) }
    for corruption in corruptions { corruption.change(contents: &contents) }

    var complete = manifest
    complete.tables = tables
    complete.schema = contents.first { $0.name == "schema.json" }.map { ContentDigest(of: $0.bytes) }
    complete.members = contents.map {
      Manifest.Member(name: $0.name, size: Int64($0.bytes.count), sha256: ContentDigest(of: $0.bytes))
    }
    if isSigned {
      complete.sender = complete.sender ?? Manifest.Sender()
      complete.sender?.identity = try Sample.signer().identity
    }
    var manifestText = complete.json.text()
    for corruption in corruptions { corruption.change(manifest: &manifestText) }

    var members = [ArchiveMember("manifest.json", Array(manifestText.utf8))]
    if isSigned {
      members.append(ArchiveMember("manifest.sig", try Sample.signer().signature(of: Array(manifestText.utf8))))
    }
    members += contents
    for corruption in corruptions { try corruption.change(members: &members) }

    var archive = members.flatMap { $0.header + $0.bytes + $0.padding } + [UInt8](repeating: 0, count: 1024)
    for corruption in corruptions { corruption.change(archive: &archive) }
    return archive
  }

  /// The file described by this literal, with its faults, compressed as by another program.
  func packed() throws -> [UInt8] {
    var packing = Packing()
    for corruption in corruptions { corruption.change(packing: &packing) }
    var file = try packing.compress(archive())
    for corruption in corruptions { corruption.change(file: &file) }
    return file
  }
}

/// A member of the archive, valid or not.
struct ArchiveMember: Sendable {
  var name: String
  var bytes: [UInt8]
  var header: [UInt8]
  var padding: [UInt8]

  init(_ name: String, _ bytes: [UInt8]) {
    self.name = name
    self.bytes = bytes
    header = TarHeader.bytes(name: name, size: Int64(bytes.count))
    padding = [UInt8](repeating: 0, count: TarHeader.padding(after: Int64(bytes.count)))
  }
}

/// Everything that opening a diff file returns, except information about the file itself.
struct ReadFile: Equatable {
  let manifest: Manifest
  let manifestBytes: [UInt8]
  let manifestDigest: ContentDigest
  let signature: DiffFile.Signature
  let schema: [TableDefinition]?
  let author: AuthorSchema?
  let changeset: [UInt8]
  let inspection: ChangesetInspection
  let annotations: Annotations?
  let files: [String: [UInt8]]

  init(_ diff: borrowing DiffFile) throws {
    manifest = diff.manifest
    manifestBytes = diff.manifestBytes
    manifestDigest = diff.manifestDigest
    signature = diff.signature
    schema = diff.schema
    author = diff.author
    changeset = try diff.changeset.bytes()
    inspection = diff.inspection
    annotations = diff.annotations
    var files: [String: [UInt8]] = [:]
    for attachment in diff.attachments {
      let content = MemoryOutput()
      try attachment.forEachPiece { content.write($0) }
      files[attachment.name] = content.bytes
    }
    self.files = files
  }

  /// Opens a file in memory.
  init(_ file: [UInt8]) throws {
    try self.init(DiffFile.verified(from: MemoryInput(file), byteCount: Int64(file.count)))
  }
}

/// The error of opening a file in memory, or nil if it is accepted.
func refusal(
  of file: [UInt8], limits: DiffFileLimits = DiffFileLimits(), temporaryFolder: String = TemporaryBuffer.standardFolder
) -> DiffFileError? {
  do throws(DiffFileError) {
    _ = try DiffFile.verified(
      from: MemoryInput(file), byteCount: Int64(file.count), limits: limits, temporaryFolder: temporaryFolder)
    return nil
  } catch {
    return error
  }
}

/// The error of opening a file by its name, or nil if it is accepted.
func refusal(at path: String, name: DiffFile.NameRule = .ifNamedByID) -> DiffFileError? {
  do throws(DiffFileError) {
    _ = try DiffFile.verified(at: path, name: name)
    return nil
  } catch {
    return error
  }
}
