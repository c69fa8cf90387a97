import Foundation
import SQLiteConnections
import TestSupport
import Testing

@Suite("buckia serve")
struct ServeCommandTests {
  @Test("serve prints one address, runs until it is interrupted, and ends like an interrupted command")
  func start() throws {
    let site = try ServedSite(ServedDatabases.inConflict())
    #expect(try site.command.firstLine() == "http://127.0.0.1:\(site.port)\(site.root)")
    #expect(site.root.utf8.count == 42)
    let page = try site.page()
    #expect(page.status == 200)
    #expect(page.root.all("h1").first?.text == "Where ben.db stands")
    #expect(page.root.all("nav").first?.all("a").map(\.text) == ["Overview", "Conflicts", "Inbox"])
    #expect(try page.link("Decide 5 open conflicts") == site.root + "conflicts")
    #expect(page.root.all(class: "entry").count == 1)
    #expect(try site.ask("GET", "/").status == 404)
    #expect(site.command.isRunning)
    #expect(site.command.interrupt() == SIGINT)
  }

  @Test("With --json, serve prints one document")
  func json() throws {
    let bench = try ServedDatabases.inConflict()
    let command = try RunningCommand(["serve", "ben.db", "--json"], on: bench)
    #expect(try command.firstLine() == "{")
    #expect(command.interrupt(by: SIGTERM) == SIGTERM)
    let printed = try command.printed()
    let document = try #require(
      try JSONSerialization.jsonObject(with: Data(printed.output.utf8)) as? [String: Any], "\(printed.output)")
    let port = try #require(document["port"] as? Int)
    #expect(document["version"] as? Int == 1)
    #expect((document["url"] as? String)?.hasPrefix("http://127.0.0.1:\(port)/") == true)
    #expect(printed.diagnostics.contains("Open this address in a browser on this computer."))
  }

  @Test("An unusable database, folder or port is reported at the start")
  func refusals() throws {
    let bench = try ServedDatabases.inConflict()
    let missing = try bench.buckia(["serve", "none.db"])
    #expect(missing.status == 1 && missing.diagnostics.contains("there is no such database"))
    let folder = try bench.buckia(["serve", "ben.db", "--inbound", "nowhere"])
    #expect(folder.status == 1 && folder.diagnostics.contains("the folder cannot be read"))
    let site = try ServedSite(bench)
    let taken = try bench.buckia(["serve", "ben.db", "--port", "\(site.port)"])
    #expect(taken.status == 1 && taken.diagnostics.contains("could not be opened"))
    #expect(try bench.buckia(["serve", "ben.db", "--port", "65536"]).status == 64)
  }

  @Test("A database without a ledger has pages that say so")
  func noLedger() throws {
    let bench = try Workbench()
    try bench.sql("ben.db", "CREATE TABLE t(k INTEGER PRIMARY KEY)")
    let site = try ServedSite(bench)
    let page = try site.page()
    #expect(page.root.text.contains("The database has no ledger: nothing has been applied to it yet."))
    #expect(page.root.text.contains("Nothing waits for you."))
    #expect(try site.page("conflicts").root.text.contains("There are no such conflicts."))
    #expect(try site.page("inbox").root.text.contains("No inbound folder was named"))
  }

  @Test("The version of the state changes if and only if the state changes")
  func version() throws {
    let site = try ServedSite(ServedDatabases.apart(), ["--inbound", "inbound", "--keep"])
    func tag() throws -> String { try #require(try site.ask("GET", site.root + "state").headers["etag"]) }
    let first = try tag()
    #expect(try site.ask("GET", site.root + "state", headers: ["If-None-Match: \(first)"]).status == 304)
    let main = try #require(try site.page().root.all("main").first)
    #expect(main.attributes["data-state"] == site.root + "state")
    #expect(main.attributes["data-version"].map { "\"\($0)\"" } == first)
    try site.bench.sql("ben.db", "UPDATE notes SET stars = 9 WHERE id = 1")
    #expect(try tag() == first)
    #expect(try site.bench.buckia(["apply", "ben.db", "inbound", "--keep"]).status == 0)
    let second = try tag()
    #expect(second != first)
    #expect(try site.ask("GET", site.root + "state", headers: ["If-None-Match: \(first)"]).status == 200)
    #expect(try site.bench.buckia(["resolve", "ben.db", "1", "--take", "local"]).status == 0)
    let third = try tag()
    #expect(third != second)
    #expect(try site.bench.buckia(["resolve", "ben.db", "1", "--take", "incoming"]).status == 0)
    let fourth = try tag()
    #expect(fourth != third)
    let file = try #require(site.bench.names(in: "inbound").first)
    try FileManager.default.removeItem(atPath: site.bench.path("inbound/\(file)"))
    #expect(try tag() != fourth)
  }

  @Test("With --read-only there are no buttons, and nothing can be changed")
  func readOnly() throws {
    let site = try ServedSite(ServedDatabases.apart(), ["--inbound", "inbound", "--read-only"])
    let inbox = try site.page("inbox")
    #expect(inbox.root.all("form").isEmpty && inbox.root.all("button").map(\.text) == ["Show it"])
    let answer = try site.ask("POST", site.root + "inbox?folder=0", body: "do=apply")
    #expect(answer.status == 403 && answer.text.contains("--read-only"))
    #expect(try site.bench.sql("ben.db", "SELECT title FROM notes WHERE id = 4") == ["d"])
    let changes = try site.page(at: inbox.link("Look at its changes"))
    #expect(changes.root.all("form").isEmpty && changes.root.all(class: "entry").count == 6)
  }

  @Test("An invalid address is answered with 404 and links to the pages")
  func nowhere() throws {
    let site = try ServedSite(ServedDatabases.inConflict(), ["--inbound", "inbound"])
    for path in [
      "nothing", "conflicts/99", "conflicts/x", "conflicts/1/2", "conflicts?kind=none", "conflicts?state=none",
      "conflicts?before=x", "file", "file?folder=1", "file?folder=0&name=ben.db",
      "file?folder=0&name=..%2Fben.db", "file?folder=0&name=%2Fetc%2Fpasswd",
    ] {
      let page = try site.page(path)
      #expect(page.status == 404, "\(path)")
      #expect(try page.link("Conflicts") == site.root + "conflicts", "\(path)")
    }
  }

  @Test("A locked database is reported, and nothing is changed")
  func busy() throws {
    let site = try ServedSite(ServedDatabases.inConflict(), ["--busy-timeout", "50"])
    let page = try site.page("conflicts")
    let writer = try SQLiteConnection(opening: site.bench.path("ben.db"), as: .readWrite)
    try writer.execute("BEGIN IMMEDIATE")
    let told = try site.press("Take the incoming version", in: page.entry("#2"))
    #expect(!told.isGood)
    #expect(told.message.last == "Nothing was changed.")
    #expect(told.message.first?.contains("locked") == true || told.message.first?.contains("in use") == true)
    try writer.execute("ROLLBACK")
    #expect(try site.press("Take the incoming version", in: told.entry("#2")).isGood)
  }
}
