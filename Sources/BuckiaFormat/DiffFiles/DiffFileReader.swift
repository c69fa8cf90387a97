import BuckiaBytes
import SQLiteChangesets
import SQLiteSchemas

/// Reads a diff file once, from any input, and checks all of it.
struct DiffFileReader {
  /// A file's name, with or without its folder, and the rule for it.
  typealias Name = (name: String, rule: DiffFile.NameRule)

  let limits: DiffFileLimits
  /// The folder for temporary files.
  let temporaryFolder: String
  /// Reused from one file to the next.
  let cache: OpeningCache?
  /// Called every few thousand changes; false stops the reading.
  var isWanted: () -> Bool = { true }
  /// Called with the beginning of the file; false stops the reading.
  var takes: (DiffFile.Head) -> Bool = { _ in true }
  /// Decrypts the file; nil for one that is not encrypted.
  var decrypt: DiffFile.Decrypting?
  /// Called for a file with many changes as soon as these begin to arrive.
  var announce: ((StreamedDiffFile) -> Void)?

  /// Reads and checks a file.
  ///
  /// - Parameters:
  ///   - source: The bytes of the file.
  ///   - byteCount: Their number, if known.
  ///   - name: The file's name, if it has one.
  func read(
    _ source: any ByteInput, byteCount: Int64?, name: Name?
  ) throws(DiffFileError) -> DiffFile {
    let file = DigestingInput(source, ContentHasher())
    let archive = try ArchiveReader(decrypted(file), workspace: cache?.workspace ?? ZstdWorkspace())

    let size = try archive.firstMember(named: MemberName.manifest, limit: DiffFileLimits.manifestBytes)
    let manifestBytes = try archive.content(of: MemberName.manifest, size: size)
    let manifest = try Manifest(parsing: manifestBytes, splitBytes: limits.splitBytes)
    if let name { try Self.check(name, id: manifest.id) }
    let signature = try Self.readSignature(archive, manifest: manifest, bytes: manifestBytes)
    do throws(DiffFileError) {
      let head = DiffFile.Head(
        manifest: manifest, manifestDigest: ContentDigest(of: manifestBytes), signature: signature)
      guard takes(head) else { throw DiffFileError.abandoned }
      return try readContent(
        of: archive, manifest, manifestBytes, signature, from: file, byteCount: byteCount)
    } catch {
      // What cannot be read to its end has a sender nevertheless.
      var signed = error
      signed.isSignerKnown = true
      if case .signed(let key) = signature { signed.signer = key }
      throw signed
    }
  }

  /// The input of the archive: the file, or its decrypted bytes.
  private func decrypted(_ file: any ByteInput) throws(DiffFileError) -> any ByteInput {
    guard let decrypt else { return file }
    do throws(ByteStreamError) { return try decrypt(file) } catch { throw DiffFileError(error) }
  }

