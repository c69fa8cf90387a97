import Foundation
import Testing

@Suite("buckia identity passphrase")
struct IdentityPassphraseCommandTests {
  private let bench: Workbench

  init() throws {
    bench = try Workbench()
    for name in ["one", "two"] {
      try Data("\(name) and more\n".utf8).write(to: bench.folder.appendingPathComponent("\(name).txt"))
    }
  }

  @Test func `keys with a passphrase sign with its file, and are shown without it`() throws {
    let made = try bench.buckia(["identity", "new", "--name", "Anna", "--passphrase-file", "one.txt"])
    let text = made.output.replacingOccurrences(of: "\n", with: " ")
    #expect(made.status == 0 && text.contains("nor opened without the passphrase"), "\(made.diagnostics)")
    let shown = try bench.buckia(["identity", "show"])
    #expect(shown.status == 0 && shown.output.hasPrefix("buckia-card-1:"))
    try bench.sql("old.db", "CREATE TABLE t(id INTEGER PRIMARY KEY)")
    try bench.sql("new.db", "CREATE TABLE t(id INTEGER PRIMARY KEY); INSERT INTO t VALUES (1)")
    let sign = ["diff", "old.db", "new.db", "-o", "out", "--sign"]
    let wrong = try bench.buckia(sign + ["--identity-passphrase-file", "two.txt"])
    #expect(wrong.status == 1 && wrong.diagnostics.contains("the passphrase is wrong"), "\(wrong.diagnostics)")
    let signed = try bench.buckia(sign, environment: ["BUCKIA_PASSPHRASE_FILE": "one.txt"])
    #expect(signed.status == 0, "\(signed.diagnostics)")
    let verified = try bench.buckia(["verify", "out", "--json"]).json["files"] as? [[String: Any]]
    #expect(verified?.map { $0["sender"] as? String } == ["you"])
  }

  @Test func `a passphrase is changed and removed`() throws {
    #expect(try bench.buckia(["identity", "new", "--name", "Anna"]).status == 0)
    let card = try bench.buckia(["identity", "show"]).output
    #expect(try bench.buckia(["identity", "passphrase", "--passphrase-file", "one.txt"]).status == 0)
    let file = try String(contentsOfFile: bench.path(".home/identity"), encoding: .utf8)
    #expect(file.hasPrefix("-----BEGIN AGE ENCRYPTED FILE-----"))
    let wrong = try bench.buckia([
      "identity", "passphrase", "--remove", "--identity-passphrase-file", "two.txt", "--json",
    ])
    #expect(wrong.status == 1)
    #expect((try wrong.json["error"] as? [String: Any])?["code"] as? String == "noMatchingIdentity")
    let removed = try bench.buckia(["identity", "passphrase", "--remove", "--identity-passphrase-file", "one.txt"])
    #expect(removed.status == 0 && removed.output == "Your keys have no passphrase now.\n")
    #expect(try bench.buckia(["identity", "show"]).output == card)
    #expect(try bench.buckia(["identity", "passphrase", "--remove", "--passphrase-file", "x"]).status == 64)
    #expect(try bench.buckia(["identity", "new", "--passphrase", "--passphrase-file", "x"]).status == 64)
  }
}
