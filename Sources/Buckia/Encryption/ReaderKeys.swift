import Dispatch
import SQLiteConnections

/// The keys that open encrypted files here, and recognize diffs that are addressed to them.
struct ReaderKeys: Sendable {
  /// No keys.
  static let none = ReaderKeys(own: nil, decryption: nil)

  private let own: OwnKeys?
  private let decryption: Decryption?
  private let publicKeys: [[UInt8]]

  private init(own: OwnKeys?, decryption: FileDecryption?) {
    self.own = own
    self.decryption = decryption?.decryption
    publicKeys = (own?.publicKeys ?? []) + (decryption?.publicKeys ?? [])
  }

  /// The keys of a person, and further decryption keys.
  ///
  /// - Throws: `BuckiaError` as ``BuckiaHome/identity()``.
  init(of home: BuckiaHome?, and decryption: FileDecryption?) throws {
    self.init(own: try home.flatMap { try OwnKeys(of: $0) }, decryption: decryption)
  }

  /// Begins to decrypt a file.
  ///
  /// - Throws: `ByteStreamError`, with code `noMatchingIdentity` when it is for others.
  fileprivate func open(_ input: any ByteInput) throws(ByteStreamError) -> DecryptingInput {
    var decryptions = [decryption].compactMap { $0 }
    if let own {
      do throws(ByteStreamError) { decryptions.insert(try own.decryption(), at: 0) } catch {
        // The other keys may be enough.
        if decryptions.isEmpty { throw error }
      }
    }
    guard !decryptions.isEmpty else {
      throw ByteStreamError(
        .encrypted, "it is encrypted, and there is neither an identity nor a passphrase here to open it with")
    }
    return try DecryptingInput(input, with: Decryption(joining: decryptions))
  }

  /// True if a diff is addressed to one of these keys.
  fileprivate func isAddressed(by audience: Audience) -> Bool { publicKeys.contains { audience.addresses($0) } }
}

extension ByteStreamError.Code {
  /// It is encrypted, and there is nothing to decrypt it with.
  fileprivate static let encrypted = Self(rawValue: BuckiaErrorCode.encrypted.rawValue)
}

/// One file that is being opened, with its decryption and its addressee.
final class Opening {
  private let keys: ReaderKeys
  private var input: DecryptingInput?

  init(with keys: ReaderKeys) { self.keys = keys }

  /// Decrypts a file.
  typealias Decrypt = (any ByteInput) throws(ByteStreamError) -> any ByteInput

  /// Runs a call that reads the file. Temporary files of an encrypted file are encrypted, too.
  ///
  /// - Parameter body: Receives the decryption of the file; nil for one that is not encrypted. There is no other way to
  ///   get it.
  func sealing<Result>(_ isEncrypted: Bool, _ body: (Decrypt?) throws -> Result) rethrows -> Result {
    try Self.sealing(isEncrypted) {
      try body(isEncrypted ? { (source) throws(ByteStreamError) in try self.decrypt(source) } : nil)
    }
  }

  private func decrypt(_ source: any ByteInput) throws(ByteStreamError) -> any ByteInput {
    let input = try keys.open(source)
    self.input = input
    return input
  }

  /// Runs a call that makes or applies files. Temporary files of encrypted files are encrypted, too.
  static func sealing<Result>(_ isEncrypted: Bool, _ body: () throws -> Result) rethrows -> Result {
    guard isEncrypted else { return try body() }
    return try TemporaryBuffer.$sealing.withValue(TemporaryBuffer.Sealing { OneTimeSpoolKey() }, operation: body)
  }

  /// The refusal of a diff that is addressed to others. Its author would not know that it is applied here.
  func refusal(of manifest: Manifest, _ signature: DiffFile.Signature) -> Refusal? {
    switch manifest.audience {
    case .broadcast: return nil
    case .some(let audience):
      guard !keys.isAddressed(by: audience) else { return nil }
      return refusal(
        "it is not addressed to you: it was made for others and passed on; ask its sender to share with you, or name the identity that it is for"
      )
    case nil:
      // A recipient of a signed file could encrypt it again for others, and it would seem to come from its author.
      guard let input, !input.isByPassphrase, case .signed = signature else { return nil }
      return refusal(
        "it is encrypted and signed, but names no recipients, so it may have been passed on by a third person")
    }
  }

  private func refusal(_ reason: String) -> Refusal { Refusal(.rejected, code: .notAddressed, reason: reason) }
}

/// The decryption keys of a person. Those of a protected identity are unlocked by the first encrypted file, because a
/// passphrase must not be asked for without need.
final class OwnKeys: @unchecked Sendable {
  /// The public halves, which recognize diffs that are addressed to them.
  let publicKeys: [[UInt8]]
  private let home: BuckiaHome
  // The lock guards `unlocked`.
  private let lock = DispatchSemaphore(value: 1)
  private var unlocked: Result<Decryption, ByteStreamError>?

  /// The keys of the home's owner; nil for none.
  ///
  /// - Throws: `BuckiaError` as ``BuckiaHome/publicIdentity()``.
  init?(of home: BuckiaHome) throws {
    guard let identity = try home.publicIdentityIfAny() else { return nil }
    publicKeys = identity.encryptionKeys.map(\.bytes)
    self.home = home
  }

  /// What opens files.
  ///
  /// - Throws: `ByteStreamError` when the identity cannot be unlocked. The error is kept for the next files, which do
  ///   not ask for the passphrase again.
  func decryption() throws(ByteStreamError) -> Decryption {
    lock.wait()
    defer { lock.signal() }
    let result = unlocked ?? unlock()
    unlocked = result
    return try result.get()
  }

  private func unlock() -> Result<Decryption, ByteStreamError> {
    do {
      return .success(try FileDecryption(identities: AgeIdentity.identities(of: home.identity())).decryption)
    } catch {
      return .failure(
        ByteStreamError(
          ByteStreamError.Code(rawValue: BuckiaErrorCode.encrypted.rawValue),
          "it is encrypted, and your identity cannot be unlocked: \(error)"))
    }
  }
}

/// Keeps SQLite's temporary data in memory while encrypted files are made or applied: sorts, TEMP tables, and the pages
/// of savepoints.
///
/// While temporary files exist, others can open them by name, and their bytes stay on the disk after they are deleted.
/// In memory the data grow with the rows: some 25 bytes for each row that is found by its content. The sorts that
/// rebuild indexes stay within the memory limit: larger ones are not begun.
extension SQLiteConnection {
  /// Runs `body` while SQLite writes no temporary files.
  ///
  /// - Throws: `BuckiaError` with `cannotEncrypt` when SQLite cannot be kept from it; nothing has been done then. `SQLiteError`; what `body`
  ///   throws.
  func requiringTemporaryFilesInMemory<Result>(_ body: () throws -> Result) throws -> Result {
    if let result = try withTemporaryFilesInMemory(body) { return result }
    throw BuckiaError(
      .cannotEncrypt,
      "SQLite would write parts of what is encrypted into temporary files, in clear, and cannot be kept from it while this connection has "
        + "TEMP tables or triggers, or a transaction open; set PRAGMA temp_store = MEMORY when the connection is opened, or use another one",
      path: path)
  }
}
