import BuckiaFormat
import BuckiaBytes
import Foundation
import Testing

/// The rules for everything after the header.
@Suite("Malformed payloads")
struct MalformedPayloadTests {
  private static let chunk = Data(Ciphers.sample(64 << 10))

  private static func released(_ bytes: [UInt8]) throws -> (count: Int, code: String?) {
    let identity = try AgeIdentity(parsing: KeyTests.identity)
    let (plain, error) = try Ciphers.released(bytes, with: Decryption(identities: [identity]))
    return (plain.count, error?.code.rawValue)
  }

  private static func file(
    _ chunks: [(plain: Data, index: UInt8, isLast: Bool)], trailing: Data = Data()
  ) throws -> [UInt8] {
    var file = try AgeFileBuilder.x25519()
    file.chunks = chunks
    file.trailing = trailing
    return try file.bytes
  }

  @Test("well-formed payloads can be read")
  func wellFormed() throws {
    #expect(try Self.released(Self.file([(Data(), 0, true)])) == (0, nil))
    #expect(try Self.released(Self.file([(Self.chunk, 0, true)])) == (65_536, nil))
    #expect(try Self.released(Self.file([(Self.chunk, 0, false), (Data([1]), 1, true)])) == (65_537, nil))
  }

  @Test("a missing or truncated nonce is refused", arguments: [0, 1, 15])
  func nonce(count: Int) throws {
    var file = try AgeFileBuilder.x25519()
    file.nonce = file.nonce.prefix(count)
    file.chunks = []
    #expect(try Self.released(file.bytes) == (0, "malformedHeader"))
  }

  @Test("a payload without a last chunk is refused, and everything before is authentic")
  func noLast() throws {
    #expect(try Self.released(Self.file([])) == (0, "alteredPayload"))
    #expect(try Self.released(Self.file([(Self.chunk, 0, false)])) == (65_536, "alteredPayload"))
    #expect(try Self.released(Self.file([(Data([1]), 0, false)])) == (0, "alteredPayload"))
    #expect(
      try Self.released(Self.file([(Self.chunk, 0, false), (Data([1]), 1, false)])) == (65_536, "alteredPayload"))
  }

  @Test("an empty last chunk is refused, unless it is the only one")
  func empty() throws {
    #expect(try Self.released(Self.file([(Self.chunk, 0, false), (Data(), 1, true)])) == (65_536, "alteredPayload"))
    #expect(try Self.released(Self.file([(Data(), 0, false)])) == (0, "alteredPayload"))
  }

  @Test("bytes after the last chunk are refused")
  func trailing() throws {
    let full: [(Data, UInt8, Bool)] = [(Self.chunk, 0, true)]
    for count in [1, 15, 16, 17, 70_000] {
      #expect(try Self.released(Self.file(full, trailing: Data(count: count))) == (65_536, "alteredPayload"))
      #expect(
        try Self.released(Self.file([(Data([1]), 0, true)], trailing: Data(count: count))) == (0, "alteredPayload"))
    }
    #expect(
      try Self.released(Self.file([(Self.chunk, 0, true), (Data([1]), 1, true)])) == (65_536, "alteredPayload"))
  }

  @Test("chunks out of order are refused")
  func order() throws {
    #expect(try Self.released(Self.file([(Self.chunk, 1, false), (Self.chunk, 0, true)])) == (0, "alteredPayload"))
    #expect(try Self.released(Self.file([(Self.chunk, 0, false), (Data([1]), 2, true)])) == (65_536, "alteredPayload"))
    #expect(try Self.released(Self.file([(Data([1]), 1, true)])) == (0, "alteredPayload"))
  }

  @Test("a truncated payload is refused")
  func truncated() throws {
    let bytes = try Self.file([(Self.chunk, 0, false), (Self.chunk, 1, false), (Data([1, 2]), 2, true)])
    let start = bytes.count - 2 * 65_552 - 18
    let ends = [0, 1, 15, 16, 17, 65_551, 65_552, 65_553, 65_568, 65_569, 131_103, 131_104, 131_105, 131_120, 131_121]
    for end in ends {
      let (count, code) = try Self.released(Array(bytes[..<(start + end)]))
      #expect(code == "alteredPayload", "\(end)")
      #expect(count == end / 65_552 * 65_536, "\(end)")
    }
  }

  @Test("any altered bit is detected")
  func altered() throws {
    let bytes = try AgeFileBuilder.x25519().bytes
    for place in bytes.indices {
      var altered = bytes
      altered[place] ^= 1
      let (count, code) = try Self.released(altered)
      #expect(count == 0)
      #expect(code != nil, "\(place)")
    }
  }

  @Test("an input that has failed keeps failing")
  func repeated() throws {
    let identity = try AgeIdentity(parsing: KeyTests.identity)
    let bytes = try Self.file([(Data([1]), 0, false)])
    let input = try DecryptingInput(ObservedMemoryInput(bytes), with: Decryption(identities: [identity]))
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 10, alignment: 1)
    defer { buffer.deallocate() }
    for _ in 0..<2 {
      let error = #expect(throws: ByteStreamError.self) { try input.read(into: buffer) }
      #expect(
        error?.description == "it cannot be decrypted to its end: it is cut off or has been altered; ask for it again")
    }
  }
}
