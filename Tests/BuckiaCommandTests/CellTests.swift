import BuckiaFormat
import SQLiteChangesets
import Testing

@testable import BuckiaCommand

@Suite("Values of cells")
struct CellTests {
  @Test(
    "JSON keeps each value exactly",
    arguments: [
      (ChangesetValue.null, "null"),
      (.integer(7), "7"),
      (.integer(9_007_199_254_740_992), "9007199254740992"),
      (.integer(-9_007_199_254_740_992), "-9007199254740992"),
      (.integer(9_007_199_254_740_993), #"{"int":"9007199254740993"}"#),
      (.integer(.min), #"{"int":"-9223372036854775808"}"#),
      (.real(1.5), "1.5"),
      (.real(.infinity), #"{"real":"Infinity"}"#),
      (.real(-.infinity), #"{"real":"-Infinity"}"#),
      (.text("it's \"so\"\n"), #""it's \"so\"\n""#),
      (.blob([0, 255]), #"{"blob":"00ff"}"#),
      (.blob([]), #"{"blob":""}"#),
    ])
  func json(value: ChangesetValue, text: String) {
    #expect(value.json.text() == text)
  }

  @Test(
    "Text shows SQL, shortened where it is long, without terminal control characters",
    arguments: [
      (ChangesetValue.null, "NULL"),
      (.integer(-7), "-7"),
      (.real(0.1), "0.1"),
      (.text("a\u{1B}b"), #"'a\u{1B}b'"#),
      (.text("ship's bell"), "'ship''s bell'"),
      (.text(String(repeating: "x", count: 50)), "'\(String(repeating: "x", count: 40))…'"),
      (.blob([1, 2]), "x'0102'"),
      (.blob(Array(repeating: 9, count: 20)), "x'0909090909090909…' (20 bytes)"),
    ])
  func shown(value: ChangesetValue, text: String) {
    #expect(value.shown() == text)
  }
}
