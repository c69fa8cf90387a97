import Foundation
import Testing

/// `Schemas/json.md`: the members of each command's document.
private struct DocumentedMembers {
  /// By command, or by the name of a shared object: the paths of members, such as `diffs[].id`, and their types.
  private var sections: [String: [(path: String, type: String)]] = [:]

  init() throws {
    let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent()
    let text = try String(contentsOf: root.appendingPathComponent("Schemas/json.md"), encoding: .utf8)
    var names: [String] = []
    for line in text.split(separator: "\n") {
      if line.hasPrefix("#") {
        names = line.drop { $0 == "#" || $0 == " " }.split(separator: ",")
          .map { $0.trimmingCharacters(in: CharacterSet(charactersIn: "` ")).replacing("buckia ", with: "") }
      } else if let row = line.wholeMatch(of: /\| `([^`]+)` \| (.*?) \| .* \|/) {
        for name in names { sections[name, default: []].append((String(row.1), String(row.2))) }
      }
    }
  }

  /// The paths of all members of a command, including those of shared objects, and whether everything below is data.
  func paths(of command: String, below prefix: String = "") throws -> [String: Bool] {
    var paths: [String: Bool] = [:]
    for (path, type) in try #require(sections[command], "Schemas/json.md has no section for \(command)") {
      let isData = type.contains("row") || type.contains("value") || type.contains("rows") || path == "manifest"
      paths[prefix + path] = isData
      guard let link = type.firstMatch(of: /\]\(#([a-z-]+)\)/) else { continue }
      let list = type.hasPrefix("list of") ? "[]" : ""
      let name = String(link.1).replacing("-", with: " ").replacing("buckia ", with: "")
      paths.merge(try self.paths(of: name, below: "\(prefix)\(path)\(list).")) { first, _ in first }
    }
    return paths
  }
}

@Suite("The documents of --json")
struct JSONDocumentTests {
  /// The paths of the members of a document. Members below data are skipped.
  private func members(_ value: Any, _ prefix: String, _ known: [String: Bool], into found: inout Set<String>) {
    if let list = value as? [Any] {
      for item in list { members(item, prefix + "[]", known, into: &found) }
    } else if let object = value as? [String: Any] {
      for (name, item) in object {
        let path = prefix.isEmpty ? name : "\(prefix).\(name)"
        found.insert(path)
        if known[path] != true { members(item, path, known, into: &found) }
      }
    }
  }

  /// Checks a document against the page.
  ///
  /// - Returns: The members of the document.
  @discardableResult
  private func check(_ document: [String: Any], of command: String, _ known: DocumentedMembers) throws -> Set<String> {
    var paths = try known.paths(of: command)
    for (path, isData) in try known.paths(of: "When a command fails") { paths[path] = isData }
    var found: Set<String> = []
    members(document, "", paths, into: &found)
    #expect(document["version"] as? Int == 1, "\(command)")
    let unknown = found.filter { paths[$0] == nil && $0 != "version" }.sorted()
    #expect(unknown.isEmpty, "Schemas/json.md does not have these members of \(command): \(unknown)")
    return found
  }

  @Test func `have the members that Schemas/json.md lists`() throws {
    let known = try DocumentedMembers()
    let bench = try ServedDatabases.apart()
    let homes = ["anna", "ben"].map { ["--home", bench.path("home of \($0)")] }
    var found: [String: Set<String>] = [:]
    func run(_ section: String, _ arguments: [String]) throws -> [String: Any] {
      let document = try bench.buckia(arguments + ["--json"]).json
      found[section, default: []].formUnion(try check(document, of: section, known))
      return document
    }
    for (name, home) in zip(["Anna", "Ben"], homes) {
      _ = try run("identity", ["identity", "new", "--name", name] + home)
      _ = try run("identity", ["identity", "show"] + home)
      let card = try bench.buckia(["identity", "show"] + home).output
      try card.write(toFile: bench.path("\(name).card"), atomically: true, encoding: .utf8)
    }
    _ = try run("identity", ["identity", "rotate"] + homes[1])
    _ = try run("contact", ["contact", "add", "Ben.card"] + homes[0])
    _ = try run("contact", ["contact", "list"] + homes[0])
    _ = try run("contact", ["contact", "rename", "Ben", "Benjamin"] + homes[0])
    _ = try run("contact", ["contact", "remove", "Benjamin", "--yes"] + homes[0])
    _ = try run("contact", ["contact", "list"] + homes[0])

    _ = try run("init", ["init", "ben.db", "--clocks"])
    _ = try run("diff", ["diff", "old.db", "new.db", "-o", "more"])
    let file = try #require(bench.names(in: "inbound").first)
    _ = try run("show", ["show", "inbound/\(file)"])
    _ = try run("show", ["show", "inbound/\(file)", "--html", "changes.html"])
    _ = try run("snapshot", ["snapshot", "old.db", "-o", "first.db"])
    #expect(try bench.buckia(["snapshot", "old.db", "-o", "first.db"]).status == 1)
    _ = try run("snapshot", ["snapshot", "old.db", "-o", "first.db", "--force"])
    _ = try run("verify", ["verify", "inbound", "Ben.card"])
    _ = try run("apply", ["apply", "ben.db", "inbound", "--dry-run"])
    let applied = try run("apply", ["apply", "ben.db", "inbound", "--snapshot", "shared.db"])
    let id = try #require((applied["diffs"] as? [[String: Any]])?.first?["id"] as? String)
    _ = try run("blame", ["blame", "ben.db", "notes", "--key", "id=4"])
    _ = try run("conflicts", ["conflicts", "ben.db"])
    _ = try run("conflicts", ["conflicts", "ben.db", "--html", "conflicts.html"])
    _ = try run("resolve", ["resolve", "ben.db", "1", "--take", "incoming", "--remember"])
    _ = try run("conflicts", ["conflicts", "ben.db", "--rules"])
    _ = try run("resolve", ["resolve", "ben.db", "--forget", "1"])
    try bench.sql("ben.db", "UPDATE notes SET title = 'later' WHERE id = 2")
    _ = try run("resolve", ["resolve", "ben.db", "2", "--take", "incoming"])
    _ = try run("undo", ["undo", "ben.db", id])
    _ = try run("log", ["log", "ben.db"])
    _ = try run("doctor", ["doctor", "ben.db"])
    let share = ["share", "ben.db", "--to", "anna", "--table", "notes", "--unencrypted", "-o", "out"]
    _ = try run("share", share + ["--dry-run"])
    _ = try run("share", share)
    _ = try run("log", ["log", "ben.db", "--sent"])
    _ = try run("status", ["status", "ben.db", "--words"])
    _ = try run("merge", ["merge", "old.db", "ben.db", "new.db", "-o", "merged.db", "--dry-run"])
    for command in ["invert", "sort"] {
      _ = try run("changeset", ["changeset", command, "more/\(bench.names(in: "more")[0])", "-o", "\(command).bdiff"])
    }
    _ = try run("changeset", ["changeset", "rebase", "invert.bdiff", "--onto", "sort.bdiff", "-o", "r.bdiff"])
    _ = try run("encrypt", ["encrypt", "Ben.card", "--to", "Ben.card"])
    _ = try run("decrypt", ["decrypt", "Ben.card.age", "-o", "again.card"] + homes[1])
    _ = try run("ksuid", ["ksuid", "show", id])
    try #"{"format":1,"name":"all","tables":[{"table":"notes"}]}"#.write(
      toFile: bench.path("scope.json"), atomically: true, encoding: .utf8)
    let invitation = try run("invite", ["invite", "ben.db", "--scope", "scope.json"] + homes[1])
    let line = try #require(invitation["text"] as? String)
    _ = try run("accept", ["accept", "new.db", line, "--yes", "-o", "out"] + homes[0])
    try "user: anna\ndatabase: new.db\nfolder: files\nstorage: { type: folder, path: storage }".write(
      toFile: bench.path("buckia.yaml"), atomically: true, encoding: .utf8)
    _ = try run("sync", ["sync"])
    _ = try run("backup", ["backup", "ben.db", "store", "--keep", "last=2", "--drill"] + homes[0])
    _ = try run("status", ["status", "ben.db"] + homes[0])
    _ = try run("history", ["history", "store"] + homes[0])
    _ = try run("verify STORE", ["verify", "store"] + homes[0])
    _ = try run("restore", ["restore", "store", "restored.db"] + homes[0])
    _ = try run("restore", ["restore", "store", "restored.db", "--table", "notes"] + homes[0])
    _ = try run("prune", ["prune", "store", "--keep", "last=1"] + homes[0])
    _ = try run("init", ["init", "ben.db", "--remove", "--yes"])
    _ = try run("apply", ["apply", "none.db", "inbound"])

    // The listed members are also printed: those of the document itself, except the ones of other cases.
    let others: [String: Set<String>] = [
      "apply": [], "init": ["removedTables"], "identity": ["protected"], "undo": [], "changeset": [],
      "prune": ["points"], "restore": ["transaction", "time"],
    ]
    for (section, members) in found {
      let missing = try known.paths(of: section).keys.filter { !$0.contains(".") && !members.contains($0) }
      #expect(Set(missing).subtracting(others[section] ?? []).isEmpty, "no \(section) has printed \(missing.sorted())")
    }
  }
}
