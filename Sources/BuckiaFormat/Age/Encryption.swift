import BuckiaBytes
import Crypto

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The readers of an encrypted file: recipients, or all who know a passphrase.
package struct Encryption: Sendable {
  private let kinds: [any RecipientKind]

  /// The maximum number of recipients of a file.
  package static let recipientLimit = AgeHeader.maximumStanzas

  /// For some recipients; naming one twice is naming it once.
  ///
  /// - Throws: `IdentityError` with code `noRecipients`, `tooManyRecipients` or `mixedRecipients`.
  package init(to recipients: [AgeRecipient]) throws(IdentityError) {
    var seen: Set<AgeRecipient> = []
    let recipients = recipients.filter { seen.insert($0).inserted }
    guard !recipients.isEmpty else { throw IdentityError(.noRecipients, "no recipient is given") }
    let safe = recipients.count { $0.isQuantumSafe }
    guard safe == 0 || safe == recipients.count else {
      throw IdentityError(
        .mixedRecipients,
        "recipients that are safe from quantum computers (age1pq1…) cannot share a file with others: it would be as weak "
          + "as the weakest; encrypt it twice")
    }
    guard recipients.count <= Self.recipientLimit else {
      throw IdentityError(
        .tooManyRecipients,
        "a file can have up to \(Self.recipientLimit) recipients, and there are \(recipients.count)")
    }
    kinds = recipients.map(\.kind)
  }

  /// Encrypts for all who know a passphrase.
  ///
  /// - Parameters:
  ///   - passphrase: The passphrase, byte by byte as it was typed.
  ///   - workFactor: The logarithm to base 2 of what each try of a passphrase costs, from 1 to 20.
  /// - Throws: `IdentityError` with code `emptyPassphrase`.
  package init(passphrase: [UInt8], workFactor: Int? = nil) throws(IdentityError) {
    let factor = min(max(workFactor ?? Passphrase.defaultWorkFactor, 1), Passphrase.maximumWorkFactor)
    kinds = [try Passphrase(passphrase, workFactor: factor)]
  }

  /// The header for a file's key.
  func header(for key: FileKey) throws(IdentityError) -> AgeHeader {
    var stanzas: [Stanza] = []
    for kind in kinds { stanzas.append(try kind.wrap(key)) }
    return AgeHeader(stanzas, of: key)
  }
}

/// Encrypts the written bytes and writes them to another output, a chunk at a time.
///
/// The last chunk is marked as the last: a file without ``finish()`` cannot be decrypted to its end. After an error
/// nothing more can be written.
package final class EncryptingOutput: ByteOutput {
  private let output: any ByteOutput
  private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: ChunkNonce.chunkByteCount, alignment: 16)
  private var filled = 0
  private var nonce = ChunkNonce()
  /// The key; nil at the end and after an error.
  private var key: SymmetricKey?

  /// Writes the header.
  ///
  /// - Parameters:
  ///   - output: The output for the encrypted bytes.
  ///   - encryption: For whom.
  /// - Throws: `IdentityError`, or what the output throws.
  package init(_ output: any ByteOutput, for encryption: Encryption) throws {
    self.output = output
    let fileKey = FileKey()
    let header = try encryption.header(for: fileKey)
    let payloadNonce = SymmetricKey(size: .bits128).withUnsafeBytes { Array($0) }
    key = fileKey.payloadKey(nonce: payloadNonce)
    try output.write(header.text + payloadNonce)
  }

  deinit {
    wipe()
    buffer.deallocate()
  }

  package func write(_ bytes: UnsafeRawBufferPointer) throws(ByteStreamError) {
    guard key != nil else { throw Self.alreadyFinished }
    var rest = bytes
    while !rest.isEmpty {
      // A full chunk is only written when more bytes follow, since the last chunk is sealed differently.
      if filled == buffer.count { try seal(UnsafeRawBufferPointer(buffer), isLast: false) }
      if filled == 0, rest.count > buffer.count {
        try seal(UnsafeRawBufferPointer(rebasing: rest[..<buffer.count]), isLast: false)
        rest = UnsafeRawBufferPointer(rebasing: rest[buffer.count...])
        continue
      }
      let count = min(rest.count, buffer.count - filled)
      UnsafeMutableRawBufferPointer(rebasing: buffer[filled...]).copyMemory(
        from: UnsafeRawBufferPointer(rebasing: rest[..<count]))
      filled += count
      rest = UnsafeRawBufferPointer(rebasing: rest[count...])
    }
  }

  /// Writes the last chunk. Nothing can be written after it.
  ///
  /// - Throws: `ByteStreamError` with code `alreadyFinished` when it was called before or a write has failed, or what the
  ///   output throws.
  package func finish() throws(ByteStreamError) {
    guard key != nil else { throw Self.alreadyFinished }
    try seal(UnsafeRawBufferPointer(rebasing: buffer[..<filled]), isLast: true)
    wipe()
  }

  private func seal(_ chunk: UnsafeRawBufferPointer, isLast: Bool) throws(ByteStreamError) {
    guard let key else { throw Self.alreadyFinished }
    // The key is only restored after a written chunk: a failed write may have written the chunk, and no nonce may be
    // used twice.
    self.key = nil
    let box: ChaChaPoly.SealedBox
    do {
      box = try ChaChaPoly.seal(chunk, using: key, nonce: ChaChaPoly.Nonce(data: nonce.bytes(isLast: isLast)))
    } catch { throw ByteStreamError(.unwritable, "it cannot be encrypted: \(error)") }
    // The nonce is a counter, and is not written.
    let written = box.combined.withUnsafeBytes { bytes in
      Result { () throws(ByteStreamError) in
        try output.write(UnsafeRawBufferPointer(rebasing: bytes[ChunkNonce.byteCount...]))
      }
    }
    try written.get()
    self.key = isLast ? nil : key
    nonce.advance()
    filled = 0
  }

  /// Leaves no plaintext in memory that is given back.
  private func wipe() { buffer.initializeMemory(as: UInt8.self, repeating: 0) }

  private static let alreadyFinished = ByteStreamError(
    .alreadyFinished, "it is encrypted to its end already, or that has failed")
}

