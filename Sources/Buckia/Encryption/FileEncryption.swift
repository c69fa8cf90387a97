/// Encrypts files of any kind in age's format, for `age`, `buckia decrypt` and ``FileDecryption``.
///
/// ```swift
/// let encryption = try FileEncryption(to: [AgeRecipient("age1…")])
/// try encryption.encrypt("notes.sqlite", to: "notes.sqlite.age")
/// ```
///
/// Files of any size take the same memory. The plaintext is written nowhere else.
public struct FileEncryption: Sendable {
  let encryption: Encryption
  /// True if the encrypted file is text, for places that take no other bytes. It is a third larger then.
  public var isArmored = false

  /// For some recipients, each of whom can open the file by themselves.
  ///
  /// - Parameter recipients: From 1 to 64. Quantum-safe ones share a file only with each other.
  /// - Throws: `BuckiaError`.
  public init(to recipients: [AgeRecipient]) throws {
    encryption = try BuckiaError.wrapping { try Encryption(to: recipients) }
  }

  /// Encrypts for a passphrase. Encrypting and decrypting takes about a second and 256 MB of memory, which makes
  /// guessing expensive.
  ///
  /// - Throws: `BuckiaError` when the passphrase is empty.
  public init(passphrase: String) throws { try self.init(passphrase: Array(passphrase.utf8)) }

  /// The same with the passphrase byte by byte.
  ///
  /// - Parameter workFactor: The logarithm to base 2 of the cost of each guess; 18 by default.
  package init(passphrase: [UInt8], workFactor: Int? = nil) throws {
    encryption = try BuckiaError.wrapping { try Encryption(passphrase: passphrase, workFactor: workFactor) }
  }

  /// Encrypts a file.
  ///
  /// - Parameters:
  ///   - path: The file. A link is followed.
  ///   - target: The encrypted file, which appears complete or not at all.
  ///   - isReplacing: True if it may replace a file of that name.
  ///   - progress: Called with the number of bytes that were read so far. May throw to stop it.
  /// - Returns: The size of the encrypted file in bytes.
  /// - Throws: `BuckiaError`; whatever `progress` throws. There is no new file then.
  @discardableResult
  public func encrypt(
    _ path: String, to target: String, replacing isReplacing: Bool = false,
    progress: (Int64) throws -> Void = { _ in }
  ) throws -> Int64 {
    try encrypt(.path(path), to: .path(target, replacing: isReplacing), progress: progress)
  }

  /// The same from and to streams.
  package func encrypt(
    _ source: CipherSource, to target: DiffOutput.File, progress: (Int64) throws -> Void
  ) throws -> Int64 {
    try BuckiaError.wrapping {
      try target.write(from: source) { try encrypt(source.opened(), into: $0, progress: progress) }
    }
  }

  private func encrypt(
    _ input: any ByteInput, into output: any ByteOutput, progress: (Int64) throws -> Void
  ) throws {
    let armor = isArmored ? ArmoringOutput(output) : nil
    let encrypting = try EncryptingOutput(armor ?? output, for: encryption)
    try input.copyAll(to: encrypting, progress: progress)
    try encrypting.finish()
    try armor?.finish()
  }
}

/// Decrypts files that were encrypted with `age`, `buckia encrypt` or ``FileEncryption``.
///
/// ```swift
/// let decryption = try FileDecryption(identities: AgeIdentity.identities(inFile: "key.txt"))
/// try decryption.decrypt("notes.sqlite.age", to: "notes.sqlite")
/// ```
///
/// Decryption does not prove who has encrypted a file: anybody who knows the recipient can.
public struct FileDecryption: Sendable {
  let decryption: Decryption
  /// The public keys of the identities.
  let publicKeys: [[UInt8]]

  /// Decrypts with whichever fits.
  ///
  /// - Parameters:
  ///   - identities: Private keys.
  ///   - passphrase: A passphrase.
  /// - Throws: `BuckiaError` when the passphrase is empty.
  public init(identities: [AgeIdentity], passphrase: String? = nil) throws {
    try self.init(identities: identities, passphraseBytes: passphrase.map { Array($0.utf8) })
  }

  /// The same with the passphrase byte by byte.
  package init(identities: [AgeIdentity], passphraseBytes: [UInt8]?) throws {
    decryption = try BuckiaError.wrapping { try Decryption(identities: identities, passphrase: passphraseBytes) }
    publicKeys = try identities.map { try $0.recipient().keyBytes }
  }

  /// Decrypts a file, armored or not.
  ///
  /// - Parameters:
  ///   - path: The encrypted file. A link is followed.
  ///   - target: The decrypted file, which appears when all of it has been found to be authentic, or not at all.
  ///   - isReplacing: True if it may replace a file of that name.
  ///   - progress: Called with the number of bytes that were decrypted so far. May throw to stop it.
  /// - Returns: The size of the decrypted file in bytes.
  /// - Throws: `BuckiaError`, with code ``BuckiaErrorCode/noMatchingIdentity`` when the file is for somebody else; whatever
  ///   `progress` throws. There is no new file then.
  @discardableResult
  public func decrypt(
    _ path: String, to target: String, replacing isReplacing: Bool = false,
    progress: (Int64) throws -> Void = { _ in }
  ) throws -> Int64 {
    try decrypt(.path(path), to: .path(target, replacing: isReplacing), progress: progress)
  }

