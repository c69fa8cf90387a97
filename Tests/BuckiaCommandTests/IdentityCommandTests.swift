import Buckia
import Foundation
import Testing

@Suite("buckia identity and contact")
struct IdentityCommandTests {
  private let bench: Workbench

  init() throws { bench = try Workbench() }

  /// Runs a command as one of several people, each with a separate home.
  @discardableResult
  private func run(_ person: String, _ arguments: [String], input: String = "") throws -> Workbench.Outcome {
    try bench.buckia(arguments + ["--home", bench.path("home-\(person)")], input: Data(input.utf8))
  }

  /// Lets Ben trust Anna.
  @discardableResult
  private func trustAnna(_ options: [String] = []) throws -> Workbench.Outcome {
    try bench.trust("Anna", options: options + ["--home", bench.path("home-ben")])
  }

  /// Creates an identity and writes its card.
  private func makeCard(_ person: String) throws -> (path: String, fingerprint: String) {
    let made = try run(person, ["identity", "new", "--name", person, "--json"])
    #expect(made.status == 0, "\(made.diagnostics)")
    let shown = try run(person, ["identity", "show"])
    let path = bench.path("\(person).card")
    try Data(shown.output.utf8).write(to: URL(fileURLWithPath: path))
    let card = try #require(try made.json["identity"] as? [String: Any])
    return (path, try #require(card["fingerprint"] as? String))
  }

  @Test
  func `an identity is created once, private, and shown as one line`() throws {
    let made = try run("anna", ["identity", "new", "--name", "Anna"])
    #expect(made.status == 0)
    #expect(made.output.contains(/\n  [a-z2-7]{4}(-[a-z2-7]{4}){4}\n/))
    let file = bench.path("home-anna/identity")
    let attributes = try FileManager.default.attributesOfItem(atPath: file)
    #expect(attributes[.posixPermissions] as? Int == 0o600)
    let bytes = try Data(contentsOf: URL(fileURLWithPath: file))
    let again = try run("anna", ["identity", "new", "--name", "Anna"])
    #expect(again.status == 1)
    #expect(again.diagnostics.contains("there is an identity already"))
    #expect(try Data(contentsOf: URL(fileURLWithPath: file)) == bytes)
    let shown = try run("anna", ["identity", "show"])
    #expect(shown.output.hasPrefix("buckia-card-1:"))
    #expect(shown.output.split(separator: "\n").count == 1)
    #expect(shown.diagnostics.contains("Anna"))
    // No secret of the file appears in the output.
    let document = try #require(try JSONSerialization.jsonObject(with: bytes) as? [String: Any])
    let printed = try made.output + shown.output + run("anna", ["identity", "show", "--json"]).output
    for name in ["signing", "encryption"] { #expect(!printed.contains(try #require(document[name] as? String))) }
  }

  @Test
  func `an identity file that others can read is refused`() throws {
    let anna = try makeCard("Anna")
    #expect(!anna.fingerprint.isEmpty)
    try FileManager.default.setAttributes(
      [.posixPermissions: 0o644], ofItemAtPath: bench.path("home-Anna/identity"))
    let shown = try run("Anna", ["identity", "show", "--json"])
    #expect(shown.status == 1)
    #expect((try shown.json["error"] as? [String: Any])?["code"] as? String == "not-private")
  }

  @Test
  func `a card is added, then trusted by its fingerprint, then removed for good`() throws {
    let anna = try makeCard("Anna")
    let added = try run("ben", ["contact", "add", anna.path])
    #expect(added.status == 0)
    #expect(added.output.contains(anna.fingerprint) && added.output.contains("not trusted yet"))
    #expect(added.output.contains("buckia contact trust Anna"))
    let wrong = try run(
      "ben", ["contact", "trust", "Anna", "--fingerprint", "aaaa-aaaa-aaaa-aaaa-aaaa", "--json"])
    #expect(wrong.status == 1)
    #expect((try wrong.json["error"] as? [String: Any])?["code"] as? String == "other-fingerprint")
    let trusted = try run("ben", ["contact", "trust", "anna", "--fingerprint", anna.fingerprint])
    #expect(trusted.status == 0)
    #expect(trusted.output == "Anna is trusted: \(anna.fingerprint)\n")
    let list = try run("ben", ["contact", "list", "--json"])
    let contacts = try #require(try list.json["contacts"] as? [[String: Any]])
    #expect(contacts.map { $0["state"] as? String } == ["trusted"])
    #expect(try run("ben", ["contact", "remove", "Anna", "--yes"]).status == 0)
    let again = try run("ben", ["contact", "add", anna.path])
    #expect(again.status == 1)
    #expect(again.diagnostics.contains("that is final"))
    let rest = try run("ben", ["contact", "list"])
    #expect(rest.output.contains("removed") && rest.output.contains(anna.fingerprint))
  }

  @Test
  func `a card can come from standard input or an argument, under another name`() throws {
    let anna = try makeCard("Anna")
    let card = try String(contentsOfFile: anna.path, encoding: .utf8)
    #expect(try run("ben", ["contact", "add", "-", "--name", "Anna K"], input: card).status == 0)
    // As a QR code scanner may return it.
    let known = try run("ben", ["contact", "add", "\n \(card)", "--json"])
    #expect(try known.json["outcome"] as? String == "known")
    #expect((try known.json["contact"] as? [String: Any])?["name"] as? String == "Anna K")
    let nothing = try run("ben", ["contact", "add", "-"], input: "nonsense")
    #expect(nothing.status == 1)
    #expect(nothing.diagnostics.contains("it is no card"))
    let acceptance = try run("ben", ["contact", "add", "buckia-acceptance-1:e30.e30"])
    #expect(acceptance.status == 1 && acceptance.diagnostics.contains("`buckia apply` takes it"))
    #expect(try run("ben", ["contact", "trust", "Carla"]).diagnostics.contains("there is no contact \"Carla\""))
  }

  @Test(arguments: ["", "no\n", "yes\n"])
  func `without a terminal and without --fingerprint a contact stays untrusted`(input: String) throws {
    let anna = try makeCard("Anna")
    try run("ben", ["contact", "add", anna.path])
    let refused = try run("ben", ["contact", "trust", "Anna"], input: input)
    #expect(refused.status == 64 && refused.output.isEmpty)
    #expect(refused.diagnostics.contains("--fingerprint") && refused.diagnostics.contains(anna.fingerprint))
    let contacts = try run("ben", ["contact", "list", "--json"]).json["contacts"] as? [[String: Any]]
    #expect(contacts?.map { $0["state"] as? String } == ["seen"])
  }

  @Test
  func `a rotation is proposed and confirmed`() throws {
    let anna = try makeCard("Anna")
    try run("ben", ["contact", "add", anna.path])
    try trustAnna()
    #expect(try run("Anna", ["identity", "show", "--rotation"]).status == 64)
    let rotation = try run("Anna", ["identity", "rotate"])
    #expect(rotation.output.hasPrefix("buckia-rotation-1:"))
    #expect(try run("Anna", ["identity", "show", "--rotation"]).output == rotation.output)
    let proposed = try run("ben", ["contact", "add", "-"], input: rotation.output)
    #expect(proposed.status == 0)
    #expect(proposed.output.contains("proposes new ones"))
    #expect(try run("ben", ["contact", "list"]).output.contains("proposes new keys"))
    let confirmed = try trustAnna(["--json"])
    let contact = try #require(try confirmed.json["contact"] as? [String: Any])
    #expect(contact["fingerprint"] as? String != anna.fingerprint)
    let shown = try run("Anna", ["identity", "show", "--json"])
    #expect(
      contact["fingerprint"] as? String == (try shown.json["identity"] as? [String: Any])?["fingerprint"] as? String)
    // Two more at once: all rotations in one file lead from the confirmed keys to the last ones.
    for _ in 0..<2 { try run("Anna", ["identity", "rotate"]) }
    let all = try run("Anna", ["identity", "show", "--rotation"]).output
    #expect(all.split(separator: "\n").count == 3)
    #expect(try run("ben", ["contact", "add", "-"], input: all).output.contains("proposes new ones"))
    try trustAnna()
    #expect(try run("ben", ["contact", "add", "-"], input: all).output.contains("is a contact already"))
  }

  @Test
  func `a database that trusts known senders only applies files made with diff --sign`() throws {
    let anna = try makeCard("Anna")
    try bench.sql("old.db", "CREATE TABLE t(id INTEGER PRIMARY KEY, v); INSERT INTO t VALUES (1, 'one')")
    for name in ["new.db", "ben.db"] {
      try FileManager.default.copyItem(atPath: bench.path("old.db"), toPath: bench.path(name))
    }
    try bench.sql("new.db", "INSERT INTO t VALUES (2, 'two')")
    #expect(try run("stranger", ["diff", "old.db", "new.db", "-o", "in", "--sign"]).status == 1)
    #expect(try run("Anna", ["diff", "old.db", "new.db", "-o", "in", "--sign", "--raw"]).status == 64)
    let sent = try run("Anna", ["diff", "old.db", "new.db", "-o", "in", "--sign"])
    #expect(sent.status == 0, "\(sent.diagnostics)")
    #expect(try run("ben", ["init", "ben.db", "--trust", "known"]).status == 0)
    let stranger = try run("ben", ["apply", "ben.db", "in"])
    #expect(stranger.status == 2)
    #expect(stranger.output.contains("buckia contact add CARD"))
    #expect(try bench.names(in: "in").count == 1)
    try run("ben", ["contact", "add", anna.path])
    try trustAnna()
    let applied = try run("ben", ["apply", "ben.db", "in"])
    #expect(applied.status == 0, "\(applied.output)")
    #expect(applied.output.contains("Anna"))
    #expect(try run("ben", ["log", "ben.db"]).output.contains("Anna"))
    #expect(try bench.sql("ben.db", "SELECT v FROM t ORDER BY id") == ["one", "two"])
    // Diffs can be undone by their sender's name, even when the contact was removed.
    try run("ben", ["contact", "remove", "Anna", "--yes"])
    #expect(try run("ben", ["undo", "ben.db", "--sender", "Anna"]).status == 0)
    #expect(try bench.sql("ben.db", "SELECT v FROM t ORDER BY id") == ["one"])
  }

  @Test
  func `files of unknown senders of any kind are kept and named`() throws {
    let anna = try makeCard("Anna")
    try bench.sql("old.db", "CREATE TABLE t(id INTEGER PRIMARY KEY, v); INSERT INTO t VALUES (1, 'one')")
    try FileManager.default.copyItem(atPath: bench.path("old.db"), toPath: bench.path("ben.db"))
    let kinds: [(value: String, person: String, options: [String], folder: String)] = [
      ("signed", "Anna", ["--sign"], "in"), ("unsigned", "stranger", [], "in"), ("raw", "stranger", ["--raw"], "in"),
      ("by passphrase", "stranger", [], "plain"),
    ]
    for (number, kind) in kinds.enumerated() {
      let new = "new \(number).db"
      try FileManager.default.copyItem(atPath: bench.path("old.db"), toPath: bench.path(new))
      try bench.sql(new, "INSERT INTO t VALUES (\(number + 2), '\(kind.value)')")
      let sent = try run(kind.person, ["diff", "old.db", new, "-o", kind.folder] + kind.options)
      #expect(sent.status == 0, "\(sent.diagnostics)")
    }
    // Anyone with the passphrase could have made the file: its sender is unknown.
    let plain = try #require(try bench.names(in: "plain").first)
    try FileEncryption(passphrase: Array("sword fish".utf8), workFactor: 10).encrypt(
      bench.path("plain/\(plain)"), to: bench.path("in/\(plain).age"))
    try Data("sword fish".utf8).write(to: bench.folder.appendingPathComponent("passphrase"))
    let files = try bench.names(in: "in")
    #expect(files.count == 4)

    #expect(try run("ben", ["init", "ben.db", "--trust", "known"]).status == 0)
    let apply = ["apply", "ben.db", "in", "--passphrase-file", "passphrase"]
    let kept = try run("ben", apply + ["--json"])
    #expect(kept.status == 2, "\(kept.output) \(kept.diagnostics)")
    let diffs = try #require(try kept.json["diffs"] as? [[String: Any]])
    let paths = diffs.compactMap { $0["path"] as? String }
    #expect(paths.sorted() == files.map { "in/\($0)" })
    #expect(diffs.allSatisfy { $0["state"] as? String == "quarantined" && $0["code"] as? String == "untrusted" })
    let reasons = diffs.map { $0["reason"] as? String ?? "" }
    #expect(reasons.allSatisfy { $0.hasPrefix("this database trusts known senders only, and ") }, "\(reasons)")
    #expect(reasons.filter { $0.contains("`buckia contact add CARD`") }.count == 1)
    #expect(reasons.filter { $0.contains("this file is unsigned") }.count == 2)
    #expect(reasons.filter { $0.contains("a raw changeset has none") }.count == 1)
    let shown = try run("ben", apply)
    #expect(shown.status == 2 && files.allSatisfy { shown.output.contains($0) }, "\(shown.output)")
    #expect(try bench.names(in: "in") == files)
    #expect(try bench.sql("ben.db", "SELECT v FROM t ORDER BY id") == ["one"])

    // A card that was added but not confirmed is not enough.
    try run("ben", ["contact", "add", anna.path])
    #expect(try run("ben", apply).status == 2)
    #expect(try bench.names(in: "in") == files)
    try trustAnna()
    #expect(try run("ben", apply).status == 2, "the three unsigned ones are still there")
    #expect(try bench.sql("ben.db", "SELECT v FROM t ORDER BY id") == ["one", "signed"])
    #expect(try bench.names(in: "in").count == 3)
    // The kept files are unchanged: a database that trusts any sender applies them.
    #expect(try run("ben", apply + ["--trust", "any"]).status == 0)
    #expect(
      try bench.sql("ben.db", "SELECT v FROM t ORDER BY id") == ["one", "signed", "unsigned", "raw", "by passphrase"])
    #expect(try bench.names(in: "in").isEmpty)
  }