  /// Reads and checks everything after the signature.
  private func readContent(
    of archive: ArchiveReader, _ manifest: Manifest, _ manifestBytes: [UInt8], _ signature: DiffFile.Signature,
    from file: DigestingInput<ContentHasher>, byteCount: Int64?
  ) throws(DiffFileError) -> DiffFile {
    let content = manifest.members.reduce(Int64(0)) { $0 + $1.size }
    try limits.check(content: content)
    if let byteCount { try limits.check(content: content, fileBytes: byteCount) }

    var schema: [TableDefinition]?
    var author: AuthorSchema?
    var annotationBytes: [UInt8]?
    var attachments: [DiffFile.Attachment] = []
    var changeset = TemporaryBuffer(folder: temporaryFolder)
    var publisher: StreamedDiffFile.Publisher?
    let attached = TemporaryBuffer(folder: temporaryFolder)
    // If the size of the file is unknown, the limit counts the bytes that have been read.
    let checkProgress = { () throws(DiffFileError) in
      guard isWanted() else { throw DiffFileError.abandoned }
      if byteCount == nil { try limits.check(content: archive.offset, fileBytes: file.byteCount) }
    }
    for member in manifest.members {
      try archive.member(named: member.name, size: member.size)
      switch MemberName.role(of: member.name) {
      case .schema:
        let bytes = try Self.readBytes(member, from: archive)
        // The cache relies on the digest: it has just been compared with the bytes.
        let content =
          if let cache { try cache.schema(of: bytes, digest: member.sha256) } else {
            try SchemaDocument.content(of: bytes)
          }
        schema = content.tables
        author = content.author
      case .annotations:
        let limit = DiffFileLimits.annotationsBytes(of: manifest)
        guard member.size <= limit else {
          throw DiffFileError(
            .tooLarge, "they have \(member.size) bytes; the limit for these changes is \(limit)", member: member.name)
        }
        annotationBytes = try Self.readBytes(member, from: archive)
      case .changeset:
        if let announce, let schema, publisher == nil,
          let expected = StreamedDiffFile.streamedBytes(of: manifest)
        {
          changeset = try arrivingSpool(expected)
          let diff = StreamedDiffFile(
            manifest: manifest, digest: ContentDigest(of: manifestBytes), signature: signature, schema: schema,
            author: author, changeset: changeset)
          publisher = StreamedDiffFile.Publisher(diff, limits)
          announce(diff)
        }
        try Self.read(member, from: archive) { (piece) throws(DiffFileError) in
          try checkProgress()
          do throws(ByteStreamError) { try changeset.write(piece) } catch { throw DiffFileError(error) }
          try publisher?.advance()
        }
      case .file, nil:
        let start = attached.count
        try Self.read(member, from: archive) { (piece) throws(DiffFileError) in
          try checkProgress()
          do throws(ByteStreamError) { try attached.write(piece) } catch { throw DiffFileError(error) }
        }
        let name = String(member.name.unicodeScalars.dropFirst(MemberName.filesPrefix.unicodeScalars.count))
        attachments.append(DiffFile.Attachment(name: name, range: start..<attached.count, all: attached))
      }
    }
    try archive.finish()

    let annotations = try annotationBytes.map { (bytes) throws(DiffFileError) in try Annotations(parsing: bytes) }
    try annotations?.check(id: manifest.id)
    let inspection: ChangesetInspection
    if let publisher {
      let arrived = try publisher.finish()
      // Only now, with all changes, can the annotations of single changes be checked.
      inspection =
        annotations?.runs.isEmpty ?? true
        ? arrived : try ChangesetInspection(changeset, annotations: annotations, limits: limits, isWanted: isWanted)
      try inspection.check(annotations?.keys)
    } else {
      inspection = try ChangesetInspection(changeset, annotations: annotations, limits: limits, isWanted: isWanted)
    }
    try inspection.checkConsistency(with: manifest)
    if let schema { try inspection.checkConsistency(with: schema, keys: manifest) }

    return DiffFile(
      manifest: manifest, manifestBytes: manifestBytes, manifestDigest: ContentDigest(of: manifestBytes),
      fileDigest: file.hasher.digest, fileBytes: file.byteCount, signature: signature, schema: schema,
      author: author, changeset: changeset, inspection: inspection, annotations: annotations, attachments: attachments)
  }

  private func arrivingSpool(_ expected: Int) throws(DiffFileError) -> TemporaryBuffer {
    do throws(ByteStreamError) {
      return try TemporaryBuffer(arriving: expected, folder: temporaryFolder)
    } catch {
      throw DiffFileError(error)
    }
  }

  private static func check(_ name: Name, id: KSUID) throws(DiffFileError) {
    let encrypted = DiffFileName.encryptedID(name.name)
    let named = encrypted ?? DiffFileName.diffID(name.name)
    guard named == id || (named == nil && name.rule == .ifNamedByID) else {
      let own = encrypted == nil ? DiffFileName.diff(id) : DiffFileName.encrypted(id)
      throw DiffFileError(
        .idMismatch, "the diff inside has the id \(id), so the file's name should be \(own)",
        member: MemberName.manifest)
    }
  }

