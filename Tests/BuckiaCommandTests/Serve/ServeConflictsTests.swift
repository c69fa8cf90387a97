import Foundation
import SQLiteConnections
import TestSupport
import Testing

@Suite("Deciding conflicts on the pages of buckia serve")
struct ServeConflictsTests {
  @Test("Conflicts are shown side by side with the possible decisions; one is carried out and recorded")
  func decide() throws {
    let site = try ServedSite(ServedDatabases.inConflict())
    let list = try site.page("conflicts")
    #expect(list.root.all(class: "entry").count == 5)
    let entry = try list.entry("#2")
    #expect(entry.all("td").prefix(3).map(\.text) == ["'b'", "'Ben'", "'</script>Anna'"])
    let taken = try site.press("Take the incoming version", in: entry)
    #expect(taken.isGood)
    #expect(taken.message.first == "#2 (notes, id = 2 (Ben)) is decided. The row was changed.")
    #expect(taken.root.all(class: "jump").map(\.text) == ["#1", "#3", "#4", "#5"])
    #expect(try site.bench.sql("ben.db", "SELECT title FROM notes WHERE id = 2") == ["</script>Anna"])
    let kept = try site.press("Keep the local version", in: taken.entry("#1"))
    #expect(kept.message.first == "#1 (notes, id = 1 (Ben)) is decided. The row has these values already.")
    let records = try #require(
      try site.bench.buckia(["conflicts", "ben.db", "--json"]).json["conflicts"] as? [[String: Any]])
    let resolutions = records.map { $0["resolution"] as? [String: Any] }
    #expect(resolutions.map { $0?["answer"] as? String } == ["local", "incoming", nil, nil, nil])
    #expect(resolutions[1]?["by"] as? String == "Ben")
    // A reload shows the same message, and changes nothing.
    #expect(try site.page(at: taken.address).message.first == taken.message.first)
    let own = try site.page(at: kept.link("See #1"))
    #expect(own.root.text.contains("How it was decided"))
    #expect(own.root.text.contains("the local version."))
    // A decision can be changed.
    #expect(try site.press("Take the incoming version", in: own.entry("#1")).isGood)
    #expect(try site.bench.sql("ben.db", "SELECT title FROM notes WHERE id = 1") == ["</script>Anna"])
    #expect(try site.page("conflicts?state=all").root.all(class: "entry").count == 5)
  }

  @Test("Columns get typed values, or those of either side")
  func values() throws {
    let site = try ServedSite(ServedDatabases.inConflict())
    let page = try site.page(at: site.page("conflicts").link("Other values for #1"))
    let entry = try page.entry("#1")
    #expect(entry.all("select").map { $0.attributes["name"] } == ["as-1", "as-2", "as-3"])
    #expect(entry.all("textarea").map(\.text) == ["\nBen", "\n1.0", "\n01"])
    let nothing = try site.press("Take these values", in: entry)
    #expect(!nothing.isGood && nothing.message.first?.hasPrefix("No column gets a value.") == true)
    let wrong = try site.press("Take these values", in: entry, ["as-2": "number", "value-2": "many"])
    #expect(wrong.message.first == "The value of stars is no number: 'many'. Use digits and a point.")
    let odd = try site.press("Take these values", in: entry, ["as-3": "blob", "value-3": "abc"])
    #expect(odd.message.first == "The bytes of photo are not pairs of hexadecimal digits.")
    #expect(try site.bench.sql("ben.db", "SELECT title, stars FROM notes WHERE id = 1") == ["Ben|1.0"])
    let done = try site.press(
      "Take these values", in: entry,
      [
        "as-1": "text", "value-1": "Both\r\nof \"us\" é", "as-2": "number", "value-2": "-2.5", "as-3": "blob",
        "value-3": "CA FE",
      ])
    #expect(done.isGood, "\(done.message)")
    #expect(
      try site.bench.sql("ben.db", "SELECT title, stars, typeof(stars), hex(photo) FROM notes WHERE id = 1")
        == ["Both\nof \"us\" é|-2.5|real|CAFE"])
    let mixed = try site.page("conflicts/4")
    #expect(try site.press("Take these values", in: mixed.entry("#4"), ["as-1": "incoming"]).isGood)
    #expect(try site.bench.sql("ben.db", "SELECT n FROM tags ORDER BY name") == ["10", "20"])
    let none = try site.page("conflicts/5")
    #expect(try site.press("Take these values", in: none.entry("#5"), ["as-1": "null"]).isGood)
    #expect(try site.bench.sql("ben.db", "SELECT n FROM tags ORDER BY name") == ["10", "NULL"])
  }

  @Test("A decision is remembered as a rule, if a rule can decide the conflict")
  func remember() throws {
    let site = try ServedSite(ServedDatabases.inConflict())
    let list = try site.page("conflicts")
    let boxes = try ["#1", "#3"].map { number in
      try list.entry(number).all("input").filter { $0.attributes["name"] == "remember" }.count
    }
    #expect(boxes == [1, 0])
    let page = try site.press("Take the incoming version", in: list.entry("#1"), ["remember": "1"])
    #expect(page.isGood && page.message.contains { $0.hasPrefix("Remembered as rule 1: ") }, "\(page.message)")
    let rules = try site.bench.buckia(["conflicts", "ben.db", "--rules", "--json"]).json["rules"] as? [Any]
    #expect(rules?.count == 1)
  }

  @Test("A decision that somebody else has made meanwhile is shown and kept")
  func decidedMeanwhile() throws {
    let site = try ServedSite(ServedDatabases.inConflict())
    let list = try site.page("conflicts")
    let whole = try site.page("conflicts/2")
    #expect(try site.bench.buckia(["resolve", "ben.db", "2", "--take", "local", "--by", "Eve"]).status == 0)
    for (button, page) in [
      ("Take the incoming version", list), ("Take the incoming version", whole), ("Take these values", whole),
    ] {
      let told = try site.press(button, in: page.entry("#2"), ["as-1": "incoming"])
      #expect(!told.isGood)
      #expect(told.message.first == "conflict 2 was decided by Eve meanwhile; look at it again")
      #expect(told.address.hasPrefix(site.root + "conflicts/2"))
      #expect(try site.bench.sql("ben.db", "SELECT title FROM notes WHERE id = 2") == ["Ben"])
    }
    let again = try site.page("conflicts/2")
    #expect(try site.press("Take the incoming version", in: again.entry("#2")).isGood)
    #expect(try site.bench.sql("ben.db", "SELECT title FROM notes WHERE id = 2") == ["</script>Anna"])
  }

  @Test("A row that was changed since is only overwritten if confirmed on the conflict’s own page")
  func changedSince() throws {
    let site = try ServedSite(ServedDatabases.inConflict())
    let list = try site.page("conflicts")
    try site.bench.sql("ben.db", "UPDATE notes SET title = 'later' WHERE id = 1")
    let told = try site.press("Take the incoming version", in: list.entry("#1"))
    #expect(!told.isGood)
    #expect(told.message.first?.contains("is not decided: the row was changed since the conflict was met") == true)
    #expect(told.message.contains("title: 'Ben' was known, 'later' is there now."))
    #expect(try site.bench.sql("ben.db", "SELECT title FROM notes WHERE id = 1") == ["later"])
    #expect(try site.press("Take the incoming version", in: told.entry("#1"), ["force": "1"]).isGood)
    #expect(try site.bench.sql("ben.db", "SELECT title FROM notes WHERE id = 1") == ["</script>Anna"])
  }

  @Test(
    "Many conflicts are listed on several pages, and all are decided at once, except later ones"
  )
  func many() throws {
    let bench = try Workbench()
    try bench.sql(
      "old.db",
      """
      CREATE TABLE a(id INTEGER PRIMARY KEY, v); CREATE TABLE b(id INTEGER PRIMARY KEY, v);
      INSERT INTO a WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 70) SELECT i, 0 FROM n;
      INSERT INTO b SELECT id, 0 FROM a
      """)
    for (name, value) in [("new.db", 1), ("ben.db", 2)] {
      try FileManager.default.copyItem(atPath: bench.path("old.db"), toPath: bench.path(name))
      try bench.sql(name, "UPDATE a SET v = \(value); UPDATE b SET v = \(value)")
    }
    #expect(try bench.buckia(["diff", "old.db", "new.db", "-o", "inbound"]).status == 0)
    #expect(try bench.buckia(["apply", "ben.db", "inbound"]).status == 0)
    let site = try ServedSite(bench)
    var page = try site.page("conflicts")
    var numbers = page.root.all(class: "jump").map(\.text)
    #expect(page.root.all("h2").map(\.text).contains("a") == false)
    for name in ["Earlier conflicts (90)", "Earlier conflicts (40)"] {
      page = try site.page(at: page.link(name))
      numbers += page.root.all(class: "jump").map(\.text)
    }
    #expect(Set(numbers) == Set((1...140).map { "#\($0)" }) && numbers.count == 140)
    #expect(!page.root.all("a").contains { $0.text.hasPrefix("Earlier conflicts") })
    let table = try site.page(at: page.link("b"))
    #expect(table.root.text.contains("all 70 open conflicts that are listed, on all pages"))
    let unsure = try site.press("Take the incoming version, in all", in: table.root)
    #expect(!unsure.isGood && unsure.message.first == "To decide all of them, tick the box that says so.")
    let all = try site.press("Take the incoming version, in all", in: table.root, ["sure": "1"])
    #expect(all.isGood && all.message == ["Resolved 70 conflicts, 70 rows changed."], "\(all.message)")
    #expect(try bench.sql("ben.db", "SELECT sum(v) FROM b") == ["70"])
    #expect(try bench.sql("ben.db", "SELECT sum(v) FROM a") == ["140"])
    // Only conflicts that were open when the page was made are decided.
    let rest = try site.page("conflicts")
    try bench.sql("mid.db", "CREATE TABLE a(id INTEGER PRIMARY KEY, v); INSERT INTO a VALUES (1, 7)")
    try bench.sql("late.db", "CREATE TABLE a(id INTEGER PRIMARY KEY, v); INSERT INTO a VALUES (1, 8)")
    #expect(try bench.buckia(["diff", "mid.db", "late.db", "-o", "inbound"]).status == 0)
    #expect(try bench.buckia(["apply", "ben.db", "inbound"]).status == 0)
    #expect(try site.press("Keep the local version, in all", in: rest.root, ["sure": "1"]).isGood)
    #expect(try site.page("conflicts").root.all(class: "jump").map(\.text) == ["#141"])
  }

  @Test("Merge conflicts are all decided for OURS or THEIRS, and only rows with integer keys can both be kept")
  func merged() throws {
    let bench = try Workbench()
    try bench.sql("base.db", "CREATE TABLE t(code TEXT PRIMARY KEY, v)")
    for (name, value) in [("ben.db", 1), ("new.db", 2)] {
      try FileManager.default.copyItem(atPath: bench.path("base.db"), toPath: bench.path(name))
      try bench.sql(name, "INSERT INTO t VALUES ('a', \(value)), ('b', \(value))")
    }
    #expect(try bench.buckia(["merge", "base.db", "ben.db", "new.db", "-o", "ben.db"]).status == 2)
    let site = try ServedSite(bench)
    let page = try site.page("conflicts")
    #expect(!page.root.text.contains("Keep both") && !page.root.text.contains("version, in all"), "\(page.root.text)")
    #expect(try site.press("Take THEIRS, in all", in: page.root, ["sure": "1"]).isGood)
    #expect(try bench.sql("ben.db", "SELECT sum(v) FROM t") == ["4"])
  }

  @Test("All names and values stay text, and are sent back unchanged")
  func hostile() throws {
    let bench = try Workbench()
    let (table, column) = (#"t"><script>alert(1)</script>&amp;'"#, "c\n\"><b onclick=alert(1)>")
    let text = "\"></textarea><script>alert(2)</script>\r\n ]]> \u{202E}&lt;"
    func quoted(_ name: String) -> String { "\"\(name.replacingOccurrences(of: "\"", with: "\"\""))\"" }
    func literal(_ text: String) -> String { "'\(text.replacingOccurrences(of: "'", with: "''"))'" }
    let definitions = ["plain", table].map {
      "CREATE TABLE \(quoted($0))(id INTEGER PRIMARY KEY, \(quoted(column)) TEXT)"
    }
    for (name, value) in [("old.db", "a"), ("new.db", text), ("ben.db", "\nBen</textarea>")] {
      let connection = try SQLiteConnection(opening: bench.path(name), as: .create)
      for definition in definitions { try connection.execute(definition) }
      for table in ["plain", table] {
        try connection.execute("INSERT INTO \(quoted(table)) VALUES (1, \(literal(value)))")
      }
    }
    #expect(try bench.buckia(["diff", "old.db", "new.db", "-o", "inbound"]).status == 0)
    let site = try ServedSite(bench, ["--inbound", "inbound"])
    let changes = try site.page(at: site.page("inbox").link("Look at its changes"))
    #expect(changes.root.all(class: "entry").count == 2)
    let applied = try site.press("Apply everything", in: site.page("inbox").root)
    #expect(applied.isGood, "\(applied.message)")
    _ = try site.page()
    let list = try site.page("conflicts")
    let filtered = try site.page(at: list.link("t\">"))
    #expect(filtered.root.all(class: "jump").count == 1)
    #expect(filtered.root.all(class: "contents").first?.text.contains("<script>alert(1)</script>") == true)
    let number = try #require(filtered.root.all(class: "jump").first?.text)
    let whole = try site.page("conflicts/\(number.dropFirst())")
    #expect(whole.root.all("textarea").map(\.text) == ["\n\nBen</textarea>"])
    let taken = try site.press("Take these values", in: whole.entry(number), ["as-1": "incoming"])
    #expect(taken.isGood, "\(taken.message)")
    let stored = try SQLiteConnection(opening: bench.path("ben.db"), as: .readOnly)
    #expect(
      try TestDatabases.texts("SELECT hex(\(quoted(column))) FROM \(quoted(table))", on: stored)
        == [text.utf8.map { String(format: "%02X", $0) }.joined()])
  }
}
