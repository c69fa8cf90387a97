import Foundation
import TestSupport
import Testing

@Suite(
  "The pages of buckia serve in a browser", .serialized,
  .enabled(if: HeadlessBrowser.isInstalled, "\(HeadlessBrowser.requirement)"))
struct ServeBrowserTests {
  private let bench: Workbench
  private let site: ServedSite
  private let browser: HeadlessBrowser

  init() throws {
    bench = try ServedDatabases.inConflict()
    site = try ServedSite(bench)
    browser = try HeadlessBrowser(
      openingURL: "http://127.0.0.1:\(site.port)\(site.root)conflicts/1", in: bench.folder.path)
  }

  /// The browser's error messages.
  private var complaints: [String] {
    browser.events.compactMap { event in
      switch event.method {
      case "Log.entryAdded": "\(event.parameters["entry"] ?? "")"
      case "Runtime.exceptionThrown": "\(event.parameters)"
      default: nil
      }
    }
  }

  @Test("A typed value is taken, and the result is shown and read aloud")
  func decide() throws {
    _ = try browser.evaluate("document.getElementById('value-1').focus()")
    _ = try browser.evaluate("document.getElementById('value-1').select()")
    try browser.type("/ typed ?")
    #expect(try browser.text("document.activeElement.id") == "value-1")
    #expect(try browser.text("document.getElementById('as-1').value") == "text")
    _ = try browser.evaluate("document.querySelector('button[value=values]').click()")
    try browser.wait(for: "document.getElementById('message') !== null && document.readyState === 'complete'")
    #expect(
      try browser.text("document.getElementById('message').textContent").contains("#1 (notes, id = 1) is decided."))
    #expect(try browser.text("document.activeElement.id") == "message")
    #expect(try browser.text("location.search") == "")
    #expect(try bench.sql("ben.db", "SELECT title FROM notes WHERE id = 1") == ["/ typed ?"])
    #expect(complaints == [])
  }

  @Test("An untouched page reloads after a change; an edited page offers to, and keeps the typed text")
  func changes() throws {
    try browser.wait(for: "document.readyState === 'complete'")
    #expect(try bench.buckia(["resolve", "ben.db", "1", "--take", "local", "--by", "Eve"]).status == 0)
    try browser.wait(for: "document.getElementById('history') !== null")
    _ = try browser.evaluate("document.getElementById('value-1').focus()")
    try browser.type("half a sent")
    #expect(try bench.buckia(["resolve", "ben.db", "2", "--take", "local", "--by", "Eve"]).status == 0)
    try browser.wait(for: "!document.getElementById('reload').hidden")
    #expect(try browser.text("document.getElementById('news').textContent") == "Something has changed.")
    #expect(try browser.text("document.getElementById('value-1').value").contains("half a sent"))
    _ = try browser.evaluate("document.getElementById('reload').click()")
    try browser.wait(for: "document.readyState === 'complete' && document.getElementById('reload').hidden")
    #expect(complaints == [])
  }

  @Test("The page says when the command has ended")
  func ended() throws {
    try browser.wait(for: "document.readyState === 'complete'")
    #expect(site.command.interrupt() == SIGINT)
    try browser.wait(for: "document.getElementById('news').textContent.startsWith('The command')")
  }
}
