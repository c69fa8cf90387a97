import BuckiaApply
import BuckiaDiffFiles
import BuckiaKSUID
import BuckiaLedger
import BuckiaSchemaPlans
import SQLiteSchemas

extension IncomingFile {
  /// Opens and verifies a file, and hands it on once: a large one as soon as its first changes are verified.
  ///
  /// - Parameters:
  ///   - item: The file.
  ///   - cache: What is kept of the files before it.
  ///   - isWanted: Says whether anybody still wants the file.
  ///   - handOn: Takes the file.
  static func open(
    _ item: InboundItem, cache: OpeningCache, isWanted: @escaping () -> Bool,
    _ handOn: @escaping (IncomingFile) -> Void
  ) {
    guard item.kind == .diff else { return handOn(IncomingFile(item, cache: cache, isWanted: isWanted)) }
    do throws(DiffFileError) {
      let file = try DiffFile.verified(at: item.path, name: item.nameRule, cache: cache, isWanted: isWanted) {
        handOn(IncomingFile(item, $0))
      }
      if let file { handOn(IncomingFile(item, file)) }
    } catch {
      handOn(IncomingFile(item, error))
    }
  }

  /// Opens and verifies a file completely.
  init(_ item: InboundItem, cache: OpeningCache, isWanted: @escaping () -> Bool) {
    do throws(DiffFileError) {
      switch item.kind {
      case .encrypted:
        self.init(
          item, Refusal(.rejected, code: .encrypted, reason: BuckiaError.encryptedReason))
      case .diff:
        self.init(
          item, try DiffFile.verified(at: item.path, name: item.nameRule, cache: cache, isWanted: isWanted))
      case .changeset: self.init(item, try RawChangeset.verified(at: item.path, isWanted: isWanted))
      }
    } catch {
      self.init(item, error)
    }
  }

  private init(_ item: InboundItem, _ diff: borrowing DiffFile) {
    let changes = IncomingChanges(diff, file: item.path)
    let digest = diff.fileDigest.bytes
    let remarks = Self.remarks(attachments: diff.attachments.count)
    let unsupported = Self.unsupported(diff.manifest, diff.schema)
    self.init(
      path: item.path, name: item.name, id: diff.manifest.id, sender: diff.signature.sender,
      content: unsupported.map { .failed($0) } ?? .verified(changes), byteCount: diff.changeset.count,
      digest: { digest }, remarks: { remarks })
  }

  private init(_ item: InboundItem, _ diff: StreamedDiffFile) {
    let finish = { _ = try diff.file() }
    let unsupported = Self.unsupported(diff.manifest, diff.schema)
    self.init(
      path: item.path, name: item.name, id: diff.manifest.id, sender: diff.signature.sender,
      content: unsupported.map { .failed($0, finish: finish) }
        ?? .arriving(IncomingChanges(diff, file: item.path), finish: finish),
      byteCount: diff.changeset.expectedCount, digest: { try diff.file().file.fileDigest.bytes },
      remarks: { Self.remarks(attachments: try diff.file().file.attachments.count) },
      abandon: { diff.feed.abandon() })
  }

  private init(_ item: InboundItem, _ raw: borrowing RawChangeset) {
    let digest = raw.digest.bytes
    self.init(
      path: item.path, name: item.name, id: raw.id ?? item.id, sender: "",
      content: .verified(IncomingChanges(raw, file: item.path)), byteCount: raw.changeset.count, digest: { digest })
  }

  private init(_ item: InboundItem, _ error: any Error) {
    var content = Content.failed((error as? DiffFileError)?.namingKind(of: item.path) ?? error)
    if let error = error as? DiffFileError, item.isFromFolder, error.code == .unreadable,
      !FileSystem.exists(item.path)
    {
      // Another process has applied and removed it since the folder was listed.
      content = .vanished
    }
    self.init(
      path: item.path, name: item.name, id: item.id, sender: "", content: content, byteCount: 0,
      digest: { try FileDigest.sha256(at: item.path).sha256.bytes })
  }

  private static func remarks(attachments count: Int) -> [Remark] {
    count == 0 ? [] : [Remark(.attachmentsNotUnpacked, "\(count)")]
  }

  /// Refuses what this version can read but not do: half of a diff must not pass for the whole.
  private static func unsupported(_ manifest: Manifest, _ schema: [TableDefinition]?) -> Refusal? {
    if schema == nil, manifest.schema != nil {
      return Refusal(
        .rejected, code: .unknownSchema,
        reason: "its table definitions did not travel along, and are not known here; ask for a file that has them")
    }
    if manifest.tables.contains(where: { $0.withdrawn > 0 }) {
      return Refusal(
        .rejected, code: .unsupported,
        reason: "it withdraws shared rows, which this version of Buckia cannot do; update Buckia")
    }
    return nil
  }
}

extension InboundItem {
  /// Whether the name has to be the id of the manifest.
  var nameRule: DiffFile.NameRule { isFromFolder ? .mustMatch : .ifNamedByID }
}

extension DiffFileError: FileFault {
  package var refusal: Refusal? {
    // A file may ask for more room than there is, again with every try: nothing to record, but nothing that keeps the
    // others waiting either.
    Refusal(
      .rejected, code: BuckiaErrorCode(rawValue: code.rawValue), reason: description,
      isRecorded: !isTransient && code != .notRegularFile)
  }
}
