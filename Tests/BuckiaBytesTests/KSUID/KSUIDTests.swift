import BuckiaBytes
import Testing
import TestSupport

/// The ids that segmentio/ksuid prints in its README and uses in its tests.
struct PublishedID: Sendable, CustomTestStringConvertible {
  let text: String
  let timestamp: UInt32
  let high: UInt64
  let low: UInt64
  var testDescription: String { text }

  static let all = [
    PublishedID(
      text: "0ujtsYcgvSTl8PAuAdqWYSMnLOv", timestamp: 107_608_047, high: 0xB5A1_CD34_B5F9_9D11,
      low: 0x54FB_6853_345C_9735),
    PublishedID(
      text: "0ujzPyRiIAffKhBux4PvQdDqMHY", timestamp: 107_610_780, high: 0x73FC_1AA3_B244_6246,
      low: 0xD6E8_9FCD_909E_8FE8),
    PublishedID(
      text: "0uk1Hbc9dQ9pxyTqJ93IUrfhdGq", timestamp: 107_611_700, high: 0x9850_EEEC_191B_F4FF,
      low: 0x26F9_9315_CE43_B0C8),
    PublishedID(
      text: "0uk1HdCJ6hUZKDgcxhpJwUl5ZEI", timestamp: 107_611_700, high: 0xCC55_0725_5531_6F45,
      low: 0xB8CA_2D29_79D3_ED0A),
    PublishedID(
      text: "0uk1HcdvF0p8C20KtTfdRSB9XIm", timestamp: 107_611_700, high: 0xBA1C_205D_6177_F099,
      low: 0x2D15_EE60_6AE3_2238),
    PublishedID(
      text: "0uk1Ha7hGJ1Q9Xbnkt0yZgNwg3g", timestamp: 107_611_700, high: 0x6751_7BA3_09EA_62AE,
      low: 0x7991_B27B_B6F2_FCAC),
    PublishedID(text: "000000000000000000000000000", timestamp: 0, high: 0, low: 0),
    PublishedID(text: "000000000000000000000000001", timestamp: 0, high: 0, low: 1),
    PublishedID(text: "aWgEPTl1tmebfsQzFP4bxwgy80V", timestamp: .max, high: .max, low: .max),
    PublishedID(text: "aWgEPTl1tmebfsQzFP4bxwgy80U", timestamp: .max, high: .max, low: .max - 1),
  ]
}

@Suite struct KSUIDTests {
  @Test("Published ids are parsed and printed as published", arguments: PublishedID.all)
  func publishedIDs(_ published: PublishedID) throws {
    let id = try KSUID(parsing: published.text)
    #expect(id.timestamp == published.timestamp)
    #expect(id.payloadHigh == published.high)
    #expect(id.payloadLow == published.low)
    #expect(id.description == published.text)
    #expect(KSUID(published.text) == id)
  }

  @Test("The example of the KSUID README has the bytes and the time given there")
  func readmeExample() throws {
    let id = try KSUID(parsing: "0ujtsYcgvSTl8PAuAdqWYSMnLOv")
    let bytes: [UInt8] = [
      0x06, 0x69, 0xF7, 0xEF, 0xB5, 0xA1, 0xCD, 0x34, 0xB5, 0xF9,
      0x9D, 0x11, 0x54, 0xFB, 0x68, 0x53, 0x34, 0x5C, 0x97, 0x35,
    ]
    #expect(id.bytes == bytes)
    #expect(try KSUID(bytes: bytes) == id)
    #expect(id.unixSeconds == 1_507_608_047)  // 2017-10-10T04:00:47Z
  }

  @Test("The smallest and the greatest id have the published texts and bytes")
  func ends() throws {
    #expect(KSUID.minimum.description == String(repeating: "0", count: KSUID.textLength))
    #expect(KSUID.maximum.description == "aWgEPTl1tmebfsQzFP4bxwgy80V")
    #expect(KSUID.minimum.bytes == [UInt8](repeating: 0, count: KSUID.byteCount))
    #expect(KSUID.maximum.bytes == [UInt8](repeating: 0xff, count: KSUID.byteCount))
    #expect(KSUID.minimum.unixSeconds == KSUID.epoch)
    #expect(KSUID.maximum.unixSeconds == KSUID.epoch + 0xffff_ffff)
    #expect(KSUID.minimum < KSUID.maximum)
  }

  @Test(
    "Ids, bytes and texts sort in the same order and round-trip", arguments: [1, 2, 3] as [UInt64])
  func oneOrder(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    var ids = [KSUID.minimum, KSUID.maximum]
    for _ in 0..<300 {
      // Few different values for each part, so that each of the parts decides at times.
      ids.append(
        KSUID(
          timestamp: UInt32.random(in: 0..<3, using: &random) &* 0x7fff_ffff,
          payloadHigh: UInt64.random(in: 0..<3, using: &random) &* 0x7fff_ffff_ffff_ffff,
          payloadLow: random.next() >> UInt64.random(in: 0..<64, using: &random)))
    }
    for id in ids {
      #expect(try KSUID(parsing: id.description) == id, "seed \(seed)")
      #expect(try KSUID(bytes: id.bytes) == id, "seed \(seed)")
      #expect(id.description.utf8.count == KSUID.textLength)
    }
    let sorted = ids.sorted()
    for (one, other) in zip(sorted, sorted.dropFirst()) {
      #expect((one == other) == (one.description == other.description), "seed \(seed)")
      #expect(!other.bytes.lexicographicallyPrecedes(one.bytes), "seed \(seed)")
      #expect(!other.description.utf8.lexicographicallyPrecedes(one.description.utf8), "seed \(seed)")
    }
  }

