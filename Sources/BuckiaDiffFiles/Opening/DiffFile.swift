import BuckiaKSUID
import SQLiteChangesets
import SQLiteSchemas

/// A diff file that has been read once and checked wholly.
///
/// There is no other way to make one than ``verified(at:name:limits:spoolFolder:cache:)``, so whoever holds one knows: the
/// container is exactly what the format says, every member has the bytes its manifest speaks of, the signature, if
/// there is one, is its sender's, and manifest, schema, annotations and changeset agree. It does not know whether the
/// sender is to be believed, nor whether the changes fit a database.
///
/// ```swift
/// let diff = try DiffFile.verified(at: "inbound/0ujtsYcgvSTl8PAuAdqWYSMnLOv.bdiff")
/// print(diff.manifest.id, diff.manifest.tables.map(\.name))
/// ```
public struct DiffFile: ~Copyable {
  /// Whether a file's name must be its diff's id.
  public enum NameRule: Sendable {
    /// The name must be `<KSUID>.bdiff` with the id of the manifest. The rule of inbound folders.
    case mustMatch
    /// A name that is `<KSUID>.bdiff` must have the manifest's id; any other name is fine.
    case ifNamedByID
  }

  /// Who signed.
  public enum Signature: Equatable, Sendable {
    /// Nobody: what the manifest says of its sender is only a claim.
    case unsigned
    /// The owner of this key, which is also the manifest's `sender.identity`.
    case signed(by: SigningKey)
  }

  /// An attachment.
  public struct Attachment {
    /// Its name below `files/`, safe to use as a relative path.
    public let name: String
    /// Where its bytes stand among those of all attachments.
    ///
    /// They share one spool: a file of few bytes can hold thousands of attachments, and as many spools would take
    /// gigabytes of memory, or all the files that a process may have open.
    fileprivate let range: Range<Int>
    fileprivate let all: ChangesetSpool

    /// How many bytes it has.
    public var byteCount: Int { range.count }

    /// Gives its bytes to `body`; they must not be kept beyond it.
    ///
    /// - Throws: `ChangesetSpool.Failure` when a temporary file cannot be read; whatever `body` throws.
    public func withBytes<Result>(_ body: (RawSpan) throws -> Result) throws -> Result {
      try all.withBytes { try body($0.extracting(range)) }
    }
  }

  /// The manifest.
  public let manifest: Manifest
  /// The manifest's exact bytes.
  public let manifestBytes: [UInt8]
  /// SHA-256 of the manifest's bytes, which identifies the diff.
  public let manifestDigest: ContentDigest
  /// SHA-256 of the file's bytes.
  public let fileDigest: ContentDigest
  /// The size of the file in bytes.
  public let fileBytes: Int64
  /// Who signed.
  public let signature: Signature
  /// The definitions of the tables, unless the file leaves them out.
  public let schema: [TableDefinition]?
  /// The changes, in the format of SQLite's session extension.
  public let changeset: ChangesetSpool
  /// What one pass over the changes found.
  public let inspection: ChangesetInspection
  /// Where the changes come from, unless they are all the sender's own edits.
  public let annotations: Annotations?
  /// The attachments.
  public let attachments: [Attachment]
  /// Whether the compressed bytes carried a seal. Files that another program packed again have none.
  public let isSealed: Bool

  /// Reads and checks a diff file.
  ///
  /// The file is opened without following links, must be a regular file, and is read once. The changeset is spooled, and
  /// so are all attachments together: in memory while they are small, in an unlinked temporary file beyond 32 MiB.
  ///
  /// - Parameters:
  ///   - path: The file.
  ///   - name: Whether the file's name must be the diff's id.
  ///   - limits: How much the file may ask for.
  ///   - spoolFolder: Where temporary files go.
  ///   - cache: What is kept from one file to the next; worth having where there are many small ones.
  /// - Throws: `DiffFileError` with the file's path. Nothing is left behind.
  public static func verified(
    at path: String, name: NameRule = .mustMatch, limits: DiffFileLimits = DiffFileLimits(),
    spoolFolder: String = ChangesetSpool.temporaryFolder, cache: OpeningCache? = nil
  ) throws(DiffFileError) -> DiffFile {
    do throws(DiffFileError) {
      return try DiffFile(at: path, name: name, limits: limits, spoolFolder: spoolFolder, cache: cache)
    } catch {
      throw error.naming(path: path)
    }
  }