  private static func readSignature(
    _ archive: ArchiveReader, manifest: Manifest, bytes: [UInt8]
  ) throws(DiffFileError) -> DiffFile.Signature {
    let size = Int64(ManifestSigner.signatureByteCount)
    guard try archive.nextIs(MemberName.signature, size: size) else {
      // Without this check, an applied file without its signature would pass for a new file.
      guard manifest.sender?.identity == nil else {
        throw DiffFileError(
          .badSignature, "it names the key of its sender, but is not signed", member: MemberName.manifest)
      }
      return .unsigned
    }
    let signature = try archive.content(of: MemberName.signature, size: size)
    guard let key = manifest.sender?.identity else {
      throw DiffFileError(
        .badSignature, "it is signed, but the manifest names no key as its sender's", member: MemberName.signature)
    }
    guard key.hasSigned(ManifestSigner.message(bytes), signature) else {
      throw DiffFileError(
        .badSignature, "the signature is not the sender's over this manifest", member: MemberName.signature)
    }
    return .signed(by: key)
  }

  private static func readBytes(
    _ member: Manifest.Member, from archive: ArchiveReader
  ) throws(DiffFileError) -> [UInt8] {
    let bytes = try archive.content(of: member.name, size: member.size)
    try check(ContentDigest(of: bytes), of: member)
    return bytes
  }

  /// Passes on the bytes of a member as they come, and compares their digest with the manifest's at the end.
  private static func read(
    _ member: Manifest.Member, from archive: ArchiveReader,
    _ body: (UnsafeRawBufferPointer) throws(DiffFileError) -> Void
  ) throws(DiffFileError) {
    var hasher = ContentHasher()
    try archive.content(of: member.name, size: member.size) { (piece) throws(DiffFileError) in
      hasher.update(piece)
      try body(piece)
    }
    try check(hasher.digest, of: member)
  }

  private static func check(_ digest: ContentDigest, of member: Manifest.Member) throws(DiffFileError) {
    guard digest == member.sha256 else {
      throw DiffFileError(
        .digestMismatch, "its bytes do not match their digest in the manifest", member: member.name)
    }
  }
}

extension DiffFile {
  /// Reads and checks a diff file.
  ///
  /// The file is opened without following links, must be a regular file, and is read once. The changeset is spooled, and
  /// so are all attachments together: in memory while they are small, in unnamed temporary files beyond 4 MiB.
  ///
  /// - Parameters:
  ///   - path: The file.
  ///   - name: True if the file's name must be the diff's id.
  ///   - limits: How much the file may ask for.
  ///   - temporaryFolder: The folder for temporary files.
  ///   - cache: Reused from one file to the next; worth having where there are many small ones.
  ///   - isWanted: Called every few thousand changes; if it returns false, the error has the code `abandoned`.
  /// - Throws: `DiffFileError` with the file's path. Nothing is left behind.
  package static func verified(
    at path: String, name: NameRule = .mustMatch, limits: DiffFileLimits = DiffFileLimits(),
    temporaryFolder: String = TemporaryBuffer.standardFolder, cache: OpeningCache? = nil,
    isWanted: @escaping () -> Bool = { true }
  ) throws(DiffFileError) -> DiffFile {
    try DiffFileReader(limits: limits, temporaryFolder: temporaryFolder, cache: cache, isWanted: isWanted)
      .read(OpenedFile(at: path), rule: name)
  }

  /// Reads and checks a diff file whose bytes come from anywhere.
  ///
  /// - Parameters:
  ///   - input: The bytes of the file, from its beginning.
  ///   - byteCount: Their number, if known: a file that would unpack to too much is then refused at once.
  ///   - limits: How much the file may ask for.
  ///   - temporaryFolder: The folder for temporary files.
  /// - Throws: `DiffFileError`. Nothing is left behind.
  package static func verified(
    from input: any ByteInput, byteCount: Int64? = nil, limits: DiffFileLimits = DiffFileLimits(),
    temporaryFolder: String = TemporaryBuffer.standardFolder
  ) throws(DiffFileError) -> DiffFile {
    try DiffFileReader(limits: limits, temporaryFolder: temporaryFolder, cache: nil)
      .read(input, byteCount: byteCount, name: nil)
  }

