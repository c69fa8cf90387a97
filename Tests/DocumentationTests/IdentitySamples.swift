import Buckia
import TestSupport
import Testing

/// Makes an identity.
private func begin(home: BuckiaHome) throws {
  let me = try home.makeIdentity(named: "Anna")
  print(me.card)
  print("My fingerprint is", me.fingerprint)
}

/// Makes an identity that a passphrase protects.
private func protect(home: BuckiaHome, passphrase: String) throws {
  var home = home
  home.passphrase = IdentityPassphrase(passphrase)
  let me = try home.makeIdentity(named: "Anna")
  // Later, and in other processes:
  print(try BuckiaHome(path: home.path).publicIdentity().card == me.card)
  print(try home.identity() == me)
}

/// Sends a signed diff.
private func send(now: String, before: String, outbox: String, home: BuckiaHome) throws {
  let me = try home.identity()
  try DatabaseManager(now, home: home).createDatabaseDiff(since: before, output: .folder(outbox), signedBy: me)
}

/// Trusts somebody.
private func trust(card: String, home: BuckiaHome) throws {
  guard case .added(let contact) = try home.addContact(card) else { return }
  print(contact.name, "reads to you:", contact.fingerprintToConfirm)
  // Once the person says that it is the same:
  try home.trustContact(contact.name, fingerprint: contact.fingerprintToConfirm)
}

/// Applies what trusted contacts have sent.
private func apply(notes: String, inbound: String, home: BuckiaHome) throws {
  let options = ApplyOptions(trust: .known)
  let report = try DatabaseManager(notes, home: home).processInboundChanges([inbound], options: options)
  for diff in report.diffs where diff.code == .untrusted {
    print(diff.path, "is kept until its sender is trusted:", diff.reason ?? "")
  }
}

/// Takes new keys of a contact.
private func propose(rotation: String, home: BuckiaHome) throws {
  if case .proposed(let contact) = try home.addContact(rotation) {
    print(contact.name, "proposes new keys:", contact.fingerprintToConfirm)
  }
}

@Suite("Samples about identities")
struct IdentitySamples {
  @Test
  func `a protected identity opens with its passphrase`() throws {
    let files = try SampleFiles()
    let home = BuckiaHome(path: files.folder.file("home"))
    #expect(try Printed.lines { try protect(home: home, passphrase: "horse") } == ["true", "true"])
  }

  @Test
  func `a signed file is applied once its sender is trusted`() throws {
    let files = try SampleFiles()
    let annas = BuckiaHome(path: files.folder.file("home of Anna"))
    let bens = BuckiaHome(path: files.folder.file("home of Ben"))
    let made = try Printed.lines { try begin(home: annas) }
    #expect(made.first?.hasPrefix("buckia-card-1:") == true)
    try send(now: files.now, before: files.before, outbox: files.inbound, home: annas)
    let kept = try Printed.lines { try apply(notes: files.mine, inbound: files.inbound, home: bens) }
    #expect(kept.count == 1)
    #expect(try files.titles() == ["Boat", "Radio"])
    let card = try annas.identity().card
    let shown = try Printed.lines { try trust(card: card.text, home: bens) }
    #expect(shown == ["Anna reads to you: \(card.fingerprint)"])
    #expect(try Printed.lines { try apply(notes: files.mine, inbound: files.inbound, home: bens) } == [])
    #expect(try files.titles() == ["Ship", "Radio", "Harbour"])
    let rotation = try annas.rotateIdentity()
    let proposed = try Printed.lines { try propose(rotation: rotation.text, home: bens) }
    #expect(proposed == ["Anna proposes new keys: \(rotation.card.fingerprint)"])
  }
}
