import Foundation
import TestSupport
import Testing

@Suite("Inbound files on the pages of buckia serve")
struct ServeInboxTests {
  @Test("A file is shown, tried, applied and removed")
  func story() throws {
    let site = try ServedSite(ServedDatabases.apart(), ["--inbound", "inbound"])
    let name = try #require(site.bench.names(in: "inbound").first)
    #expect(try site.page().link("Look at 1 file in inbound").hasPrefix(site.root + "inbox"))
    let inbox = try site.page("inbox")
    let entry = try inbox.entry(name)
    #expect(entry.text.hasPrefix("\n#1 ! new \(name)"))
    let changes = try site.page(at: inbox.link("Look at its changes"))
    #expect(changes.root.all(class: "entry").count == 6)
    #expect(changes.root.all("td").contains { $0.text == "'</script>Anna'" })
    let tried = try site.press("Dry run", in: changes.root)
    #expect(tried.isGood)
    #expect(tried.message.first == "This was a dry run: nothing was changed.")
    #expect(
      tried.message.contains { $0.hasPrefix("\(name): would be applied, rows: 1 updated; 5 conflicts.") },
      "\(tried.message)")
    #expect(try site.bench.sql("ben.db", "SELECT title FROM notes WHERE id = 4") == ["d"])
    let applied = try site.press("Apply it", in: tried.entry(name))
    #expect(
      applied.isGood
        && applied.message == [
          "\(name): applied, rows: 1 updated; 5 conflicts.", "Look at the conflicts",
        ], "\(applied.message)")
    #expect(try site.bench.sql("ben.db", "SELECT title FROM notes WHERE id = 4") == ["</script>Anna"])
    #expect(try applied.entry(name).text.contains("✓ applied"))
    let all = try site.press("Apply everything in inbound", in: applied.root)
    #expect(all.isGood && all.message == ["1 file had been applied before."], "\(all.message)")
    #expect(try site.bench.names(in: "inbound") == [])
    #expect(all.root.text.contains("There is nothing in it to apply."))
    #expect(try site.page().entry("applied").all("a").contains { $0.text == "5 conflicts" })
  }

  @Test("Policies for tables and ignored columns work as for buckia apply")
  func policies() throws {
    let site = try ServedSite(
      ServedDatabases.apart(),
      ["--inbound", "inbound", "--on-conflict", "notes=take-incoming", "--ignore", "tags.n"])
    let name = try #require(site.bench.names(in: "inbound").first)
    #expect(try site.press("Apply it", in: site.page("inbox").entry(name)).isGood)
    #expect(
      try site.bench.sql("ben.db", "SELECT DISTINCT title FROM notes") == ["</script>Anna"])
    #expect(try site.bench.sql("ben.db", "SELECT n FROM tags") == ["20", "20"])
    #expect(try !site.bench.buckia(["conflicts", "ben.db"]).output.contains("tags"))
    #expect(try site.bench.buckia(["serve", "ben.db", "--on-conflict", "notes=newest"]).status == 64)
  }

  @Test("A refused file stays with its reason, until it is set aside")
  func refused() throws {
    let bench = try ServedDatabases.apart()
    let name = try #require(bench.names(in: "inbound").first)
    var bytes = try fileBytes(bench.path("inbound/\(name)"))
    bytes[bytes.count / 2] ^= 1
    try Data(bytes).write(to: URL(fileURLWithPath: bench.path("inbound/\(name)")))
    let site = try ServedSite(bench, ["--inbound", "inbound"])
    let page = try site.press("Apply it", in: site.page("inbox").entry(name))
    #expect(!page.isGood && page.message.first?.hasPrefix("\(name): rejected. ") == true, "\(page.message)")
    let entry = try page.entry(name)
    #expect(entry.text.contains("✗ rejected"))
    #expect(entry.all("p").first?.text.isEmpty == false)
    #expect(try site.page().entry("rejected").all("p").first?.text == entry.all("p").first?.text)
    let shown = try site.page(at: page.link("Look at its changes"))
    #expect(shown.status == 500 && !shown.message.isEmpty)
    let aside = try site.press("Set it aside", in: entry)
    #expect(aside.isGood && aside.root.text.contains("There is nothing in it to apply."))
    #expect(try bench.names(in: "inbound/set-aside") == [name])
    #expect(try fileBytes(bench.path("inbound/set-aside/\(name)")) == bytes)
    let gone = try site.press("Apply it", in: page.entry(name))
    #expect(!gone.isGood && gone.message == ["\(name) is not in inbound any more. Nothing was changed."])
  }

  @Test("With --keep files stay, and --on-conflict sets the policy")
  func options() throws {
    let site = try ServedSite(
      ServedDatabases.apart(), ["--inbound", "inbound", "--keep", "--on-conflict", "take-incoming"])
    #expect(try site.press("Apply everything in inbound", in: site.page("inbox").root).isGood)
    #expect(try site.bench.names(in: "inbound").count == 1)
    #expect(try site.bench.sql("ben.db", "SELECT DISTINCT title FROM notes") == ["</script>Anna"])
  }

  @Test("A file that Ben himself has made stays in the folder, whichever button is pressed")
  func outbox() throws {
    let bench = try ServedDatabases.inConflict()
    #expect(try bench.buckia(["diff", "old.db", "ben.db", "-o", "outbox"]).status == 0)
    let name = try #require(bench.names(in: "outbox").first)
    let site = try ServedSite(bench, ["--inbound", "outbox"])
    _ = try site.press("Apply it", in: site.page("inbox").entry(name))
    _ = try site.press("Apply everything in outbox", in: site.page("inbox").root)
    #expect(try bench.names(in: "outbox") == [name])
  }

  @Test(
    "A file encrypted for Ben is shown and applied with his keys; without them it stays, with the reason")
  func encrypted() throws {
    let bench = try ServedDatabases.apart()
    #expect(try bench.buckia(["identity", "new", "--name", "Ben", "--home", "ben"]).status == 0)
    let card = try bench.buckia(["identity", "show", "--home", "ben"]).output
    try Data(card.utf8).write(to: URL(fileURLWithPath: bench.path("ben.card")))
    let plain = try #require(bench.names(in: "inbound").first)
    #expect(
      try bench.buckia(["encrypt", "inbound/\(plain)", "--to", "ben.card", "-o", "inbound/\(plain).age"]).status == 0)
    try FileManager.default.removeItem(atPath: bench.path("inbound/\(plain)"))
    let name = try #require(bench.names(in: "inbound").first)

    let stranger = try ServedSite(bench, ["--inbound", "inbound"])
    let locked = try stranger.page(at: stranger.page("inbox").link("Look at its changes"))
    #expect(locked.status == 500 && locked.message.first?.contains("encrypted") == true, "\(locked.message)")
    let refused = try stranger.press("Apply it", in: stranger.page("inbox").entry(name))
    #expect(!refused.isGood && refused.message.first?.contains(name) == true, "\(refused.message)")
    #expect(try bench.names(in: "inbound") == [name])

    let site = try ServedSite(bench, ["--inbound", "inbound", "--home", "ben"])
    let changes = try site.page(at: site.page("inbox").link("Look at its changes"))
    #expect(changes.root.all(class: "entry").count == 6)
    let applied = try site.press("Apply it", in: changes.root)
    #expect(
      applied.isGood && applied.message.first == "\(name): applied, rows: 1 updated; 5 conflicts.", "\(applied.message)"
    )
    #expect(try applied.entry(name).text.contains("✓ applied"))
    let all = try site.press("Apply everything in inbound", in: applied.root)
    #expect(all.isGood && all.message == ["1 file had been applied before."], "\(all.message)")
    #expect(try bench.names(in: "inbound") == [])
  }
}
