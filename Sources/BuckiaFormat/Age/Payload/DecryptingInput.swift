import BuckiaBytes
import Crypto

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Decrypts an input, a chunk at a time. No byte is handed out that was not found to be authentic and in its place.
///
/// Only the end says that nothing is missing: whoever reads must take back what was read when an error follows it.
package final class DecryptingInput: ByteInput {
  private enum State {
    case reading
    /// The last chunk was decrypted, and what follows it has not been looked at.
    case afterLast
    case ended
    case failed(ByteStreamError)
  }

  private let input: any ByteInput
  private let key: SymmetricKey
  /// A chunk as the library takes it: behind its nonce.
  private let box = UnsafeMutableRawBufferPointer.allocate(
    byteCount: ChunkNonce.byteCount + ChunkNonce.chunkByteCount + ChunkNonce.tagByteCount, alignment: 16)
  /// Where a chunk is read.
  private let sealed: UnsafeMutableRawBufferPointer
  private var nonce = ChunkNonce()
  private var plain = Data()
  /// How many bytes of the plaintext were handed out.
  private var position = 0
  private var state = State.reading
  /// Whether a passphrase has opened it, and no identity.
  package let isByPassphrase: Bool

  /// Reads the header and unwraps the file's key.
  ///
  /// - Parameters:
  ///   - input: The encrypted bytes, or armored ones.
  ///   - decryption: What to decrypt them with.
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

  /// - Returns: The plaintext; nil when it is not the one that was encrypted here.
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