  /// Reads and checks a diff file, and shows it before it is all there when that is worth it: when there are many changes,
  /// in the order in which they are best applied.
  ///
  /// - Parameter announce: Is given the file once its manifest, signature and definitions are known to be good; what
  ///   becomes of it then is told through that, never thrown.
  /// - Returns: The file; nil when it was announced.
  /// - Throws: `DiffFileError`, as ``verified(at:name:limits:spoolFolder:cache:)``.
  package static func verified(
    at path: String, name: NameRule, cache: OpeningCache, announce: @escaping (ArrivingDiff) -> Void
  ) throws(DiffFileError) -> DiffFile? {
    var announced: ArrivingDiff?
    do throws(DiffFileError) {
      let file = try DiffFile(
        at: path, name: name, limits: DiffFileLimits(), spoolFolder: ChangesetSpool.temporaryFolder, cache: cache,
        announce: { arriving in
          announced = arriving
          announce(arriving)
        })
      guard let announced else { return file }
      announced.finish(file)
      return nil
    } catch {
      guard let announced else { throw error.naming(path: path) }
      announced.feed.fail(error.naming(path: path))
      return nil
    }
  }

  private init(
    at path: String, name: NameRule, limits: DiffFileLimits, spoolFolder: String, cache: OpeningCache?,
    announce: ((ArrivingDiff) -> Void)? = nil
  ) throws(DiffFileError) {
    let file = try InboundFile(at: path)
    let archive = try ArchiveReader(file, workspace: cache?.workspace ?? ZstdWorkspace())

    let size = try archive.firstMember(named: MemberName.manifest, limit: DiffFileLimits.manifestBytes)
    let manifestBytes = try archive.content(of: MemberName.manifest, size: size)
    let manifest = try Manifest(parsing: manifestBytes, splitBytes: limits.splitBytes)
    try Self.checkName(path, rule: name, id: manifest.id)
    let signature = try Self.readSignature(archive, manifest: manifest, bytes: manifestBytes)

    let content = manifest.members.reduce(Int64(0)) { $0 + $1.size }
    try limits.check(content: content, fileBytes: file.size)

    var schema: [TableDefinition]?
    var annotationBytes: [UInt8]?
    var attachments: [Attachment] = []
    var changeset = ChangesetSpool(folder: spoolFolder)
    var intake: ArrivingDiff.Intake?
    let attached = ChangesetSpool(folder: spoolFolder)
    for member in manifest.members {
      try archive.member(named: member.name, size: member.size)
      switch MemberName.role(of: member.name) {
      case .schema:
        // The digest of the bytes has been compared with the manifest's.
        let bytes = try Self.readBytes(member, from: archive)
        schema =
          if let cache { try cache.definitions(of: bytes, digest: member.sha256) } else {
            try SchemaDocument.parse(bytes)
          }
      case .annotations: annotationBytes = try Self.readBytes(member, from: archive)
      case .changeset:
        if let announce, let schema, intake == nil, let expected = Self.worthAnnouncing(manifest) {
          changeset = try Self.arrivingSpool(folder: spoolFolder, expected)
          let diff = ArrivingDiff(
            manifest: manifest, digest: RunningDigest.of(manifestBytes), signature: signature, schema: schema,
            changeset: changeset)
          intake = ArrivingDiff.Intake(diff)
          announce(diff)
        }
        try Self.spool(member, from: archive, into: changeset, &intake)
      case .file, nil:
        let start = attached.count
        var none: ArrivingDiff.Intake?
        try Self.spool(member, from: archive, into: attached, &none)
        let name = String(member.name.unicodeScalars.dropFirst(MemberName.filesPrefix.unicodeScalars.count))
        attachments.append(Attachment(name: name, range: start..<attached.count, all: attached))
      }
    }
    try archive.finish()

    let annotations = try annotationBytes.map { (bytes) throws(DiffFileError) in try Annotations(parsing: bytes) }
    try annotations?.check(id: manifest.id)
    let inspection: ChangesetInspection
    if let intake, annotations == nil {
      inspection = try intake.finish()
    } else {
      inspection = try ChangesetInspection(changeset, annotations: annotations)
    }
    try inspection.checkAgreement(with: manifest)
    if let schema { try inspection.checkAgreement(with: schema, keys: manifest) }

    // A noncopyable value is filled in one go, once nothing can fail any more.
    self.manifest = manifest
    self.manifestBytes = manifestBytes
    self.changeset = changeset
    self.attachments = attachments
    self.signature = signature
    self.annotations = annotations
    self.schema = schema
    self.inspection = inspection
    manifestDigest = RunningDigest.of(manifestBytes)
    fileDigest = file.digest.digest
    fileBytes = file.offset
    isSealed = archive.isSealed
  }