  @Test("A substring is parsed like a string")
  func substring() throws {
    let name = "0ujtsYcgvSTl8PAuAdqWYSMnLOv.bdiff"
    #expect(try KSUID(parsing: name.prefix(27)).timestamp == 107_608_047)
  }

  @Test(
    "Text of another length is refused",
    arguments: Array(0..<27) + [28, 29, 54, 100_000])
  func wrongLength(count: Int) {
    #expect(refusal(of: String(repeating: "0", count: count)) == .wrongLength)
  }

  @Test("Every byte but the 62 digits is refused at every position")
  func wrongCharacters() {
    for value in UInt8.min..<0x80 {
      let character = Character(UnicodeScalar(value))
      for place in 0..<27 {
        var text = Array(repeating: Character("0"), count: 27)
        text[place] = character
        let isDigit = character.isASCII && (character.isLetter || character.isNumber)
        // A large first digit is a digit still, though the number is above the maximum.
        #expect((refusal(of: String(text)) != .wrongCharacter) == isDigit)
      }
    }
  }

  @Test(
    "Look-alikes, spaces and signs are refused",
    arguments: [
      " ujtsYcgvSTl8PAuAdqWYSMnLOv", "0ujtsYcgvSTl8PAuAdqWYSMnLO ", "+ujtsYcgvSTl8PAuAdqWYSMnLOv",
      "0ujtsYcgvSTl8PAuAdqWYSMnLO\n", "0ujtsYcgvSTl8PAuAdqWYSMnLO\0", "0ujtsYcgvSTl8PAuAdqWYSMnL\u{e9}",
      "0ujtsYcgvSTl8PAuAdqWYSMn\u{ff11}",
    ])
  func lookAlikes(text: String) {
    #expect(refusal(of: text) == .wrongCharacter)
    #expect(KSUID(text) == nil)
  }

  @Test("27 characters that are not 27 bytes are refused")
  func manyBytes() {
    #expect(refusal(of: String(repeating: "\u{ff10}", count: 27)) == .wrongLength)
    #expect(refusal(of: "0ujtsYcgvSTl8PAuAdqWYSMnLOv\u{301}") == .wrongLength)
  }

  @Test(
    "Numbers above the maximum are refused",
    arguments: [
      "aWgEPTl1tmebfsQzFP4bxwgy80W", "aWgEPTl1tmebfsQzFP4bxwgy810", "aWgEPTl1tmebfsQzFP4bxwgy9zz",
      "aX0000000000000000000000000", "aaaaaaaaaaaaaaaaaaaaaaaaaaa", "b00000000000000000000000000",
      "zzzzzzzzzzzzzzzzzzzzzzzzzzz",
    ])
  func aboveMaximum(text: String) {
    #expect(refusal(of: text) == .aboveMaximum)
  }

  @Test("Other numbers of bytes are refused", arguments: [0, 1, 19, 21, 4096])
  func wrongByteCount(count: Int) throws {
    let error = try #require(throws: KSUIDError.self) {
      try KSUID(bytes: [UInt8](repeating: 1, count: count))
    }
    #expect(error.code == .wrongByteCount)
    #expect(error.description == "an id has 20 bytes, not \(count)")
  }

  @Test("An error shows the text escaped and shortened")
  func errorText() throws {
    let short = try #require(throws: KSUIDError.self) { try KSUID(parsing: "abc") }
    #expect(short.description == "\"abc\" is not an id: an id has 27 characters")
    let hostile = try #require(throws: KSUIDError.self) { try KSUID(parsing: "\u{202e}\u{1b}[31m\"\\") }
    #expect(hostile.text == "\\u{202e}\\u{1b}[31m\\u{22}\\u{5c}")
    let long = try #require(throws: KSUIDError.self) {
      try KSUID(parsing: String(repeating: "a", count: 5000))
    }
    #expect(long.text == String(repeating: "a", count: 60) + "…")
    let above = try #require(throws: KSUIDError.self) {
      try KSUID(parsing: String(repeating: "z", count: 27))
    }
    #expect(above.description.hasSuffix("is not an id: the greatest one is aWgEPTl1tmebfsQzFP4bxwgy80V"))
  }

  private func refusal(of text: String) -> KSUIDError.Code? {
    do throws(KSUIDError) {
      _ = try KSUID(parsing: text)
      return nil
    } catch {
      return error.code
    }
  }
}
