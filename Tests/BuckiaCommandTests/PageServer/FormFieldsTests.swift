@testable import BuckiaCommand
import TestSupport
import Testing

@Suite("The fields of a form")
struct FormFieldsTests {
  private static func parsed(_ text: String) -> [FormFields.Field]? { FormFields(parsing: text.utf8)?.fields }

  @Test("Names and values are read in their order, in any encoding")
  func reading() throws {
    let fields = try #require(FormFields(parsing: "a=1&b=&c&a=2&d=x+y%20z%C3%A9&e=1=2".utf8))
    #expect(fields.fields.map(\.name) == ["a", "b", "c", "a", "d", "e"])
    #expect(fields.fields.map(\.value) == ["1", "", "", "2", "x y zé", "1=2"])
    #expect(fields["a"] == "1")
    #expect(fields["f"] == nil)
    #expect(Self.parsed("")?.isEmpty == true)
    #expect(Self.parsed("&&")?.isEmpty == true)
  }

  @Test("Bytes that are no text are refused", arguments: ["a=%", "a=%4", "a=%zz", "a=%FF", "%C3=1", "a=%ED%A0%80"])
  func notText(text: String) { #expect(Self.parsed(text) == nil) }

  @Test("Encoded fields are plain ASCII, and decode to the same text")
  func writing() throws {
    let hostile = ["", "a b", "a+b&c=d%", "\"><script>", "\r\n\0\u{202E}é👩‍👩‍👧", "/../#?"]
    let fields = FormFields(hostile.enumerated().map { (name: $1, value: hostile[hostile.count - 1 - $0]) })
    let plain = Set("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-._%&=".utf8)
    #expect(fields.encoded.utf8.allSatisfy(plain.contains))
    #expect(FormFields(parsing: fields.encoded.utf8) == fields)
  }

  @Test("Any text survives encoding and decoding", arguments: Seeds.shards)
  func anyText(shard: Int) throws {
    try Seeds.tryEach(200, shard: shard) { seed in
      var generator = SeededGenerator(seed: seed)
      var text = ""
      for _ in 0..<Int.random(in: 0...20, using: &generator) {
        let scalar = Unicode.Scalar(UInt32.random(in: 0...0x10FFFF, using: &generator)) ?? " "
        text.unicodeScalars.append(scalar)
      }
      let fields = FormFields([(name: text, value: text)])
      let read = try #require(FormFields(parsing: fields.encoded.utf8))
      #expect(read.fields.first?.value.utf8.elementsEqual(text.utf8) == true, "\(seed)")
    }
  }
}
