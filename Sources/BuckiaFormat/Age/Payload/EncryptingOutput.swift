import BuckiaBytes
import Crypto

/// Encrypts what is written to it and hands that on, a chunk at a time.
///
/// The last chunk is marked as such, so a file without ``finish()`` is one that nobody can decrypt to its end. After an error
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
  ///   - output: Where the encrypted bytes go.
  ///   - encryption: For whom.
  /// - Throws: `AgeError`, or what the output throws.
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
      // A full chunk waits for what follows: only then is it known not to be the last.
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
    // Only a chunk that went out gives the key back: whether one went out that failed is not known, and no nonce may be used
    // twice.
    self.key = nil
    let box: ChaChaPoly.SealedBox
    do {
      box = try ChaChaPoly.seal(chunk, using: key, nonce: ChaChaPoly.Nonce(data: nonce.bytes(isLast: isLast)))
    } catch { throw ByteStreamError(.unwritable, "it cannot be encrypted: \(error)") }
    // The nonce, which everybody knows, is not written.
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