/// The secrets for decrypting a file: identities, a passphrase, or both.
package struct Decryption: Sendable {
  private let kinds: [any IdentityKind]

  /// - Parameters:
  ///   - identities: Private keys.
  ///   - passphrase: A passphrase, byte by byte as it was typed.
  /// - Throws: `IdentityError` with code `emptyPassphrase`.
  package init(identities: [AgeIdentity], passphrase: [UInt8]? = nil) throws(IdentityError) {
    var kinds = identities.map(\.kind)
    if let passphrase { kinds.append(try Passphrase(passphrase)) }
    self.kinds = kinds
  }

  /// All that some hold.
  package init(joining decryptions: [Decryption]) { kinds = decryptions.flatMap(\.kinds) }

  /// Unwraps the key of a file and checks the header's MAC with it.
  ///
  /// - Returns: The key, and true if the passphrase has unwrapped it.
  /// - Throws: `ByteStreamError`.
  func key(of header: AgeHeader) throws(ByteStreamError) -> (key: FileKey, isByPassphrase: Bool) {
    let needsPassphrase = header.stanzas.contains { $0.kind == Passphrase.stanzaKind }
    guard !needsPassphrase || header.stanzas.count == 1 else {
      throw HeaderReader.malformed("who opens a file with a passphrase must be the only recipient")
    }
    for kind in kinds {
      guard let key = try kind.unwrap(header.stanzas) else { continue }
      guard key.hasSealed(header) else {
        throw ByteStreamError(.alteredHeader, "its header has been altered since it was encrypted; ask for it again")
      }
      return (key, kind is Passphrase)
    }
    throw ByteStreamError(.noMatchingIdentity, noMatch(needsPassphrase: needsPassphrase))
  }

  private func noMatch(needsPassphrase: Bool) -> String {
    let hasPassphrase = kinds.contains { $0 is Passphrase }
    if needsPassphrase {
      return hasPassphrase ? "the passphrase is wrong" : "it is encrypted with a passphrase, and none was given"
    }
    return kinds.allSatisfy { $0 is Passphrase }
      ? "it is encrypted for an identity, and none was given" : "it is not encrypted for you: no identity here opens it"
  }
}