  @Test("A renamed contact keeps what is shared with them, and the old name still refers to them")
  func rename() throws {
    let bench = try ServedDatabases.apart()
    let homes = ["anna", "ben"].map { ["--home", bench.path("home of \($0)")] }
    for (name, home) in zip(["Anna", "Ben"], homes) {
      #expect(try bench.buckia(["identity", "new", "--name", name] + home).status == 0)
    }
    let card = try bench.buckia(["identity", "show"] + homes[1]).output.trimmingCharacters(in: .whitespacesAndNewlines)
    #expect(try bench.buckia(["contact", "add", card] + homes[0]).status == 0)
    let share = ["share", "new.db", "--table", "notes", "-o", "out"] + homes[0]
    #expect(try bench.buckia(share + ["--to", "Ben"]).status == 0)
    #expect(try bench.buckia(["contact", "rename", "Ben", "Benjamin"] + homes[0]).status == 0)
    #expect(try bench.buckia(share + ["--to", "Benjamin"]).output.hasPrefix("No changes"))
    #expect(try bench.buckia(share + ["--to", "ben"]).output.hasPrefix("No changes"))
    let status = try bench.buckia(["status", "new.db"] + homes[0]).output
    #expect(status.contains("You share:") && status.contains("Benjamin"), "\(status)")
    let sent = try bench.buckia(["log", "new.db", "--sent"] + homes[0]).output
    #expect(sent.contains(".bdiff.age"), "\(sent)")
    let unsure = try bench.buckia(["contact", "remove", "Benjamin"] + homes[0])
    #expect(unsure.status == 64 && unsure.diagnostics.contains("--yes"), "\(unsure.diagnostics)")
  }
}
