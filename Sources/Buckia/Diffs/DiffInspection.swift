/// Looking into files without applying them.
public enum DiffInspection {
  /// Checks files and whole folders completely, and changes nothing.
  ///
  /// - Parameters:
  ///   - paths: The files and folders.
  ///   - home: Where the contacts are, whose names senders have, and the identity, which opens what is encrypted for it.
  ///   - decryption: What else opens encrypted files.
  /// - Throws: `BuckiaError` for a path that does not exist; as ``BuckiaHome/contacts()`` and ``BuckiaHome/identity()``. What is
  ///   wrong with a file is in the report.
  public static func verify(
    _ paths: [String], home: BuckiaHome = .standard, decryption: FileDecryption? = nil
  ) throws -> VerifyReport {
    try verify(paths.map { InboundSource.path($0) }, home: home, decryption: decryption)
  }

  /// The same for files, folders and bytes that came without a file.
  ///
  /// - Parameters:
  ///   - home: Where the contacts are, whose names senders have, and the identity; nil if neither matters.
  ///   - decryption: What else opens encrypted files.
  ///   - progress: Called with the progress of reading that is being checked.
  ///   - poll: Called now and then. May throw to stop.
  package static func verify(
    _ sources: [InboundSource], home: BuckiaHome? = nil, decryption: FileDecryption? = nil,
    progress: ((InspectionProgress) -> Void)? = nil, poll: @escaping () throws -> Void = {}
  ) throws -> VerifyReport {
    let senders = try home?.knownSenders() ?? .empty
    let listing = try InboundListing(sources, openedWith: ReaderKeys(of: home, and: decryption))
    return VerifyReport(
      files: try listing.items.map { item in
        let file = try polling(poll) { verify(item, senders, isWanted: $0, progress: progress) }
        try poll()
        return file
      }
        + listing.answers.map { VerifyReport.File(answer: $0, senders) },
      misnamed: listing.misnamed)
  }

  /// Checks files and whole folders completely, on a thread of its own.
  ///
  /// It does what the synchronous call of the same name does. When the task is cancelled, it stops inside the file that is being
  /// read.
  ///
  /// - Throws: As the synchronous call; `CancellationError`.
  public static func verify(
    _ paths: [String], home: BuckiaHome = .standard, decryption: FileDecryption? = nil
  ) async throws -> VerifyReport {
    try await CancellationFlag.onThreadOfItsOwn {
      try verify(paths.map { .path($0) }, home: home, decryption: decryption, poll: $0.check)
    }
  }

  private static func verify(
    _ item: InboundItem, _ senders: KnownSenders, isWanted: @escaping () -> Bool = { true },
    progress: ((InspectionProgress) -> Void)? = nil
  ) -> VerifyReport.File {
    do throws(DiffFileError) {
      let (opened, kind) = try item.open(telling: progress)
      let opening = Opening(with: item.keys)
      return opening.sealing(kind == .encrypted) {
        verify(item, .success(opened), kind, opening, decryptedBy: $0, senders, isWanted: isWanted)
      }
    } catch {
      let kind = item.namedKind ?? .diff
      return verify(item, .failure(error), kind, Opening(with: .none), decryptedBy: nil, senders, isWanted: isWanted)
    }
  }

  private static func verify(
    _ item: InboundItem, _ opened: Result<OpenedFile, DiffFileError>, _ kind: InboundKind, _ opening: Opening,
    decryptedBy decrypt: Opening.Decrypt?, _ senders: KnownSenders, isWanted: @escaping () -> Bool
  ) -> VerifyReport.File {
    func file(
      _ id: KSUID?, isGood: Bool, sender: String = "unsigned", signature: VerifyReport.Signature = .none,
      reason: String? = nil, code: BuckiaErrorCode? = nil
    ) -> VerifyReport.File {
      VerifyReport.File(
        path: item.path, id: id, isGood: isGood, sender: sender, signature: signature,
        isEncrypted: kind == .encrypted, reason: reason, code: code)
    }
    do throws(DiffFileError) {
      let opened = try opened.get()
      guard kind != .changeset else {
        let raw = try RawChangeset.verified(opened, isWanted: isWanted)
        return file(raw.id, isGood: true)
      }
      let diff = try DiffFile.verified(opened, name: item.nameRule, isWanted: isWanted, decryptedBy: decrypt)
      let refusal = opening.refusal(of: diff.manifest, diff.signature)
      return file(
        diff.manifest.id, isGood: refusal == nil, sender: senders.shown(diff.signature.sender),
        signature: diff.signature == .unsigned ? .none : .valid, reason: refusal?.reason, code: refusal?.code)
    } catch {
      return file(
        item.id, isGood: false, sender: "unknown", signature: error.code == .badSignature ? .invalid : .unknown,
        reason: error.namingKind(of: item.path).description, code: BuckiaErrorCode(rawValue: error.code.rawValue))
    }
  }

