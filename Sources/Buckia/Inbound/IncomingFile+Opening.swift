extension IncomingFile {
  /// Opens and verifies a file, and hands it on once: a large one as soon as its first changes are verified.
  ///
  /// - Parameters:
  ///   - item: The file.
  ///   - cache: The cache of earlier files.
  ///   - isWanted: Returns false if the file is no longer wanted.
  ///   - takes: Returns false for a sender whose diffs are not accepted: their changes are then not unpacked.
  ///   - handOn: Receives the file.
  static func open(
    _ item: InboundItem, cache: OpeningCache, isWanted: @escaping () -> Bool, takes: @escaping (String) -> Bool,
    _ handOn: @escaping (IncomingFile) -> Void
  ) {
    do throws(DiffFileError) {
      let (opened, kind) = try item.open()
      guard kind != .changeset else {
        return handOn(IncomingFile(item, opened, isWanted: isWanted))
      }
      let opening = Opening(with: item.keys)
      opening.sealing(kind == .encrypted) {
        stream(item, opened, opening, decryptedBy: $0, cache: cache, isWanted: isWanted, takes: takes, handOn)
      }
    } catch {
      handOn(IncomingFile(item, error, nil))
    }
  }

  private static func stream(
    _ item: InboundItem, _ opened: OpenedFile, _ opening: Opening, decryptedBy decrypt: Opening.Decrypt?,
    cache: OpeningCache, isWanted: @escaping () -> Bool, takes: @escaping (String) -> Bool,
    _ handOn: @escaping (IncomingFile) -> Void
  ) {
    var refused: DiffFile.Head?
    do throws(DiffFileError) {
      let file = try DiffFile.verified(
        opened, name: item.nameRule, limits: item.limits, cache: cache, isWanted: isWanted,
        takes: {
          refused = takes($0.signature.sender) ? nil : $0
          return refused == nil
        }, decryptedBy: decrypt
      ) { handOn(IncomingFile(item, $0, opening, opened.identity)) }
      if let file { handOn(IncomingFile(item, file, opening, opened.identity)) }
    } catch {
      handOn(refused.map { IncomingFile(item, $0, opening, opened) } ?? IncomingFile(item, error, opened))
    }
  }

  /// Verifies bytes that came without a file, completely.
  package init(verifying input: SpooledInput) {
    self.init(InboundItem(input), cache: OpeningCache(), isWanted: { true }, takes: { _ in true })
  }

  /// Opens and verifies a file completely.
  ///
  /// - Parameter takes: Returns false for a sender whose diffs are not accepted: their changes are then not unpacked.
  init(
    _ item: InboundItem, cache: OpeningCache, isWanted: @escaping () -> Bool, takes: @escaping (String) -> Bool
  ) {
    do throws(DiffFileError) {
      let (opened, kind) = try item.open()
      let opening = Opening(with: item.keys)
      self = opening.sealing(kind == .encrypted) {
        IncomingFile(item, opened, kind, opening, decryptedBy: $0, cache: cache, isWanted: isWanted, takes: takes)
      }
    } catch {
      self.init(item, error, nil)
    }
  }

  /// Verifies an open file completely.
  private init(
    _ item: InboundItem, _ opened: OpenedFile, _ kind: InboundKind, _ opening: Opening,
    decryptedBy decrypt: Opening.Decrypt?, cache: OpeningCache, isWanted: @escaping () -> Bool,
    takes: @escaping (String) -> Bool
  ) {
    if kind == .changeset {
      self.init(item, opened, isWanted: isWanted)
      return
    }
    var refused: DiffFile.Head?
    do throws(DiffFileError) {
      let diff = try DiffFile.verified(
        opened, name: item.nameRule, limits: item.limits, cache: cache, isWanted: isWanted,
        takes: {
          refused = takes($0.signature.sender) ? nil : $0
          return refused == nil
        }, decryptedBy: decrypt)
      self.init(item, diff, opening, opened.identity)
    } catch {
      if let refused { self.init(item, refused, opening, opened) } else { self.init(item, error, opened) }
    }
  }

  /// Verifies an open raw changeset completely.
  private init(_ item: InboundItem, _ opened: OpenedFile, isWanted: @escaping () -> Bool) {
    do throws(DiffFileError) {
      self.init(item, try RawChangeset.verified(opened, limits: item.limits, isWanted: isWanted), opened.identity)
    } catch {
      self.init(item, error, opened)
    }
  }

  private init(_ item: InboundItem, _ diff: borrowing DiffFile, _ opening: Opening, _ identity: FileIdentity?) {
    let changes = IncomingChanges(diff, file: item.name)
    let digest = diff.fileDigest.bytes
    let warnings = Self.warnings(attachments: diff.attachments.count)
    let refusal = opening.refusal(of: diff.manifest, diff.signature) ?? Self.unsupported(diff.manifest, diff.schema)
    self.init(
      path: item.path, name: item.name, id: diff.manifest.id, sender: diff.signature.sender, identity: identity,
      content: refusal.map { .failed($0) } ?? .verified(changes), byteCount: diff.changeset.count,
      isLimited: item.limits.mayBeMeant, changeCount: diff.manifest.changeCount,
      documentBytes: diff.manifest.documentBytes,
      digest: { digest }, warnings: { warnings })
  }

  private init(_ item: InboundItem, _ diff: StreamedDiffFile, _ opening: Opening, _ identity: FileIdentity?) {
    let finish = { _ = try diff.file() }
    let refusal = opening.refusal(of: diff.manifest, diff.signature) ?? Self.unsupported(diff.manifest, diff.schema)
    self.init(
      path: item.path, name: item.name, id: diff.manifest.id, sender: diff.signature.sender, identity: identity,
      content: refusal.map { .failed($0, finish: finish) }
        ?? .arriving(IncomingChanges(diff, file: item.name), finish: finish),
      byteCount: diff.changeset.expectedCount, isLimited: item.limits.mayBeMeant,
      changeCount: diff.manifest.changeCount,
      documentBytes: diff.manifest.documentBytes,
      digest: { try diff.file().file.fileDigest.bytes },
      warnings: { Self.warnings(attachments: try diff.file().file.attachments.count) },
      abandon: { diff.feed.abandon() })
  }

  /// A file of a refused sender. The gate refuses it by its head.
  private init(_ item: InboundItem, _ head: DiffFile.Head, _ opening: Opening, _ opened: OpenedFile) {
    let feed = ChangesetFeed()
    feed.fail(
      DiffFileError(.unreadable, "its sender was not trusted when it was read; apply it again", path: item.path))
    let changes = IncomingChanges(head, file: item.name, feed)
    let refusal = opening.refusal(of: head.manifest, head.signature)
    self.init(
      path: item.path, name: item.name, id: head.manifest.id, sender: head.signature.sender, identity: opened.identity,
      content: refusal.map { .failed($0) } ?? .verified(changes), byteCount: 0,
      digest: Self.digest(of: opened))
  }

  private init(_ item: InboundItem, _ raw: borrowing RawChangeset, _ identity: FileIdentity?) {
    let digest = raw.digest.bytes
    self.init(
      path: item.path, name: item.name, id: raw.id ?? item.id, sender: "", identity: identity,
      content: .verified(IncomingChanges(raw, file: item.name)), byteCount: raw.changeset.count,
      isLimited: item.limits.mayBeMeant, changeCount: raw.inspection.summary.changeCount, digest: { digest })
  }

  /// A file that cannot be opened or is not in order.
  ///
  /// - Parameter opened: The file, if it could be opened.
  private init(_ item: InboundItem, _ error: DiffFileError, _ opened: OpenedFile?) {
    // Another process may have applied and removed the file since the folder was listed. Only that is not a failure: a
    // file that merely cannot be found or read now is reported.
    let isGone =
      item.isFromFolder && opened?.identity == nil && error.code == .unreadable && error.systemError == ENOENT
    self.init(
      path: item.path, name: item.name, id: item.id, sender: error.signer?.description ?? "",
      isSenderKnown: error.isSignerKnown, identity: opened?.identity,
      content: isGone ? .vanished : .failed(error.namingKind(of: item.path)),
      byteCount: 0, digest: Self.digest(of: opened, refusedBy: error))
  }

  /// SHA-256 of a refused file, computed at once from the read file, because another file may have its name when the
  /// refusal is recorded.
  private static func digest(of opened: OpenedFile) -> () throws -> [UInt8] {
    let digest = Result { try FileDigest.sha256(of: opened).sha256.bytes }
    return { try digest.get() }
  }

  private static func digest(of opened: OpenedFile?, refusedBy error: DiffFileError) -> () throws -> [UInt8] {
    guard let opened, error.refusal?.isRecorded == true else { return { throw error } }
    return digest(of: opened)
  }

  private static func warnings(attachments count: Int) -> [Warning] {
    count == 0 ? [] : [Warning(.attachmentsNotUnpacked, "\(count)")]
  }

  /// The refusal of a file with unsupported parts: a part of a diff must not pass for the whole.
  private static func unsupported(_ manifest: Manifest, _ schema: [TableDefinition]?) -> Refusal? {
    if schema == nil, manifest.schema != nil {
      return Refusal(
        .rejected, code: .unknownSchema,
        reason: "its table definitions did not travel along, and are not known here; ask for a file that has them")
    }
    return nil
  }
}

extension DiffFileError: FileFault {
  package var refusal: Refusal? {
    // A file may ask for more room than there is on every try. That is not recorded, but must not keep other files
    // waiting either.
    Refusal(
      code == .overLimit ? .quarantined : .rejected, code: BuckiaErrorCode(rawValue: code.rawValue),
      reason: description,
      isRecorded: !isTransient && code != .notRegularFile, isPassing: isPassing)
  }
}
