import Foundation
import TestSupport
import Testing

@Suite("buckia conflicts --html")
struct ConflictsPageTests {
  /// Ben's database with five conflicts: notes 1 to 3 and both tags were changed by both people.
  private static func bench() throws -> Workbench {
    let bench = try Workbench()
    try bench.sql(
      "old.db",
      """
      CREATE TABLE notes(id INTEGER PRIMARY KEY, title TEXT, stars REAL); CREATE TABLE tags(name TEXT PRIMARY KEY, n);
      INSERT INTO notes VALUES (1, 'a', 1), (2, 'b', 2), (3, 'c', 3); INSERT INTO tags VALUES ('x', 1), ('y', 2)
      """)
    for name in ["new.db", "ben.db"] {
      try FileManager.default.copyItem(atPath: bench.path("old.db"), toPath: bench.path(name))
    }
    try bench.sql("new.db", "UPDATE notes SET title = '</script>Anna'; UPDATE tags SET n = 10")
    try bench.sql(
      "ben.db", "UPDATE notes SET title = 'Ben' WHERE id < 3; DELETE FROM notes WHERE id = 3; UPDATE tags SET n = 20")
    #expect(try bench.buckia(["diff", "old.db", "new.db", "-o", "inbound"]).status == 0)
    #expect(try bench.buckia(["apply", "ben.db", "inbound", "--keep"]).status == 0)
    #expect(try bench.buckia(["resolve", "ben.db", "1", "--take", "incoming", "--by", "Ben"]).status == 0)
    return bench
  }

  private func page(_ bench: Workbench, _ options: [String] = []) throws -> ParsedPage.Element {
    let outcome = try bench.buckia(["conflicts", "ben.db", "--html", "page.html", "--force"] + options)
    #expect(outcome.status == 0, "\(outcome.diagnostics)")
    let page = try ParsedPage(fileBytes(bench.path("page.html")))
    #expect(page.faults == [])
    return page.root
  }

  @Test("The page shows the three versions of each row side by side, table by table")
  func page() throws {
    let root = try page(Self.bench())
    #expect(root.all("h1").first?.text == "Conflicts of ben.db")
    #expect(root.all("h2").map(\.text) == ["Tables", "notes", "tags"])
    #expect(
      root.all(class: "contents")[0].all("th").map(\.text) == [
        "Table", "Changed here, too", "Not here", "In all", "notes", "tags",
      ])
    #expect(root.all(class: "contents")[0].all("td").map(\.text) == ["2", "1", "3", "2", "–", "2"])
    let headings = root.all(class: "entries")[0].all("thead")[0].all("th").map(\.text)
    #expect(headings == ["Column", "Before", "Here", "Incoming"])
    let entries = root.all(class: "entry")
    #expect(entries.count == 5)
    #expect(
      entries[0].all(class: "heading")[0].text.hasPrefix("#1 ✓ decided id = 1 (Ben)The row was changed here, too; "))
    #expect(entries[0].all("p").contains { $0.text.hasPrefix("Resolved by Ben, ") })
    #expect(entries[1].all(class: "heading")[0].text.hasPrefix("#2 ! open id = 2"))
    #expect(entries[1].all("td").map(\.text) == ["'b'", "'Ben'", "'</script>Anna'"])
    #expect(entries[2].all("td").map(\.text) == ["'c'", "no row", "'</script>Anna'"])
    #expect(entries[3].all("td").map(\.text) == ["1", "20", "10"])
  }

  @Test("For conflicts of a merge, the versions are BASE, OURS and THEIRS, and the sender is a merge")
  func merge() throws {
    let bench = try Workbench()
    try bench.sql("base.db", "CREATE TABLE notes(id INTEGER PRIMARY KEY, title); INSERT INTO notes VALUES (1, 'a')")
    for name in ["anna", "ben"] {
      try FileManager.default.copyItem(atPath: bench.path("base.db"), toPath: bench.path("\(name).db"))
      try bench.sql("\(name).db", "UPDATE notes SET title = '\(name)'")
    }
    try #require(try bench.buckia(["merge", "base.db", "anna.db", "ben.db", "-o", "ben.db", "--force"]).status == 2)
    let root = try page(bench)
    let headings = root.all(class: "entries")[0].all("thead")[0].all("th").map(\.text)
    #expect(headings == ["Column", "BASE", "OURS", "THEIRS"])
    #expect(root.text.contains("--take ours|theirs"))
    let document = try bench.buckia(["conflicts", "ben.db", "--json"]).json
    #expect((document["conflicts"] as? [[String: Any]])?.map { $0["sender"] as? String } == ["a merge"])
  }

  @Test("Conflicts are selected as in the text; with --last, each table lists its own")
  func selection() throws {
    let bench = try Self.bench()
    #expect(try page(bench, ["--table", "tags"]).all(class: "entry").count == 2)
    #expect(try page(bench, ["--open"]).all(class: "entry").count == 4)
    #expect(try page(bench, ["--kind", "not-found"]).all(class: "entry").count == 1)
    let newest = try page(bench, ["--last", "3"])
    #expect(newest.all(class: "jump").map(\.text) == ["#3", "#4", "#5"])
    #expect(
      newest.all(class: "rest").map(\.text) == ["2 more conflicts of this table not on this page (--full draws all)"])
    #expect(try page(bench, ["--last", "1"]).all("h2").map(\.text) == ["Tables", "notes", "tags"])
  }

  @Test("--full also shows the columns without differences")
  func full() throws {
    let entry = try page(Self.bench(), ["--full"]).all(class: "entry")[1]
    #expect(entry.all("th").dropFirst().map(\.text) == ["id", "title", "stars"])
  }

  @Test("A database without conflicts has a page that says so, even without a ledger")
  func none() throws {
    let bench = try Workbench()
    try bench.sql("ben.db", "CREATE TABLE t(k INTEGER PRIMARY KEY)")
    #expect(try page(bench).all("main")[0].text.contains("There are no such conflicts."))
    #expect(try bench.buckia(["init", "ben.db"]).status == 0)
    #expect(try page(bench).all("main")[0].text.contains("There are no such conflicts."))
  }

  @Test("Pages contain no path of this computer's folders")
  func paths() throws {
    let bench = try ServedDatabases.apart()
    let file = try #require(bench.names(in: "inbound").first)
    #expect(try bench.buckia(["show", bench.path("inbound/\(file)"), "--html", "show.html"]).status == 0)
    #expect(try bench.buckia(["apply", "ben.db", "inbound"]).status == 0)
    #expect(try bench.buckia(["conflicts", bench.path("ben.db"), "--html", "conflicts.html"]).status == 0)
    for page in ["show.html", "conflicts.html"] {
      let text = try String(contentsOfFile: bench.path(page), encoding: .utf8)
      #expect(!text.contains(bench.path("")), "\(page)")
    }
  }
}
