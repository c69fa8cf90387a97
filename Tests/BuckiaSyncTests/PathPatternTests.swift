import Testing

@testable import BuckiaSync

@Suite("Patterns for paths")
struct PathPatternTests {
  @Test(
    "Wildcards match as documented",
    arguments: [
      ("*.mp4", "a.mp4", true), ("*.mp4", "x/y/a.mp4", true), ("*.mp4", "a.mp4.part", false), ("a?c", "abc", true),
      ("a?c", "aüc", true), ("a?c", "ac", false), ("x/*.mp4", "x/a.mp4", true), ("x/*.mp4", "x/y/a.mp4", false),
      ("x/**", "x/y/a.mp4", true), ("x/**", "y/x/a.mp4", false), ("**/x/*", "a/b/x/c", true), ("**/x/*", "x/c", true),
      ("/x", "x", false), ("*", "", true), ("a*b*c", "a--b--c", true), ("a*b*c", "a--b--", false), ("A", "a", false),
      ("[x]", "[x]", true), ("**", "a/b/c", true),
    ])
  func matches(pattern: String, path: String, expected: Bool) {
    #expect(PathPattern(pattern).matches(path) == expected)
  }

  @Test("A pattern with many possible matches takes no time")
  func manyWays() {
    let pattern = PathPattern(String(repeating: "*a", count: 50))
    #expect(!pattern.matches(String(repeating: "a", count: 2000) + "b"))
  }
}