  /// The same from and to streams. Bytes before an error are authentic, but incomplete.
  package func decrypt(
    _ source: CipherSource, to target: DiffOutput.File, progress: (Int64) throws -> Void
  ) throws -> Int64 {
    try BuckiaError.wrapping {
      let input = try source.opened()
      do {
        let decrypting = try DecryptingInput(input, with: decryption)
        return try target.write(from: source) { try decrypting.copyAll(to: $0, progress: progress) }
      } catch let error as ByteStreamError where error.path == nil {
        throw source.named(error)
      }
    }
  }
}

/// The source of the bytes to encrypt or decrypt.
package enum CipherSource: Sendable {
  case path(String)
  case standardInput

  /// True for a file that others may not read.
  var isPrivate: Bool { if case .path(let path) = self { !FileSystem.isReadableByAll(path) } else { false } }

  /// Opens it for one reading from the first byte to the last.
  ///
  /// - Throws: `ByteStreamError`.
  func opened() throws(ByteStreamError) -> any ByteInput {
    switch self {
    case .standardInput: return try PosixFile.standardInput()
    case .path(let path):
      // The person has named the link. Elsewhere links are refused because others could have put them there.
      guard let resolved = realpath(path, nil) else { return try PosixFile(reading: path) }
      defer { free(resolved) }
      return try PosixFile(reading: String(cString: resolved))
    }
  }

  /// An error that is about these bytes, with their name.
  func named(_ error: ByteStreamError) -> ByteStreamError {
    guard case .path(let path) = self, error.errno == nil else { return error }
    var named = error
    named.path = path
    return named
  }
}

extension DiffOutput.File {
  /// Writes encrypted or decrypted bytes.
  ///
  /// - Parameters:
  ///   - source: The source of the bytes. The file does not get wider permissions than its source.
  ///   - body: Writes everything. If it throws, the written bytes are removed as far as possible.
  /// - Returns: The number of bytes.
  /// - Throws: What `body` throws, a `ByteStreamError`, or what the closure of a stream throws.
  func write(from source: CipherSource, _ body: (any ByteOutput) throws -> Void) throws -> Int64 {
    switch self {
    case .path(let path, let isReplacing):
      let file = try AtomicFileOutput(
        at: path, replacing: isReplacing, followingLinks: true, isPrivate: source.isPrivate)
      let counting = CountingOutput(file)
      try body(counting)
      try file.publish()
      return counting.byteCount
    case .stream(let closure):
      let output = ClosureOutput(closure)
      let counting = CountingOutput(output)
      do { try body(counting) } catch { throw output.failure ?? error }
      return counting.byteCount
    }
  }
}

extension ByteInput {
  /// Moves all bytes to an output, through one buffer, which does not keep them.
  ///
  /// - Parameter progress: Called with the number of bytes so far; may throw to stop.
  func copyAll(to output: any ByteOutput, progress: (Int64) throws -> Void) throws {
    var done: Int64 = 0
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: streamChunkBytes, alignment: 16)
    defer {
      buffer.initializeMemory(as: UInt8.self, repeating: 0)
      buffer.deallocate()
    }
    while true {
      let count = try read(into: buffer)
      if count == 0 { return }
      try output.write(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
      done += Int64(count)
      try progress(done)
    }
  }

  /// Reads all bytes that follow, through a buffer that does not keep them; nil if they are more than a limit.
  func secretContents(limit: Int) throws(ByteStreamError) -> [UInt8]? {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: limit + 1, alignment: 16)
    defer {
      buffer.initializeMemory(as: UInt8.self, repeating: 0)
      buffer.deallocate()
    }
    let count = try readFully(into: buffer)
    return count <= limit ? Array(buffer[..<count]) : nil
  }
}

/// Passes bytes to a closure, and keeps its error.
final class ClosureOutput: ByteOutput {
  private let body: (UnsafeRawBufferPointer) throws -> Void
  /// The error of the closure.
  private(set) var failure: (any Error)?

  init(_ body: @escaping (UnsafeRawBufferPointer) throws -> Void) { self.body = body }

  func write(_ bytes: UnsafeRawBufferPointer) throws(ByteStreamError) {
    do { try body(bytes) } catch {
      failure = error
      throw ByteStreamError(.unwritable, "it cannot be written: \(error)")
    }
  }
}

/// Hands on bytes and counts them.
final class CountingOutput: ByteOutput {
  private let output: any ByteOutput
  private(set) var byteCount: Int64 = 0

  init(_ output: any ByteOutput) { self.output = output }

  func write(_ bytes: UnsafeRawBufferPointer) throws(ByteStreamError) {
    try output.write(bytes)
    byteCount += Int64(bytes.count)
  }
}
