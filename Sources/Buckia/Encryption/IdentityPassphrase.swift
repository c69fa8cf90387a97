import BuckiaFormat
import BuckiaBytes
import Dispatch

/// What protects an identity file, and opens it: a passphrase, which is only asked for where it is needed.
///
/// ```swift
/// let home = BuckiaHome(path: folder, passphrase: IdentityPassphrase("correct horse battery staple"))
/// ```
public struct IdentityPassphrase: Sendable {
  private let source: Source
  /// The logarithm to base 2 of what each guess costs; nil for 18.
  private let workFactor: Int?

  /// Takes a passphrase.
  public init(_ passphrase: String) { self.init(Array(passphrase.utf8)) }

  /// Takes a passphrase byte by byte.
  package init(_ bytes: [UInt8], workFactor: Int? = nil) {
    source = Source { bytes }
    self.workFactor = workFactor
  }

  /// Asks for it when it is first needed, once.
  ///
  /// - Parameter ask: Gives the passphrase byte by byte. It may be called in any thread.
  public init(asking ask: @escaping @Sendable () throws -> [UInt8]) {
    source = Source(ask)
    workFactor = nil
  }

  /// Keeps what was asked for.
  private final class Source: @unchecked Sendable {
    // The lock guards `known`.
    private let lock = DispatchSemaphore(value: 1)
    private let ask: @Sendable () throws -> [UInt8]
    private var known: [UInt8]?

    init(_ ask: @escaping @Sendable () throws -> [UInt8]) { self.ask = ask }

    func bytes() throws -> [UInt8] {
      lock.wait()
      defer { lock.signal() }
      if let known { return known }
      let bytes = try ask()
      known = bytes
      return bytes
    }
  }
}

extension IdentityPassphrase: IdentitySealing {
  package func seal(_ document: [UInt8]) throws -> [UInt8] {
    let encryption = try Encryption(passphrase: source.bytes(), workFactor: workFactor)
    var sealed: [UInt8] = []
    let output = ClosureOutput { sealed += $0 }
    let armor = ArmoringOutput(output)
    let encrypting = try EncryptingOutput(armor, for: encryption)
    try encrypting.write(document)
    try encrypting.finish()
    try armor.finish()
    return sealed
  }

  package func open(_ sealed: [UInt8]) throws -> [UInt8] {
    let decryption = try Decryption(identities: [], passphrase: source.bytes())
    let input = try DecryptingInput(PositionedInput(TemporaryBuffer(sealed)), with: decryption)
    let limit = Identity.documentByteLimit
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: limit + 1, alignment: 16)
    defer {
      buffer.initializeMemory(as: UInt8.self, repeating: 0)
      buffer.deallocate()
    }
    let count = try input.readFully(into: buffer)
    guard count <= limit else {
      throw IdentityError(.invalidFile, "it is larger than an identity file can be")
    }
    return Array(buffer[..<count])
  }
}