  /// How many bytes of changes there will be, when they are many and in key order.
  private static func worthAnnouncing(_ manifest: Manifest) -> Int? {
    let members = manifest.members.filter { MemberName.role(of: $0.name) == .changeset }
    let bytes = members.reduce(Int64(0)) { $0 + $1.size }
    guard bytes >= ArrivingDiff.worthwhileBytes, manifest.tables.allSatisfy({ $0.order == .key }) else { return nil }
    return Int(bytes)
  }

  private static func arrivingSpool(folder: String, _ expected: Int) throws(DiffFileError) -> ChangesetSpool {
    do throws(ChangesetSpool.Failure) {
      return try ChangesetSpool(folder: folder, arriving: expected)
    } catch {
      throw DiffFileError(error)
    }
  }

  private static func checkName(_ path: String, rule: NameRule, id: KSUID) throws(DiffFileError) {
    let named = DiffFileName.diffID(path)
    guard named == id || (named == nil && rule == .ifNamedByID) else {
      throw DiffFileError(
        .idMismatch, "the diff inside has the id \(id), so the file's name should be \(DiffFileName.diff(id))",
        member: MemberName.manifest)
    }
  }

  private static func readSignature(
    _ archive: ArchiveReader, manifest: Manifest, bytes: [UInt8]
  ) throws(DiffFileError) -> Signature {
    let size = Int64(ManifestSignature.byteCount)
    guard try archive.nextIs(MemberName.signature, size: size) else { return .unsigned }
    let signature = try archive.content(of: MemberName.signature, size: size)
    guard let key = manifest.sender?.identity else {
      throw DiffFileError(
        .badSignature, "it is signed, but the manifest names no key as its sender's", member: MemberName.signature)
    }
    guard ManifestSignature.isValid(signature, of: bytes, by: key) else {
      throw DiffFileError(
        .badSignature, "the signature is not the sender's over this manifest", member: MemberName.signature)
    }
    return .signed(by: key)
  }

  private static func readBytes(
    _ member: Manifest.Member, from archive: ArchiveReader
  ) throws(DiffFileError) -> [UInt8] {
    let bytes = try archive.content(of: member.name, size: member.size)
    try check(RunningDigest.of(bytes), of: member)
    return bytes
  }

  private static func spool(
    _ member: Manifest.Member, from archive: ArchiveReader, into spool: ChangesetSpool,
    _ intake: inout ArrivingDiff.Intake?
  ) throws(DiffFileError) {
    var digest = RunningDigest()
    try archive.content(of: member.name, size: member.size) { (piece) throws(DiffFileError) in
      digest.update(piece)
      do throws(ChangesetSpool.Failure) { try spool.append(piece) } catch { throw DiffFileError(error) }
      try intake?.advance()
    }
    try check(digest.digest, of: member)
  }

  private static func check(_ digest: ContentDigest, of member: Manifest.Member) throws(DiffFileError) {
    guard digest == member.sha256 else {
      throw DiffFileError(
        .digestMismatch, "its bytes are not the ones the manifest speaks of", member: member.name)
    }
  }
}
