@testable import BuckiaCommand
import Foundation
import TestSupport
import Testing

@Suite(
  "A page in a browser", .serialized, .enabled(if: HeadlessBrowser.isInstalled, "\(HeadlessBrowser.requirement)"))
struct BrowserTests {
  private let folder: TemporaryFolder
  private let browser: HeadlessBrowser

  init() throws {
    folder = try TemporaryFolder()
    let entries = try (1...160).map { number in
      number == 3 ? try SamplePage.entryOfAllKinds(3) : SamplePage.entry(number, "'old \(number)'", "'new \(number)'")
    }
    let path = try folder.write(SamplePage.bytes(entries: entries), to: "page.html")
    browser = try HeadlessBrowser(opening: path, in: folder.path)
  }

  private func focused() throws -> String { try browser.text("document.activeElement.id") }

  @Test("The script runs under the page's policy; nothing else is loaded, and nothing is reported")
  func policy() throws {
    #expect(try browser.text("document.querySelectorAll('.scripted[hidden]').length") == "0")
    // What a value could do if it became markup.
    #expect(throws: HeadlessBrowser.Failure.self) {
      try browser.evaluate("document.body.insertAdjacentHTML('beforeend', '<img src=x>')")
    }
    #expect(try browser.text("document.querySelectorAll('img').length") == "1")
    #expect(try browser.text("document.querySelector('img').naturalWidth") == "1")
    let requests = browser.events.filter { $0.method == "Network.requestWillBeSent" }
      .compactMap { ($0.parameters["request"] as? [String: Any])?["url"] as? String }
    #expect(
      requests.allSatisfy { $0.hasPrefix("file:") && $0.hasSuffix("page.html") || $0.hasPrefix("data:image/gif;") })
  }

  @Test("Nothing is logged while a page is read and searched")
  func log() throws {
    try browser.type("x")
    let logged = browser.events.filter { ["Log.entryAdded", "Runtime.exceptionThrown"].contains($0.method) }
    #expect(logged.isEmpty, "\(logged)")
  }

  @Test("/ moves to the search, which hides entries that do not match and unfolds those that do")
  func search() throws {
    try browser.press("/", code: 191, text: "/")
    #expect(try focused() == "query")
    try browser.type("new 150")
    try browser.wait(for: "document.getElementById('status').textContent === '1 of 160 changes on this page match.'")
    #expect(try browser.text("document.querySelectorAll('tbody.entry:not([hidden])').length") == "1")
    #expect(try browser.text("document.getElementById('entry-150').checkVisibility()") == "true")
    try browser.press("Enter", code: 13, text: "\r")
    try browser.wait(for: "document.activeElement.id === 'entry-150'")
    _ = try browser.evaluate("document.getElementById('query').focus()")
    try browser.press("Escape", code: 27)
    try browser.wait(for: "document.querySelectorAll('tbody.entry[hidden]').length === 0")
    #expect(try browser.text("document.querySelectorAll('details.fold[open]').length") == "0")
    #expect(try browser.text("document.getElementById('query').value") == "")
  }

  @Test("The arrow keys move between entries, also into folds; the Tab key stops at one entry only")
  func arrows() throws {
    _ = try browser.evaluate("document.getElementById('entry-1').focus()")
    try browser.press("ArrowDown", code: 40)
    #expect(try focused() == "entry-2")
    try browser.press("ArrowUp", code: 38)
    try browser.press("ArrowUp", code: 38)
    #expect(try focused() == "entry-1")
    try browser.press("End", code: 35)
    #expect(try focused() == "entry-160")
    #expect(try browser.text("document.getElementById('entry-160').closest('details').open") == "true")
    #expect(try browser.text("document.querySelectorAll('a.jump[tabindex=\"0\"]').length") == "1")
    try browser.press("Home", code: 36)
    #expect(try focused() == "entry-1")
  }

  @Test("? shows the list of keys, and both keys can be turned off")
  func shortcuts() throws {
    try browser.press("?", code: 191, text: "?")
    #expect(try browser.text("document.getElementById('keys').open") == "true")
    _ = try browser.evaluate("document.getElementById('shortcuts').checked = false")
    try browser.press("?", code: 191, text: "?")
    try browser.press("/", code: 191, text: "/")
    #expect(try browser.text("document.getElementById('keys').open") == "true")
    #expect(try focused() != "query")
  }

  @Test("The focus is visible")
  func focusRing() throws {
    try browser.press("Tab", code: 9)
    #expect(try browser.text("document.activeElement.className") == "skip")
    #expect(try browser.text("document.activeElement.getBoundingClientRect().left >= 0") == "true")
    for _ in 0..<8 {
      try browser.press("Tab", code: 9)
      let width = try browser.text("getComputedStyle(document.activeElement).outlineWidth")
      let element = try browser.text("document.activeElement.outerHTML.slice(0, 80)")
      #expect(width == "3px", "\(element)")
    }
  }

  @Test(
    "axe-core finds no accessibility faults",
    .enabled(if: AxeCore.isInstalled, "\(AxeCore.requirement)"), arguments: PageScreen.allCases)
  func accessibility(screen: PageScreen) throws {
    try browser.show(on: screen)
    let faults = try browser.accessibilityFaults()
    #expect(faults.isEmpty, "\(faults.prefix(5))")
  }

  @Test("axe-core finds introduced faults", .enabled(if: AxeCore.isInstalled, "\(AxeCore.requirement)"))
  func accessibilityFaults() throws {
    _ = try browser.evaluate(
      """
      document.querySelector("img").removeAttribute("alt");
      for (const row of document.querySelectorAll("#entry-150, h1")) row.style.color = "#ccc";
      """)
    let faults = try browser.accessibilityFaults()
    #expect(faults.map { $0.prefix { $0 != ":" } } == ["color-contrast", "color-contrast", "image-alt"], "\(faults)")
  }

  @Test("The page is dark if the screen is, and never on paper", arguments: PageScreen.allCases)
  func background(screen: PageScreen) throws {
    try browser.show(on: screen)
    let background = try browser.text("getComputedStyle(document.body).backgroundColor")
    #expect(background == (screen == .dark ? "rgb(15, 19, 24)" : "rgb(255, 255, 255)"))
  }

  @Test("On paper nothing is folded, and parts for the screen only are left out")
  func paper() throws {
    _ = try browser.evaluate("dispatchEvent(new Event('beforeprint'))")
    #expect(try browser.text("document.querySelectorAll('details.fold:not([open])').length") == "0")
    _ = try browser.evaluate("dispatchEvent(new Event('afterprint'))")
    #expect(try browser.text("document.querySelectorAll('details.fold[open]').length") == "0")
    try browser.emulate(media: "print", colorScheme: "light")
    #expect(try browser.text("document.querySelector('.tools').checkVisibility()") == "false")
  }

  @Test("A narrow screen needs no horizontal scrolling, and tables keep their roles for screen readers")
  func narrow() throws {
    func roles() throws -> [String: Int] {
      let nodes = try browser.send("Accessibility.getFullAXTree")["nodes"] as? [[String: Any]] ?? []
      let roles = nodes.compactMap { ($0["role"] as? [String: Any])?["value"] as? String }
      return Dictionary(roles.map { ($0, 1) }, uniquingKeysWith: +)
        .filter { ["table", "row", "cell", "rowheader"].contains($0.key) }
    }
    let wide = try roles()
    try browser.show(on: .narrow)
    #expect(try browser.text("document.documentElement.scrollWidth <= 320") == "true")
    #expect(try roles() == wide)
    #expect(wide["cell"] ?? 0 >= 50 && wide["rowheader"] ?? 0 >= 25)
    // The name of a column is above its values, which can use the whole width.
    let cells = "Array.from(document.querySelectorAll('.entries td'), (cell) => cell.getBoundingClientRect())"
    #expect(try browser.text("\(cells).slice(0, 2).every(({ width }) => width > 120)") == "true")
    let names = "Array.from(document.querySelectorAll('.contents tbody th'), (name) => name.getBoundingClientRect())"
    #expect(try browser.text("\(names).every(({ width }) => width > 120)") == "true")
  }

  @Test("The headings of the versions are visible anywhere in a table", arguments: [PageScreen.light, .narrow])
  func headings(screen: PageScreen) throws {
    try browser.show(on: screen)
    _ = try browser.evaluate("document.getElementById('entry-15').focus()")
    let isInSight = try browser.text(
      """
      (() => {
        const edges = (selector) => document.querySelector(selector).getBoundingClientRect();
        const heading = edges(".entries thead th:last-child");
        return heading.top >= 0 && heading.bottom <= edges("#entry-15").top;
      })()
      """)
    #expect(isInSight == "true")
  }
}
