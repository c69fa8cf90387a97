@testable import SQLiteSchemas
import Testing

@Suite struct SQLTokensTests {
  @Test("Words, quoted names, text, blobs, numbers and comments are recognised")
  func kinds() {
    let sql = """
      SELECT "a""b", `c``d`, [e "f], 'it''s', x'0aF', 1.5e-3, .5, 0x1F+2, new.größe -- 'no
      /* "no */ <> ?1 :a $b
      """
    let tokens = SQLTokens(sql)
    let found = (0..<tokens.count).filter { tokens.tokens[$0].kind != .mark }.map {
      "\(tokens.tokens[$0].kind) \(tokens.text(at: $0))"
    }
    #expect(
      found == [
        "word SELECT", "name \"a\"\"b\"", "name `c``d`", "name [e \"f]", "text 'it''s'", "blob x'0aF'", "number 1.5e-3",
        "number .5", "number 0x1F", "number 2", "word new", "word größe", "parameter ?1", "parameter :a",
        "parameter $b",
      ])
    #expect(
      (0..<tokens.count).compactMap { tokens.name(at: $0) }.prefix(5) == ["SELECT", "a\"b", "c`d", "e \"f", "it's"])
  }

  static let broken = ["'a", "\"a", "`a", "[a", "x'0", "a \u{1} b", "a \0 b", "'a''", "\u{7f}"]

  @Test("An unterminated quote or an invalid byte is a broken token", arguments: broken)
  func isBroken(_ sql: String) { #expect(SQLTokens(sql).tokens.contains { $0.kind == .broken }) }

  @Test("Any bytes give tokens in order that do not overlap")
  func hostile() {
    let pieces: [[UInt8]] = [
      [], [0], [0x80, 0xff], Array("'".utf8), Array("\"".utf8), Array("[".utf8), Array("/*".utf8), Array("*/".utf8),
      Array("--".utf8), Array("\n".utf8), Array("x'".utf8), Array("1e".utf8), Array(".".utf8), Array("(".utf8),
      Array("Begin".utf8), Array(";".utf8), Array("0x".utf8), Array("e+".utf8),
    ]
    for first in pieces {
      for second in pieces {
        for third in pieces {
          let tokens = SQLTokens(first + second + third)
          var end = 0
          for index in 0..<tokens.count {
            let range = tokens.tokens[index].range
            #expect(range.lowerBound >= end && !range.isEmpty && range.upperBound <= tokens.bytes.count)
            end = range.upperBound
            _ = tokens.name(at: index)
            _ = tokens.closing(index)
          }
        }
      }
    }
  }
}
