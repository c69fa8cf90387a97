import Buckia
import Foundation
import Testing

@Suite("buckia encrypt and buckia decrypt")
struct CipherCommandTests {
  private let bench: Workbench
  private let identity = AgeIdentity()
  private let content = Data((0..<200_000).map { UInt8(truncatingIfNeeded: $0 ^ $0 >> 8) })

  init() throws {
    bench = try Workbench()
    try content.write(to: bench.folder.appendingPathComponent("photo.jpg"))
    try Data("# mine\n\(identity.secretText)\n".utf8).write(to: bench.folder.appendingPathComponent("key"))
    try Data("sword fish\n".utf8).write(to: bench.folder.appendingPathComponent("passphrase"))
  }

  private func bytes(_ name: String) throws -> Data { try Data(contentsOf: bench.folder.appendingPathComponent(name)) }

  @Test("a decrypted file equals the original", arguments: [[], ["--armor"]])
  func roundTrip(options: [String]) throws {
    let who = try identity.recipient().description
    let sealed = try bench.buckia(["encrypt", "photo.jpg", "--to", who] + options)
    #expect(sealed.status == 0, "\(sealed.diagnostics)")
    #expect(sealed.output.hasPrefix("Encrypted into photo.jpg.age, "))
    let there = try bench.buckia(["decrypt", "photo.jpg.age", "--identity", "key"])
    #expect(there.status == 1)
    #expect(there.diagnostics.contains("photo.jpg: a file of that name is there already"))
    let opened = try bench.buckia(["decrypt", "photo.jpg.age", "--identity", "key", "-o", "again", "--json"])
    #expect(try opened.json["bytes"] as? Int == content.count)
    #expect(try bytes("again") == content)
    #expect(try bench.buckia(["decrypt", "photo.jpg.age", "--identity", "key", "--force"]).status == 0)
    #expect(try bench.names() == ["again", "key", "passphrase", "photo.jpg", "photo.jpg.age"])
  }

  @Test("standard input is encrypted to standard output")
  func streams() throws {
    let who = try identity.recipient().description
    let outcome = try bench.shell(
      "\"$BUCKIA\" encrypt - --to \(who) < photo.jpg | \"$BUCKIA\" decrypt - --identity key > again")
    #expect(outcome.status == 0, "\(outcome.diagnostics)")
    #expect(try bytes("again") == content)
  }

  @Test("a passphrase can be read from a file")
  func passphrase() throws {
    #expect(try bench.buckia(["encrypt", "photo.jpg", "--passphrase-file", "passphrase"]).status == 0)
    let right = try bench.buckia(
      ["decrypt", "photo.jpg.age", "--passphrase-file", "-", "-o", "again"], input: Data("sword fish".utf8))
    #expect(right.status == 0, "\(right.diagnostics)")
    #expect(try bytes("again") == content)
  }

  @Test("a contact as a recipient decrypts with their own identity")
  func contacts() throws {
    let home = ["--home", bench.path("ben")]
    #expect(try bench.buckia(["identity", "new", "--name", "Ben"] + home).status == 0)
    let card = try bench.buckia(["identity", "show"] + home).output
    try Data(card.utf8).write(to: bench.folder.appendingPathComponent("ben.card"))
    #expect(try bench.buckia(["encrypt", "photo.jpg", "--to", "ben.card", "-o", "by-card.age"]).status == 0)
    #expect(try bench.buckia(["contact", "add", "ben.card"]).status == 0)
    #expect(try bench.buckia(["encrypt", "photo.jpg", "--to", "ben"]).status == 0)
    for name in ["by-card.age", "photo.jpg.age"] {
      #expect(try bench.buckia(["decrypt", name, "-o", "again", "--force"] + home).status == 0)
      #expect(try bytes("again") == content)
    }
    let named = try bench.buckia(["decrypt", "by-card.age", "--identity", "ben/identity", "-o", "again", "--force"])
    #expect(named.status == 0, "\(named.diagnostics)")
  }

