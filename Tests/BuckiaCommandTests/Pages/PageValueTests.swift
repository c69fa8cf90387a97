@testable import BuckiaCommand
import Foundation
import SQLiteSchemas
import TestSupport
import Testing

@Suite("Values on a page")
struct PageValueTests {
  private func cells(of entry: PageEntry) throws -> [ParsedPage.Element] {
    try ParsedPage(SamplePage.bytes(entries: [entry])).root.all(class: "entries")[0].all("td")
  }

  @Test("The difference between two texts is marked in both")
  func marks() throws {
    let found = try cells(of: SamplePage.entry(1, "'the old bell'", "'the new bell'"))
    #expect(found.map { $0.all("mark").map(\.text) } == [["old"], ["new"]])
    #expect(found.map(\.text) == ["'the old bell'", "'the new bell'"])
  }

  @Test(
    "Nothing is marked where everything differs, or nothing",
    arguments: [("one", "two"), ("'b'", "'B'"), ("same", "same"), ("", ""), ("", "a")])
  func noMarks(before: String, after: String) throws {
    let found = try cells(of: SamplePage.entry(1, before, after))
    #expect(found.flatMap { $0.all("mark") }.isEmpty)
    #expect(found.map(\.text) == [before, after])
  }

  @Test(
    "Several differences are marked separately, unless the text between them matches by chance",
    arguments: [
      ("'one two three four'", "'one 2 three 4'", ["two", "four"], ["2", "4"]),
      ("'the fox'", "'the old fox'", [], ["old "]),
      ("'a - b'", "'c - d'", [], []),
      ("'caf\u{E9} one two'", "'cafe\u{301} one 2'", ["\u{E9}", "two"], ["e\u{301}", "2"]),
    ])
  func words(before: String, after: String, inBefore: [String], inAfter: [String]) throws {
    let found = try cells(of: SamplePage.entry(1, before, after))
    #expect(found.map { $0.all("mark").map(\.text) } == [inBefore, inAfter])
    #expect(found.map { Array($0.text.utf8) } == [before, after].map { Array($0.utf8) })
  }

  @Test("Text shown for only one value, because both are cut, is not marked as different")
  func cutTexts() throws {
    let texts = ["'The boats lay in two rows along the qu…'", "'The boats lay in three rows along the …'"]
    func marks(_ texts: [String], areCut: Bool) throws -> [[String]] {
      let values = texts.map { text in
        var value = PageValue(.text, text)
        if areCut { value.note = "984 bytes" }
        return value
      }
      let entry = PageEntry(number: 1, state: .updated, label: "updated", key: "id 1", rows: [("text", values)])
      return try cells(of: entry).map { $0.all("mark").map(\.text) }
    }
    #expect(try marks(texts, areCut: true) == [["wo"], ["hree"]])
    #expect(try marks(texts, areCut: false) == [["wo", "qu"], ["hree"]])
    // The positions of these texts are unknown.
    #expect(try marks(["'…lay in two rows'", "'The boats lay'"], areCut: true) == [[], []])
  }

  @Test("In long texts with many differences, one range is marked")
  func longTexts() throws {
    let texts = [1, 2].map { factor in "'same \((1...400).map { "\($0 * factor)" }.joined(separator: " ")) same'" }
    let found = try cells(of: SamplePage.entry(1, texts[0], texts[1]))
    #expect(found.map { $0.all("mark").count } == [1, 1])
    #expect(found.map(\.text) == texts)
  }

  @Test("Characters are marked whole")
  func wholeCharacters() throws {
    let found = try cells(of: SamplePage.entry(1, "ae\u{301}z", "ae\u{300}z"))
    #expect(
      found.map { Array($0.all("mark").first?.text.unicodeScalars ?? "".unicodeScalars) } == [
        ["e", "\u{301}"], ["e", "\u{300}"],
      ])
    let flags = try cells(of: SamplePage.entry(1, "x🇩🇪y", "x🇩🇰y"))
    #expect(flags.map { $0.all("mark").map(\.text) } == [["🇩🇪"], ["🇩🇰"]])
  }

  @Test("Any two texts are shown unchanged, marked or not", arguments: Seeds.shards)
  func anyMarks(shard: Int) throws {
    try Seeds.tryEach(200, shard: shard) { seed in
      var generator = SeededGenerator(seed: seed)
      let letters = ["a", "b", "e\u{301}", "é", "👩‍👧", "\u{301}", "\r\n"]
      func any() -> String {
        (0..<Int.random(in: 0...6, using: &generator)).map { _ in generator.pick(letters) }.joined()
      }
      let texts = [any(), any()]
      let found = try cells(of: SamplePage.entry(1, texts[0], texts[1]))
      for (cell, text) in zip(found, texts) {
        #expect(Array(cell.text.utf8) == Array(text.escaped.utf8), "\(Seeds.replay(seed))")
      }
    }
  }

  @Test("Images are shown with a description, and large ones are only named")
  func images() throws {
    let root = try ParsedPage(SamplePage.bytes(entries: [SamplePage.entryOfAllKinds(1)])).root
    let images = root.all("img")
    #expect(images.count == 1)
    let image = try #require(images.first)
    #expect(image.attributes["alt"] == "GIF image, 1 × 1, 35 bytes")
    #expect(image.attributes["width"] == "1" && image.attributes["height"] == "1")
    let source = try #require(image.attributes["src"])
    #expect(source.hasPrefix("data:image/gif;base64,"))
    #expect(Data(base64Encoded: String(source.dropFirst(22))) == Data(SamplePage.pixel))
    #expect(root.all("td").contains { $0.text.contains("JPEG image, 4000 × 3000, 9.00 MB, too large for this page") })
  }

  @Test("The size of a shortened value is shown")
  func sizes() throws {
    let found = try cells(of: SamplePage.entryOfAllKinds(1))
    #expect(found.contains { $0.text == "'aaa…' (12.0 kB)" })
  }
}