  /// Opens a diff file or a raw changeset to be looked at.
  ///
  /// - Parameters:
  ///   - path: The file.
  ///   - home: Where the contacts are, whose names senders have, and the identity, which opens what is encrypted for it.
  ///   - decryption: What else opens encrypted files.
  /// - Throws: `BuckiaError` when the file is missing, encrypted for others or not entirely in order; as
  ///   ``BuckiaHome/contacts()`` and ``BuckiaHome/identity()``.
  public static func open(
    _ path: String, home: BuckiaHome = .standard, decryption: FileDecryption? = nil
  ) throws -> InspectedFile {
    try open(.path(path), home: home, decryption: decryption)
  }

  /// The signer of a file, for people. Only its beginning is read, and its changes are not verified.
  ///
  /// - Parameters:
  ///   - path: The file.
  ///   - home: Where the contacts are, whose names senders have, and the identity.
  ///   - decryption: What else opens encrypted files.
  /// - Returns: nil if the file cannot be read as far as its signature.
  package static func sender(of path: String, home: BuckiaHome, decryption: FileDecryption?) -> String? {
    var sender: String?
    do {
      let senders = try home.knownSenders()
      var item = InboundItem(named: path)
      item.keys = try ReaderKeys(of: home, and: decryption)
      let (opened, kind) = try item.open()
      guard kind != .changeset else { return senders.shown("") }
      try Opening(with: item.keys).sealing(kind == .encrypted) { decrypt in
        _ = try DiffFile.verified(
          opened, name: item.nameRule, cache: OpeningCache(), isWanted: { true },
          takes: {
            sender = senders.shown($0.signature.sender)
            return false
          }, decryptedBy: decrypt)
      }
    } catch {
      // Errors in the file are reported when it is applied or shown.
    }
    return sender
  }

  /// The same for a file, or bytes that came without one.
  ///
  /// - Parameters:
  ///   - home: Where the contacts are, whose names senders have, and the identity; nil if neither matters.
  ///   - decryption: What else opens encrypted files.
  ///   - progress: Called with the progress of reading.
  ///   - poll: Called every few thousand changes. May throw to stop.
  package static func open(
    _ source: InboundSource, home: BuckiaHome? = nil, decryption: FileDecryption? = nil,
    progress: ((InspectionProgress) -> Void)? = nil, poll: @escaping () throws -> Void = {}
  ) throws -> InspectedFile {
    let senders = try home?.knownSenders() ?? .empty
    let keys = try ReaderKeys(of: home, and: decryption)
    return try BuckiaError.wrapping {
      try polling(poll) { try openVerified(source, keys, senders, isWanted: $0, progress) }
    }
  }

  private static func openVerified(
    _ source: InboundSource, _ keys: ReaderKeys, _ senders: KnownSenders, isWanted: @escaping () -> Bool,
    _ progress: ((InspectionProgress) -> Void)?
  ) throws -> InspectedFile {
    var item: InboundItem
    switch source {
    case .path(let path):
      guard FileSystem.exists(path) else { throw BuckiaError(.noSuchFile, "there is no such file", path: path) }
      item = InboundItem(named: path)
    case .spooled(let input): item = InboundItem(input)
    }
    item.keys = keys
    do {
      let (opened, kind) = try item.open(telling: progress)
      guard kind != .changeset else {
        return InspectedFile(try RawChangeset.verified(opened, isWanted: isWanted), path: item.path)
      }
      return try Opening(with: keys).sealing(kind == .encrypted) { decrypt in
        try InspectedFile(
          DiffFile.verified(opened, name: item.nameRule, isWanted: isWanted, decryptedBy: decrypt), path: item.path,
          senders)
      }
    } catch let error as DiffFileError {
      throw error.namingKind(of: item.path)
    }
  }
}

