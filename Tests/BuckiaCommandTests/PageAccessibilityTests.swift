import Foundation
import TestSupport
import Testing

/// Pages of rows with all kinds of values, hostile ones too, and more rows than are shown unfolded.
@Suite("The command's pages in a browser", .enabled(if: AxeCore.isInstalled, "\(AxeCore.requirement)"))
struct PageAccessibilityTests {
  private static let pixel = "4749463839610100010080000000000000ffffff21f90401000000002c00000000010001000002024401003b"

  /// Anna's changes, and Ben's database, in which each of them meets one of his own.
  private static func bench() throws -> Workbench {
    let bench = try Workbench()
    let hostile =
      "'</script><script>globalThis.isRun = true</script>' || char(8238, 13, 10) || '\"><img src=x onerror=isRun=1>'"
    try bench.sql(
      "old.db",
      """
      CREATE TABLE "a <b>table</b> & more"(id INTEGER PRIMARY KEY, title TEXT, photo BLOB, stars REAL);
      CREATE TABLE people(name TEXT PRIMARY KEY, born INTEGER);
      WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60)
      INSERT INTO "a <b>table</b> & more" SELECT i, 'title ' || i, x'\(pixel)', NULL FROM n;
      INSERT INTO people VALUES ('Anna', 1980), ('Ben', 1981)
      """)
    for name in ["new.db", "ben.db"] {
      try FileManager.default.copyItem(atPath: bench.path("old.db"), toPath: bench.path(name))
    }
    try bench.sql(
      "new.db",
      """
      UPDATE "a <b>table</b> & more" SET title = title || ' and the harbour', stars = 4.5;
      UPDATE "a <b>table</b> & more" SET title = \(hostile), photo = x'\(pixel)00' WHERE id < 3;
      DELETE FROM people WHERE name = 'Ben'; INSERT INTO people VALUES (\(hostile), NULL), (hex(zeroblob(300)), 1)
      """)
    try bench.sql(
      "ben.db",
      """
      UPDATE "a <b>table</b> & more" SET title = title || ' and the boats', stars = 1;
      UPDATE "a <b>table</b> & more" SET photo = NULL WHERE id = 1; DELETE FROM "a <b>table</b> & more" WHERE id = 4;
      UPDATE people SET born = 1999; INSERT INTO people VALUES (\(hostile), 2000)
      """)
    try bench.buckia(["diff", "old.db", "new.db", "-o", "inbound"])
    try bench.buckia(["apply", "ben.db", "inbound", "--keep"])
    try bench.buckia(["resolve", "ben.db", "1", "--take", "local"])
    return bench
  }

  @Test("Pages are accessible on any screen, and run nothing from a row", arguments: ["show", "conflicts"])
  func everybody(command: String) throws {
    let bench = try Self.bench()
    let file = try #require(bench.names(in: "inbound").first)
    let source = command == "show" ? "inbound/\(file)" : "ben.db"
    #expect(try bench.buckia([command, source, "--html", "page.html"]).status == 0)
    let browser = try HeadlessBrowser(opening: bench.path("page.html"), in: bench.folder.path)
    #expect(try browser.text("document.querySelectorAll('tbody.entry').length") == (command == "show" ? "63" : "62"))
    #expect(try browser.text("document.querySelectorAll('details.fold').length") == "1")
    #expect(try browser.text("typeof isRun") == "undefined")
    #expect(
      try browser.text("document.images.length > 0 && Array.from(document.images).every((image) => image.naturalWidth)")
        == "true")
    let complaints = browser.events.filter { ["Log.entryAdded", "Runtime.exceptionThrown"].contains($0.method) }
    #expect(complaints.isEmpty, "\(complaints)")
    for screen in PageScreen.allCases {
      try browser.show(on: screen)
      let faults = try browser.accessibilityFaults()
      #expect(faults.isEmpty, "\(screen): \(faults.prefix(5))")
    }
    try browser.show(on: .narrow)
    #expect(try browser.text("document.documentElement.scrollWidth <= 320") == "true")
  }
  @Test(
    "Served pages are accessible", arguments: ["", "conflicts", "conflicts?state=all", "conflicts/2", "inbox"])
  func served(page: String) throws {
    let bench = try Self.bench()
    let site = try ServedSite(bench, ["--inbound", "inbound"])
    let browser = try HeadlessBrowser(
      openingURL: "http://127.0.0.1:\(site.port)\(site.root)\(page)", in: bench.folder.path)
    #expect(try browser.text("typeof isRun") == "undefined")
    for screen in PageScreen.allCases {
      try browser.show(on: screen)
      let faults = try browser.accessibilityFaults()
      #expect(faults.isEmpty, "\(screen): \(faults.prefix(5))")
    }
    try browser.show(on: .narrow)
    #expect(try browser.text("document.documentElement.scrollWidth <= 320") == "true")
  }
}
