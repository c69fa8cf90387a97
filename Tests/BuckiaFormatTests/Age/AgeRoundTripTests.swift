import BuckiaFormat
import BuckiaBytes
import TestSupport
import Testing

@Suite("Encrypting and decrypting")
struct AgeRoundTripTests {
  static let chunk = 65_536
  static let sizes = [0, 1, 65_535, 65_536, 65_537, 131_072, 196_608, 196_613]

  @Test("decrypting returns the original", arguments: sizes, [false, true])
  func comesBack(count: Int, isArmored: Bool) throws {
    let identity = AgeIdentity()
    let plain = Ciphers.sample(count)
    let sealed = try Ciphers.encrypt(plain, for: Encryption(to: [identity.makeRecipient()]), armored: isArmored)
    #expect(try Ciphers.decrypt(sealed, with: Decryption(identities: [identity])) == plain)
  }

  @Test("the size of the pieces makes no difference", arguments: [1, 1000, 65_535, 65_536, 65_537, 327_680])
  func pieces(size: Int) throws {
    let identity = AgeIdentity()
    let plain = Ciphers.sample(size == 1 ? Self.chunk + 2 : 3 * Self.chunk + 1)
    let sealed = try Ciphers.encrypt(plain, for: Encryption(to: [identity.makeRecipient()]), pieces: size)
    #expect(try Ciphers.decrypt(sealed, with: Decryption(identities: [identity])) == plain)
  }

  @Test("each of several recipients can decrypt, and no one else", arguments: [false, true])
  func recipients(isQuantumSafe: Bool) throws {
    let identities = (0..<3).map { _ in AgeIdentity(quantumSafe: isQuantumSafe) }
    let sealed = try Ciphers.encrypt([1, 2, 3], for: Encryption(to: identities.map { try $0.makeRecipient() }))
    for identity in identities {
      #expect(try Ciphers.decrypt(sealed, with: Decryption(identities: [AgeIdentity(), identity])) == [1, 2, 3])
    }
    for other in [AgeIdentity(), AgeIdentity(quantumSafe: true)] {
      let (plain, error) = try Ciphers.released(sealed, with: Decryption(identities: [other]))
      #expect(plain.isEmpty)
      #expect(error?.description == "it is not encrypted for you: no identity here opens it")
    }
  }

  @Test("the right passphrase decrypts, and a wrong one is reported")
  func passphrase() throws {
    let sealed = try Ciphers.encrypt([1, 2, 3], for: Encryption(passphrase: Array("swordfish".utf8), workFactor: 4))
    func released(_ passphrase: String?, _ identities: [AgeIdentity] = []) throws -> String? {
      let decryption = try Decryption(identities: identities, passphrase: passphrase.map { Array($0.utf8) })
      return try Ciphers.released(sealed, with: decryption).error?.description
    }
    #expect(try released("swordfish") == nil)
    #expect(try released("swordfish", [AgeIdentity()]) == nil)
    #expect(try released("sword") == "the passphrase is wrong")
    #expect(try released(nil, [AgeIdentity()]) == "it is encrypted with a passphrase, and none was given")
  }

  @Test("a passphrase does not decrypt a file for an identity")
  func missingIdentity() throws {
    let sealed = try Ciphers.encrypt([], for: Encryption(to: [AgeIdentity().makeRecipient()]))
    let (_, error) = try Ciphers.released(sealed, with: Decryption(identities: [], passphrase: [1]))
    #expect(error?.description == "it is encrypted for an identity, and none was given")
    #expect(error?.code == .noMatchingIdentity)
  }

  @Test("no two encryptions of the same bytes are equal")
  func fresh() throws {
    let encryption = try Encryption(to: [AgeIdentity().makeRecipient()])
    #expect(try Ciphers.encrypt([1], for: encryption).suffix(33) != Ciphers.encrypt([1], for: encryption).suffix(33))
  }

  @Test("nothing can be written after the end")
  func end() throws {
    let output = MemoryOutput()
    let encrypting = try EncryptingOutput(output, for: Encryption(to: [AgeIdentity().makeRecipient()]))
    try encrypting.finish()
    let count = output.bytes.count
    #expect(#expect(throws: ByteStreamError.self) { try encrypting.finish() }?.code == .alreadyFinished)
    #expect(#expect(throws: ByteStreamError.self) { try encrypting.write([1]) }?.code == .alreadyFinished)
    #expect(output.bytes.count == count)
  }

  @Test("after a failure nothing more can be written")
  func failure() throws {
    let output = LimitedOutput(byteCount: 100_000)
    let encrypting = try EncryptingOutput(output, for: Encryption(to: [AgeIdentity().makeRecipient()]))
    #expect(throws: ByteStreamError.self) { try encrypting.write(Ciphers.sample(300_000)) }
    #expect(#expect(throws: ByteStreamError.self) { try encrypting.finish() }?.code == .alreadyFinished)
  }

  @Test("encryption and decryption are streamed")
  func streams() throws {
    let identity = AgeIdentity()
    let output = MemoryOutput()
    let encrypting = try EncryptingOutput(output, for: Encryption(to: [identity.makeRecipient()]))
    let piece = Ciphers.sample(10_000)
    for number in 1...100 {
      try encrypting.write(piece)
      // At most one chunk is held back.
      #expect(output.bytes.count >= number * piece.count - Self.chunk)
    }
    try encrypting.finish()
    let input = ObservedMemoryInput(output.bytes)
    let decrypting = try DecryptingInput(input, with: Decryption(identities: [identity]))
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 10_000, alignment: 1)
    defer { buffer.deallocate() }
    var count = 0
    while case let read = try decrypting.read(into: buffer), read > 0 {
      count += read
      #expect(input.byteCount <= count + 2 * Self.chunk)
    }
    #expect(count == 1_000_000)
  }
}
