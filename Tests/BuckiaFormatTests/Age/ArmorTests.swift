import BuckiaFormat
import BuckiaBytes
import Foundation
import Testing

@Suite("Armor")
struct ArmorTests {
  private static let begin = "-----BEGIN AGE ENCRYPTED FILE-----\n"
  private static let end = "-----END AGE ENCRYPTED FILE-----\n"

  private static func released(_ text: String) throws -> String? {
    let identity = try AgeIdentity(parsing: KeyTests.identity)
    return try Ciphers.released(Array(text.utf8), with: Decryption(identities: [identity])).error?.code.rawValue
  }

  /// The lines of a file whose last line of base64 is padded, or full with `full`.
  private static func lines(full isFull: Bool = false) throws -> [String] {
    var file = try AgeFileBuilder.x25519()
    let count = try file.bytes.count
    file.chunks[0].plain += Data(count: (isFull ? 48 : 49) - count % 48)
    return Data(try file.bytes).base64EncodedString(options: [.lineLength64Characters, .endLineWithLineFeed])
      .split(separator: "\n").map { "\($0)\n" }
  }

  @Test("a well-formed file can be read, with any white space around it", arguments: [false, true])
  func wellFormed(isFull: Bool) throws {
    let text = try Self.begin + Self.lines(full: isFull).joined() + Self.end
    let space = String(repeating: " \t\r\n", count: 256)
    for variant in [
      text, text.replacingOccurrences(of: "\n", with: "\r\n"), String(text.dropLast()), "\n \t\r\n\(text)\n\n \r\n",
      space + text + space,
    ] { #expect(try Self.released(variant) == nil) }
    #expect(try Self.released(space + " " + text) == "malformedArmor")
    #expect(try Self.released(text + space + " ") == "malformedArmor")
  }

  @Test("malformed text is refused")
  func malformed() throws {
    let lines = try Self.lines()
    let body = lines.joined()
    let last = lines[lines.count - 1]
    let most = lines.dropLast().joined()
    let (begin, end) = (Self.begin, Self.end)
    let first = String(lines[0].dropLast())
    let rest = lines.dropFirst().joined()
    let unended = String(last.dropLast())
    let broken: [String] = [
      begin, "\(begin)\(body)", "\(begin)\(body)x", "\(begin)\(body)\(end)x",
      "\(begin)\(body)\(end)\(begin)", "\(begin)\n\(body)\(end)", "\(begin)\(body)\n\(end)",
      "\(begin)Version: 1\n\n\(body)\(end)", "\(begin.lowercased())\(body)\(end)", "\(begin)\(body)\(end.lowercased())",
      "\(begin)\(most)\(last.dropLast(2))\n\(end)", "\(begin)\(most) \(last)\(end)",
      "\(begin)\(most)\(unended) \n\(end)",
      "\(begin.dropLast()) \n\(body)\(end)", "\(begin)\(body)\(end.dropLast())-\n",
      "-----BEGIN AGE-----\n\(body)\(end)",
      "\(begin)\(most)=\n\(last)\(end)", "\(begin)\(first)\(rest)\(end)", "\(begin)\(first.prefix(60))\n\(rest)\(end)",
      "\(begin)\(first)\r\r\n\(rest)\(end)", "\(begin)*\(body.dropFirst())\(end)", "\(begin)\(body)=njUN\n\(end)",
    ]
    for (number, text) in broken.enumerated() {
      #expect(try Self.released(text) == "malformedArmor", "\(number): \(text)")
    }
    #expect(try Self.released("x\n" + begin + body + end) == "notEncrypted")
  }

  @Test("unused bits of the last character must be 0")
  func canonical() throws {
    var file = try AgeFileBuilder.x25519()
    let count = try file.bytes.count
    file.chunks[0].plain += Data(count: 49 - count % 48)
    let text = Data(try file.bytes).base64EncodedString(options: [.lineLength64Characters, .endLineWithLineFeed])
    let padded = try #require(text.range(of: "=="))
    let before = text.index(before: padded.lowerBound)
    let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
    let value = try #require(alphabet.firstIndex(of: text[before]))
    let altered = text.replacingCharacters(in: before...before, with: String(alphabet[value | 1]))
    #expect(try Self.released(Self.begin + text + "\n" + Self.end) == nil)
    #expect(try Self.released(Self.begin + altered + "\n" + Self.end) == "malformedArmor")
  }

  @Test("output has lines of 64 characters", arguments: [0, 1, 47, 48, 49, 96, 200_000])
  func writes(count: Int) throws {
    let recipient = try AgeIdentity().makeRecipient()
    let bytes = try Ciphers.encrypt(Ciphers.sample(count), for: Encryption(to: [recipient]), armored: true)
    let text = String(decoding: bytes, as: UTF8.self)
    #expect(text.hasPrefix(Self.begin) && text.hasSuffix("\n\(Self.end)"))
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false).dropFirst().dropLast(2)
    #expect(lines.dropLast().allSatisfy { $0.utf8.count == 64 })
    #expect((1...64).contains(lines.last?.utf8.count ?? 0))
  }
}