  /// Reads and checks a diff file that is open already.
  ///
  /// - Parameters:
  ///   - file: The file, of which nothing has been read yet.
  ///   - name: True if the file's name must be the diff's id.
  ///   - limits: How much the file may ask for.
  ///   - cache: Reused from one file to the next.
  ///   - isWanted: Called every few thousand changes; if it returns false, the error has the code `abandoned`.
  ///   - takes: Called with the beginning of the file, before anything after it is unpacked; if it returns false, the
  ///     error has the code `abandoned`.
  ///   - decrypt: Decrypts the file; nil for one that is not encrypted.
  /// - Throws: `DiffFileError` with the file's path. Nothing is left behind.
  package static func verified(
    _ file: OpenedFile, name: NameRule, limits: DiffFileLimits = DiffFileLimits(), cache: OpeningCache? = nil,
    isWanted: @escaping () -> Bool = { true },
    takes: @escaping (Head) -> Bool = { _ in true }, decryptedBy decrypt: Decrypting? = nil
  ) throws(DiffFileError) -> DiffFile {
    try DiffFileReader(
      limits: limits, temporaryFolder: TemporaryBuffer.standardFolder, cache: cache, isWanted: isWanted,
      takes: takes, decrypt: decrypt
    ).read(file, rule: name)
  }

  /// Reads and checks a diff file, and announces it early when it has many changes that are sorted by key.
  ///
  /// - Parameters:
  ///   - file: The file, of which nothing has been read yet.
  ///   - name: True if the file's name must be the diff's id.
  ///   - limits: How much the file may ask for.
  ///   - cache: Reused from one file to the next.
  ///   - isWanted: Called every few thousand changes; if it returns false, the error has the code `abandoned`.
  ///   - takes: Called with the beginning of the file; if it returns false, the error has the code `abandoned`.
  ///   - decrypt: Decrypts the file; nil for one that is not encrypted.
  ///   - announce: Called after manifest, signature and definitions are verified. Errors in the rest are then reported
  ///     by the streamed file, and not thrown.
  /// - Returns: The file; nil if it was announced.
  /// - Throws: `DiffFileError` with the file's path. Nothing is left behind.
  package static func verified(
    _ file: OpenedFile, name: NameRule, limits: DiffFileLimits, cache: OpeningCache,
    isWanted: @escaping () -> Bool,
    takes: @escaping (Head) -> Bool, decryptedBy decrypt: Decrypting? = nil,
    announce: @escaping (StreamedDiffFile) -> Void
  ) throws(DiffFileError) -> DiffFile? {
    var announced: StreamedDiffFile?
    let reader = DiffFileReader(
      limits: limits, temporaryFolder: TemporaryBuffer.standardFolder, cache: cache, isWanted: isWanted,
      takes: takes, decrypt: decrypt,
      announce: { streamed in
        announced = streamed
        announce(streamed)
      })
    do throws(DiffFileError) {
      let file = try reader.read(file, rule: name)
      guard let announced else { return file }
      announced.finish(file)
    } catch {
      guard let announced else { throw error }
      announced.feed.fail(error)
    }
    return nil
  }
}

extension DiffFileReader {
  /// Reads and checks a file with a name; errors have its path.
  fileprivate func read(_ file: OpenedFile, rule: DiffFile.NameRule) throws(DiffFileError) -> DiffFile {
    do throws(DiffFileError) {
      return try read(file.input, byteCount: file.byteCount, name: (file.name, rule))
    } catch {
      throw error.naming(path: file.path)
    }
  }
}

/// Objects that are reused when many diff files are opened: the memory for decompression, and table definitions by the
/// digest of their `schema.json`, which is the same in most files of one sender.
///
/// Use it in one thread, for one file at a time.
package final class OpeningCache {
  /// The maximum number of kept documents, and the maximum size of one in bytes.
  private static let limit = 16
  private static let byteLimit = 1 << 20

  let workspace = ZstdWorkspace()
  private var known: [ContentDigest: SchemaDocument.Content] = [:]

  /// Creates an empty cache.
  package init() {}

  /// What a `schema.json` holds.
  ///
  /// - Parameters:
  ///   - bytes: The document.
  ///   - digest: The SHA-256 of these very bytes.
  /// - Throws: `DiffFileError` when the document is not as it must be; that is not remembered.
  func schema(of bytes: [UInt8], digest: ContentDigest) throws(DiffFileError) -> SchemaDocument.Content {
    if let content = known[digest] { return content }
    let content = try SchemaDocument.content(of: bytes)
    guard bytes.count <= Self.byteLimit else { return content }
    if known.count >= Self.limit { known.removeAll(keepingCapacity: true) }
    known[digest] = content
    return content
  }
}