  @Test("a truncated file leaves no output behind")
  func truncated() throws {
    #expect(try bench.buckia(["encrypt", "photo.jpg", "--to", identity.recipient().description]).status == 0)
    let sealed = try bytes("photo.jpg.age")
    try sealed.dropLast(1).write(to: bench.folder.appendingPathComponent("short.age"))
    let outcome = try bench.buckia(["decrypt", "short.age", "--identity", "key", "--json"])
    #expect(outcome.status == 1)
    let error = try #require(try outcome.json["error"] as? [String: Any])
    #expect(error["code"] as? String == "alteredPayload")
    #expect(error["path"] as? String == "short.age")
    let names = try FileManager.default.contentsOfDirectory(atPath: bench.folder.path)
    #expect(!names.contains("short") && !names.contains { $0.hasSuffix(".tmp") })
  }

  @Test("a link is followed; a missing recipient and a file that is not encrypted are refused")
  func refusals() throws {
    try FileManager.default.createSymbolicLink(
      atPath: bench.path("link"), withDestinationPath: bench.path("photo.jpg"))
    #expect(try bench.buckia(["encrypt", "link", "--to", identity.recipient().description]).status == 0)
    #expect(try bench.buckia(["decrypt", "link.age", "--identity", "key", "-o", "again"]).status == 0)
    #expect(try bytes("again") == content)
    try Transcript(
      """
      $ buckia encrypt photo.jpg --to anna
      ? 1
      2> buckia: there is no contact "anna"; `buckia contact list` shows all
      $ buckia encrypt photo.jpg --to age1anna
      ? 64
      2> buckia: "age1anna" is no recipient: it is mistyped, or not as age writes them
      $ buckia encrypt photo.jpg --to anna --passphrase-file passphrase
      ? 64
      2> Error: A file is encrypted for recipients or with a passphrase; give --to or --passphrase-file.
      2> …
      $ buckia decrypt photo.jpg --identity key
      ? 64
      2> Error: photo.jpg does not end in .age; name the decrypted file with -o.
      2> …
      $ buckia decrypt photo.jpg --identity key -o x
      ? 1
      2> buckia: photo.jpg: it is no file that was encrypted with age
      $ buckia decrypt link.age --identity passphrase -o x
      ? 1
      2> buckia: passphrase: line 1: it is no identity: those begin with AGE-SECRET-KEY-1 or AGE-SECRET-KEY-PQ-1
      $ buckia decrypt missing.age --identity key -o x
      ? 1
      2> buckia: missing.age: it cannot be opened: No such file or directory
      """
    ).play(on: bench)
    #expect(try !bench.names().contains("x"))
  }

  @Test("A file that is encrypted for others is reported as such, not as damaged")
  func notForYou() throws {
    let bench = try ServedDatabases.apart()
    let homes = ["anna", "ben"].map { ["--home", bench.path("home of \($0)")] }
    for home in homes { #expect(try bench.buckia(["identity", "new", "--name", "Somebody"] + home).status == 0) }
    let card = try bench.buckia(["identity", "show"] + homes[0]).output.trimmingCharacters(in: .whitespacesAndNewlines)
    #expect(
      try bench.buckia(["share", "new.db", "--to", card, "--table", "notes", "-o", "out"] + homes[0]).status == 0)
    let verified = try bench.buckia(["verify", "out"] + homes[1])
    #expect(verified.status == 1 && verified.output.contains("not for you"), "\(verified.output)")
    #expect(verified.output.contains("it is not encrypted for you"))
    // A file that cannot be decrypted has an unknown sender, which is not the same as being unsigned.
    let applied = try bench.buckia(["apply", "ben.db", "out"] + homes[1])
    #expect(applied.output.contains("unknown") && !applied.output.contains("unsigned"), "\(applied.output)")
    #expect(try bench.buckia(["log", "ben.db"] + homes[1]).output.contains("unknown"))
  }
}
