import BuckiaBytes
import SQLiteSchemas
import Testing

@testable import BuckiaFormat
import TestSupport

@Suite struct JSONTests {
  @Test("Numbers with a fraction or an exponent are accepted in values that a person types")
  func realsThatAreTyped() throws {
    func read(_ text: String) throws -> JSONValue { try JSONParser.parse(Array(text.utf8), numbers: .all) }
    #expect(try read("[1.5,-2.5e-3,1E2,7,-0.0]") == [.real(1.5), .real(-0.0025), .real(100), 7, .real(-0.0)])
    for text in ["1.", ".5", "1e", "1e999", "-.5", "1.5.5", "1-.5", "--1.5", "+1.5", "1e+"] {
      #expect(throws: JSONError.self, "\(text)") { try read(text) }
    }
  }

  @Test(
    "Text that is not strict JSON is refused with the offset",
    arguments: [
      ("", .truncated, 0), ("{", .truncated, 1), ("[1,", .truncated, 3), ("\"a", .truncated, 2), ("tru", .truncated, 3),
      ("truth", .unexpectedCharacter, 3), ("nil", .unexpectedCharacter, 1), ("'a'", .unexpectedCharacter, 0),
      ("[1,]", .unexpectedCharacter, 3), ("{\"a\":1,}", .unexpectedCharacter, 7), ("{a:1}", .unexpectedCharacter, 1),
      ("{\"a\" 1}", .unexpectedCharacter, 5), ("[1 2]", .unexpectedCharacter, 3), ("-", .unexpectedCharacter, 1),
      ("+1", .unexpectedCharacter, 0), ("01", .notAnInteger, 0), ("-0", .notAnInteger, 0), ("1.0", .notAnInteger, 0),
      ("1e3", .notAnInteger, 0), ("[-1.5]", .notAnInteger, 1), ("NaN", .unexpectedCharacter, 0),
      ("9223372036854775808", .outOfRange, 0), ("-9223372036854775809", .outOfRange, 0),
      ("99999999999999999999999999", .outOfRange, 0), ("1 2", .trailingData, 2), ("{}{}", .trailingData, 2),
      ("\"\u{1}\"", .controlCharacter, 1), ("\"\n\"", .controlCharacter, 1), ("\"\\x\"", .badEscape, 1),
      ("\"\\u12g4\"", .badEscape, 5), ("\"\\ud800\"", .loneSurrogate, 1), ("\"\\ud800\\n\"", .loneSurrogate, 1),
      ("\"\\udc00\"", .loneSurrogate, 1), ("\"\\ud800\\ud800\"", .loneSurrogate, 1),
      ("{\"a\":1,\"a\":2}", .duplicateName, 7), ("{\"a\":1,\"\\u0061\":2}", .duplicateName, 7),
      ("\u{feff}{}", .byteOrderMark, 0), ("{} // comment", .trailingData, 3),
    ] as [(String, JSONError.Code, Int)])
  func malformed(text: String, code: JSONError.Code, offset: Int) {
    #expect(throws: JSONError(code, offset: offset)) { try JSONParser.parse(Array(text.utf8)) }
  }

  @Test(
    "Bytes that are not UTF-8 are refused",
    arguments: [
      [0x22, 0xff, 0x22], [0x22, 0xc0, 0x80, 0x22], [0x22, 0xed, 0xa0, 0x80, 0x22],
      [0x22, 0xf4, 0x90, 0x80, 0x80, 0x22],
      [0x22, 0xe2, 0x82, 0x22],
    ] as [[UInt8]])
  func invalidUTF8(bytes: [UInt8]) throws {
    let error = try #require(throws: JSONError.self) { try JSONParser.parse(bytes) }
    #expect(error.code == .notUTF8)
    #expect(error.offset == 1)
  }

  @Test(
    "The canonical form is read and written unchanged",
    arguments: [
      "null", "true", "false", "0", "-1", "9223372036854775807", "-9223372036854775808", "[]", "{}", "\"\"",
      "[1,[2,[3]],{\"a\":{\"b\":null}}]", "{\"b\":1,\"a\":2}",
      "\"a\\\"b\\\\c\\n\\r\\t\\b\\f\\u0000\\u001f/ü\u{1F600}\u{2028}\"",
    ])
  func canonicalForm(text: String) throws {
    let value = try JSONParser.parse(Array(text.utf8))
    #expect(value.text() == text)
    #expect(try JSONParser.parse(Array(value.prettyText().utf8)) == value)
  }

