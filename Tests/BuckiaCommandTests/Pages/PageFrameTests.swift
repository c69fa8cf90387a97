@testable import BuckiaCommand
import Crypto
import Foundation
import TestSupport
import Testing

@Suite("The frame of a page")
struct PageFrameTests {
  private static func sample() throws -> [UInt8] {
    let entries = try (1...300).map { $0 % 50 == 0 ? try SamplePage.entryOfAllKinds($0) : SamplePage.entry($0) }
    return try SamplePage.bytes(entries: entries)
  }

  @Test("The page is well-formed, loads nothing, and is accessible by ear and by keyboard")
  func faults() throws {
    #expect(try ParsedPage(Self.sample()).faults == [])
  }

  @Test("Its policy allows its own script and style by hash, images in the page, and nothing else")
  func policy() throws {
    let text = String(decoding: try Self.sample(), as: UTF8.self)
    func hash(_ element: String) throws -> String {
      let start = try #require(text.firstRange(of: "<\(element)>")).upperBound
      let end = try #require(text[start...].firstRange(of: "</\(element)>")).lowerBound
      return Data(SHA256.hash(data: Data(text[start..<end].utf8))).base64EncodedString()
    }
    let metas = try ParsedPage(Self.sample()).root.all("meta")
    let policies = metas.filter { $0.attributes["http-equiv"] == "Content-Security-Policy" }
    #expect(policies.count == 1)
    let expected = [
      "default-src 'none'", "script-src 'sha256-\(try hash("script"))'", "style-src 'sha256-\(try hash("style"))'",
      "img-src data:", "base-uri 'none'", "form-action 'none'", "require-trusted-types-for 'script'",
      "trusted-types 'none'",
    ]
    #expect(policies.first?.attributes["content"] == expected.joined(separator: "; "))
    // The policy only applies to what follows it.
    let head = try #require(try ParsedPage(Self.sample()).root.children.first)
    #expect(
      head.children.prefix(2).map { $0.attributes["charset"] ?? $0.attributes["http-equiv"] } == [
        "utf-8", "Content-Security-Policy",
      ])
  }

  @Test("Style and script load nothing, and the script creates no markup from text")
  func ownTexts() {
    for word in ["@import", "url(", "http:", "https:", "expression("] { #expect(!PageStyle.text.contains(word)) }
    for word in [
      "http:", "https:", "fetch", "XMLHttpRequest", "import(", "eval", "Function(", "innerHTML", "outerHTML",
      "insertAdjacentHTML", "document.write", "createElement", "localStorage", "cookie",
    ] {
      #expect(!PageScript.text.contains(word), "\(word)")
    }
    for text in [PageStyle.text, PageScript.text] { #expect(!text.contains("</")) }
  }

  @Test("Controls that need the script are hidden without it")
  func withoutScript() throws {
    let scripted = try ParsedPage(Self.sample()).root.all(class: "scripted")
    #expect(scripted.count == 2)
    #expect(scripted.allSatisfy { $0.attributes["hidden"] == "hidden" })
  }

  @Test("The Tab key stops at one entry, from which the others are reached")
  func tabStops() throws {
    let jumps = try ParsedPage(Self.sample()).root.all(class: "jump")
    #expect(jumps.map { $0.attributes["tabindex"] } == ["0"] + Array(repeating: "-1", count: 299))
  }

  @Test("Long tables are folded after their first rows, in parts")
  func folds() throws {
    let root = try ParsedPage(Self.sample()).root
    let lists = root.all(class: "entries").map { $0.all("tbody").count }
    #expect(lists == [25, 100, 100, 75])
    let folds = root.all(class: "fold")
    #expect(folds.map { $0.all("summary").first?.text } == ["From #26 on", "From #126 on", "From #226 on"])
    #expect(folds.allSatisfy { $0.attributes["open"] == nil && $0.all("table").count == 1 })
    for count in [1, 25, 26, 125, 126] {
      let root = try ParsedPage(SamplePage.bytes(entries: (1...count).map { SamplePage.entry($0) })).root
      #expect(root.all(class: "entries").reduce(0) { $0 + $1.all("tbody").count } == count)
      #expect(root.all(class: "entries").allSatisfy { !$0.all("tbody").isEmpty })
    }
  }
}