/// Decrypts an input, a chunk at a time. No byte is handed out that was not found to be authentic and in its place.
///
/// Only the end shows that nothing is missing: after an error the reader must undo whatever it did with earlier bytes.
package final class DecryptingInput: ByteInput {
  private enum State {
    case reading
    /// The last chunk was decrypted; the bytes after it have not been read.
    case afterLast
    case ended
    case failed(ByteStreamError)
  }

  private let input: any ByteInput
  private let key: SymmetricKey
  /// A chunk after its nonce, in the layout that the library reads.
  private let box = UnsafeMutableRawBufferPointer.allocate(
    byteCount: ChunkNonce.byteCount + ChunkNonce.chunkByteCount + ChunkNonce.tagByteCount, alignment: 16)
  /// The encrypted chunk: the part after the nonce.
  private let sealed: UnsafeMutableRawBufferPointer
  private var nonce = ChunkNonce()
  private var plain = Data()
  /// The number of plaintext bytes that were read.
  private var position = 0
  private var state = State.reading
  /// True if a passphrase has opened it, and no identity.
  package let isByPassphrase: Bool

  /// Reads the header and unwraps the file's key.
  ///
  /// - Parameters:
  ///   - input: The encrypted bytes, or armored ones.
  ///   - decryption: The secrets for decrypting them.
  /// - Throws: `ByteStreamError`.
  package init(_ input: any ByteInput, with decryption: Decryption) throws(ByteStreamError) {
    sealed = UnsafeMutableRawBufferPointer(rebasing: box[ChunkNonce.byteCount...])
    let lines = LineInput(input)
    let binary = try DearmoringInput.isArmored(lines) ? LineInput(DearmoringInput(lines)) : lines
    let (fileKey, isByPassphrase) = try decryption.key(of: HeaderReader.read(binary))
    self.isByPassphrase = isByPassphrase
    self.input = binary
    key = fileKey.payloadKey(nonce: try Self.payloadNonce(binary))
  }

  deinit {
    wipe()
    box.deallocate()
  }

  package func read(into buffer: UnsafeMutableRawBufferPointer) throws(ByteStreamError) -> Int {
    while plain.isEmpty {
      switch state {
      case .failed(let error): throw error
      case .ended: return 0
      case .afterLast, .reading:
        do {
          if case .reading = state { try readChunk() } else { try readEnd() }
        } catch {
          state = .failed(error)
          throw error
        }
      }
    }
    let count = min(buffer.count, plain.count - position)
    plain.withUnsafeBytes { buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[position..<position + count])) }
    position += count
    if position == plain.count { wipe() }
    return count
  }

  private func readChunk() throws(ByteStreamError) {
    let count = try input.readFully(into: sealed)
    guard count >= ChunkNonce.tagByteCount else { throw Self.altered("it is cut off") }
    let isShort = count < sealed.count
    // An empty chunk would be a second way to write the same file.
    guard count > ChunkNonce.tagByteCount || nonce.index == 0 else { throw Self.altered("its last part is empty") }
    if !isShort, let chunk = open(count, isLast: false) {
      plain = chunk
    } else if let chunk = open(count, isLast: true) {
      plain = chunk
      state = .afterLast
    } else {
      throw Self.altered(isShort ? "it is cut off or has been altered" : "it has been altered")
    }
    nonce.advance()
  }

  private func readEnd() throws(ByteStreamError) {
    let count = try input.read(into: UnsafeMutableRawBufferPointer(rebasing: sealed[..<1]))
    guard count == 0 else { throw Self.altered("something follows its end") }
    state = .ended
  }

  /// - Returns: The plaintext; nil if it is not the one that was encrypted here.
  private func open(_ count: Int, isLast: Bool) -> Data? {
    box.copyBytes(from: nonce.bytes(isLast: isLast))
    do {
      let chunk = UnsafeRawBufferPointer(rebasing: box[..<(ChunkNonce.byteCount + count)])
      return try ChaChaPoly.open(ChaChaPoly.SealedBox(combined: chunk), using: key)
    } catch {
      return nil
    }
  }

  /// Leaves no plaintext in memory that is given back.
  private func wipe() {
    plain.resetBytes(in: plain.startIndex..<plain.endIndex)
    plain = Data()
    position = 0
  }

  private static func payloadNonce(_ input: any ByteInput) throws(ByteStreamError) -> [UInt8] {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: ChunkNonce.payloadNonceByteCount, alignment: 16)
    defer { buffer.deallocate() }
    guard try input.readFully(into: buffer) == buffer.count else {
      throw HeaderReader.malformed("the random bytes behind it are missing")
    }
    return Array(buffer)
  }

  private static func altered(_ what: String) -> ByteStreamError {
    ByteStreamError(.alteredPayload, "it cannot be decrypted to its end: \(what); ask for it again")
  }
}

/// The nonce of a chunk: its number, and a flag for the last one.
struct ChunkNonce {
  /// The plaintext bytes of a chunk.
  static let chunkByteCount = 64 << 10
  /// The additional bytes of an encrypted chunk.
  static let tagByteCount = 16
  /// The number of bytes of a nonce.
  static let byteCount = 12
  /// The number of random bytes between the header and the first chunk.
  static let payloadNonceByteCount = 16

  /// The number of earlier chunks.
  private(set) var index: UInt64 = 0

  /// The bytes: the number in 11 of them, the most significant first, and 1 in the last one for the last chunk.
  func bytes(isLast: Bool) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: Self.byteCount)
    for place in 0..<8 { bytes[10 - place] = UInt8(truncatingIfNeeded: index >> UInt64(8 * place)) }
    bytes[11] = isLast ? 1 : 0
    return bytes
  }

  mutating func advance() { index += 1 }
}

extension ByteStreamError.Code {
  /// It is no age file, or one of an unknown version.
  package static let notEncrypted = Self(rawValue: "notEncrypted")
  /// The header breaks a rule of the format.
  package static let malformedHeader = Self(rawValue: "malformedHeader")
  /// The header has been altered: its MAC does not belong to the file key.
  package static let alteredHeader = Self(rawValue: "alteredHeader")
  /// The text around the encrypted bytes breaks a rule of the format.
  package static let malformedArmor = Self(rawValue: "malformedArmor")
  /// None of the identities opens the file.
  package static let noMatchingIdentity = Self(rawValue: "noMatchingIdentity")
  /// Opening the file would take more memory and time than anyone honest asks for.
  package static let excessiveWorkFactor = Self(rawValue: "excessiveWorkFactor")
  /// The encrypted bytes are too few, too many, or altered.
  package static let alteredPayload = Self(rawValue: "alteredPayload")
  /// This system's cryptography cannot open files of this kind.
  package static let unsupportedEncryption = Self(rawValue: "unsupportedEncryption")
  /// An encrypted file was to be written on after its end.
  package static let alreadyFinished = Self(rawValue: "alreadyFinished")
}