  @Test("Escapes and white space are understood")
  func escapesAndWhiteSpace() throws {
    let text = " { \"\\u00e9\\ud83d\\ude00\\/\" :\t[ 1 ,\n2 ]\r} "
    #expect(try JSONParser.parse(Array(text.utf8)) == ["é\u{1F600}/": [1, 2]])
  }

  @Test("Nesting is limited to sixteen levels")
  func nesting() throws {
    func nested(_ depth: Int) -> [UInt8] {
      [UInt8](repeating: 0x5b, count: depth) + [UInt8](repeating: 0x5d, count: depth)
    }
    #expect(throws: Never.self) { try JSONParser.parse(nested(16)) }
    #expect(throws: JSONError(.tooDeep, offset: 16)) { try JSONParser.parse(nested(17)) }
    #expect(throws: JSONError(.tooDeep, offset: 16)) { try JSONParser.parse([UInt8](repeating: 0x5b, count: 100_000)) }
  }

  @Test("The number of values in a document is limited")
  func tooManyValues() throws {
    func list(_ count: Int) -> [UInt8] { Array("[0\(String(repeating: ",0", count: count - 1))]".utf8) }
    #expect(throws: JSONError(.tooManyValues, offset: 2 * JSONValue.countLimit - 1)) {
      try JSONParser.parse(list(JSONValue.countLimit))
    }
    _ = try JSONParser.parse(list(JSONValue.countLimit - 1))
  }

  @Test("Two encodings of one accented letter are different names")
  func unnormalizedNames() throws {
    let value = try JSONParser.parse(Array("{\"\u{e9}\":1,\"e\u{301}\":2}".utf8))
    guard case .object(let object) = value else { return #expect(Bool(false)) }
    #expect(object["e\u{301}"] == 2)
  }

  @Test("Reals are written as numbers, or by name if not finite")
  func reals() {
    let value: JSONValue = [.real(0.5), .real(1e300), .real(-.infinity), .real(.nan)]
    #expect(value.text() == "[0.5,1e+300,{\"real\":\"-Infinity\"},{\"real\":\"NaN\"}]")
  }

  @Test("The pretty form has lines and indentation")
  func indentation() {
    let value: JSONValue = ["id": "a", "tables": [["name": "notes", "inserted": 2], ["name": "tags"]], "none": []]
    #expect(
      value.prettyText() == """
        {
          "id": "a",
          "tables": [
            {"name": "notes", "inserted": 2},
            {"name": "tags"}
          ],
          "none": []
        }
        """)
  }

  @Test("Random bytes cause at worst an error")
  func randomBytes() throws {
    let seed = UInt64.random(in: 0...UInt64.max)
    var generator = SeededGenerator(seed: seed)
    let letters = Array("{}[]\",:\\u0aed8 -1.tfn".utf8)
    for _ in 0..<3_000 {
      let count = Int.random(in: 0...30, using: &generator)
      let bytes = (0..<count).map { _ in letters.randomElement(using: &generator) ?? 0 }
      let value: JSONValue
      do throws(JSONError) { value = try JSONParser.parse(bytes) } catch { continue }
      #expect(try JSONParser.parse(value.bytes()) == value, "seed \(seed)")
    }
  }

  @Test("Printed documents cannot steer a terminal, and are equivalent")
  func controlCharacters() throws {
    let text = "\u{9b}31m\u{7f}\u{1b}[2J \u{202e}fdp é 日本 \u{e0041}\u{10ffff}"
    let value: JSONValue = ["a\u{85}": .string(text)]
    let line = value.lineText()
    #expect(
      line == #"{"a\u0085":"\u009b31m\u007f\u001b[2J \u202efdp é 日本 \udb40\udc41\udbff\udfff"}"#)
    #expect(value.prettyText().unicodeScalars.allSatisfy { EscapedText.isHarmless($0) || $0 == "\n" })
    #expect(try JSONParser.parse(Array(line.utf8)) == value)
    // The canonical form, which is hashed and signed, follows the format.
    #expect(value.text().unicodeScalars.contains("\u{9b}"))
  }
}
