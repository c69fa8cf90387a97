import BuckiaStorage
import Testing

@Suite("Names of objects")
struct RemotePathTests {
  @Test(
    "A name that would leave its folder or act on a terminal is refused",
    arguments: [
      "", "/a", "a/", "a//b", ".", "..", "../a", "a/..", "a/../b", "a/./b", "a\0b", "a\nb", "a\u{1B}[31m", "a\u{7F}",
      "a\u{85}",
      String(repeating: "x", count: 1025),
    ])
  func refused(text: String) throws {
    let error = try #require(throws: StorageError.self) { try RemotePath(text) }
    #expect(error.code == .invalidName)
    #expect(!error.description.unicodeScalars.contains { $0.value < 0x20 })
  }

  @Test("Others are valid", arguments: ["a", "a/b", "...", "..a", "a..", "a b", "ä/ö", "照片/🐰", "a\\b", "%2e%2e", "-"])
  func taken(text: String) throws { #expect(try RemotePath(text).text == text) }

  @Test("Names are compared and ordered by their bytes")
  func bytes() throws {
    let (composed, decomposed) = (try RemotePath("\u{E9}"), try RemotePath("e\u{301}"))
    #expect(composed != decomposed)
    #expect(Set([composed, decomposed]).count == 2)
    #expect(
      try ["b", "a", "ab", "a/b", "B", "\u{E9}"].map { try RemotePath($0) }.sorted().map(\.text)
        == ["B", "a", "a/b", "ab", "b", "\u{E9}"])
  }

  @Test("A folder contains the paths below it, not those that merely start alike")
  func folders() throws {
    let folder = try RemotePath("anna/inbound")
    #expect(try RemotePath("anna/inbound/x").isIn(folder))
    #expect(try RemotePath("anna/inbound/x/y").relative(to: folder) == "x/y")
    #expect(try !RemotePath("anna/inbound2/x").isIn(folder))
    #expect(!folder.isIn(folder))
    // A slash followed by a combining mark is one character to Swift, and two to a storage.
    let marked = try RemotePath("a/\u{301}b")
    #expect(marked.segments.count == 2)
    #expect(marked.folder == (try RemotePath("a")))
  }
}