/// A verified file, opened to be looked at.
public struct InspectedFile {
  /// The path.
  let path: String
  /// Its id, if it has one.
  public let id: KSUID?
  /// Its size in bytes.
  public let byteCount: Int64
  /// The manifest of the file; nil for a raw changeset.
  package let manifest: JSONValue?
  /// The definitions of the tables; nil if the file has none.
  let schema: [TableDefinition]?
  /// The author's whole schema as SQL; nil if the file has none.
  let author: AuthorSchema?
  /// The sender, for people.
  public let sender: String
  /// True if a signature proves the sender.
  package let isSigned: Bool
  /// The changes.
  package let changeset: TemporaryBuffer
  /// The tables that it changes, and how.
  package let summary: ChangesetSummary
  /// The tables whose changes are in the author's order, on which triggers and foreign-key actions may depend. The
  /// order of a raw changeset is unknown.
  let tablesInAuthorOrder: Set<TableName>
  /// The shared database it belongs to.
  let dataset: DatasetID?
  /// True if the file has more than the changes of one author, which a rewritten file could not keep.
  let carriesMore: Bool

  init(_ diff: borrowing DiffFile, path: String, _ senders: KnownSenders) throws {
    self.path = path
    id = diff.manifest.id
    byteCount = diff.fileBytes
    manifest = try JSONParser.parse(diff.manifestBytes)
    schema = diff.schema
    author = diff.author
    sender = senders.shown(diff.signature.sender)
    isSigned = diff.signature != .unsigned
    changeset = diff.changeset
    summary = diff.inspection.summary
    tablesInAuthorOrder = Set(diff.manifest.tables.filter { $0.order == .author }.map { TableName($0.name) })
    dataset = diff.manifest.dataset
    carriesMore = diff.annotations != nil || !diff.attachments.isEmpty || !diff.manifest.renames.isEmpty
  }

  init(_ raw: borrowing RawChangeset, path: String) {
    self.path = path
    id = raw.id
    byteCount = Int64(raw.changeset.count)
    manifest = nil
    schema = nil
    author = nil
    sender = "unsigned"
    isSigned = false
    changeset = raw.changeset
    summary = raw.inspection.summary
    tablesInAuthorOrder = []
    dataset = nil
    carriesMore = false
  }

  /// A statement of the author's schema.
  package struct ShownStatement {
    /// The kind of the object: `table`, `index`, `view` or `trigger`.
    package let kind: String
    /// The name of the object.
    package let name: String
    /// The statement.
    package let sql: String
  }

  /// The statements of the author's schema, for adopting it; nil if the file has none.
  package var statements: [ShownStatement]? {
    author?.statements.map { ShownStatement(kind: $0.kind.rawValue, name: $0.name.text, sql: $0.sql) }
  }
}

/// How far a file has been checked.
package struct InspectionProgress {
  /// Where the file is.
  package let path: String
  /// How many of its bytes have been read.
  package let bytes: Int
  /// How many it has.
  package let byteCount: Int

  package init(path: String, bytes: Int, byteCount: Int) {
    self.path = path
    self.bytes = bytes
    self.byteCount = byteCount
  }
}

extension InboundItem {
  /// Opens the file, and tells how far it is read from then on.
  ///
  /// - Throws: `DiffFileError` when it cannot be opened, or its first bytes cannot be read.
  func open(
    telling progress: ((InspectionProgress) -> Void)?
  ) throws(DiffFileError) -> (file: OpenedFile, kind: InboundKind) {
    let (file, kind) = try open()
    guard let progress else { return (file, kind) }
    let (path, byteCount) = (path, Int(clamping: file.byteCount))
    let observed = file.observed { progress(InspectionProgress(path: path, bytes: $0, byteCount: byteCount)) }
    return (observed, kind)
  }
}

extension VerifyReport.File {
  /// Checks the answer to an invitation. Its proof only the author of the invitation can check, and does when it is applied.
  ///
  /// - Parameters:
  ///   - item: The file.
  ///   - senders: What keys are called.
  init(answer item: InboundItem, _ senders: KnownSenders) {
    do {
      let acceptance = try Acceptance(verifying: item.open().file.input.invitationText(item.path))
      self.init(
        path: item.path, id: item.id, isGood: true, sender: senders.shown(acceptance.card.key), signature: .valid,
        isEncrypted: false, reason: nil)
    } catch {
      let isForged = (error as? IdentityError)?.code == .badSignature
      self.init(
        path: item.path, id: item.id, isGood: false, sender: "unknown", signature: isForged ? .invalid : .unknown,
        isEncrypted: false, reason: (error as? IdentityError)?.message ?? "\(BuckiaError.wrapped(error))")
    }
  }
}
