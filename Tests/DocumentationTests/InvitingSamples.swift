import Buckia
import TestSupport
import Testing

/// Invites somebody.
private func invite(photos: String, file: String, home: BuckiaHome) throws {
  let scope = ShareScope(name: "summer") { SharedTable("album").where("id = 7").omitting("note") }
  var options = InvitationOptions()
  options.recipient = "Ben"
  let report = try DatabaseManager(photos, home: home).invite(scope, options: options, as: home.identity())
  try report.invitation.write(to: file)
}

/// Accepts an invitation.
private func accept(mine: String, file: String, outbox: String, home: BuckiaHome) throws {
  let invitation = try Invitation(contentsOf: file)
  print(invitation.card.name, "reads to you:", invitation.card.fingerprint)
  for table in invitation.scope.tables { print(table.name, table.rows, table.omittedColumns) }
  // Once the person says that it is the same, and accepts:
  let report = try DatabaseManager(mine, home: home).accept(invitation, answer: .folder(outbox), as: home.identity())
  print(report.wasAccepted ? "was accepted before" : "accepted")
}

/// Takes the answer.
private func take(photos: String, inbound: String, home: BuckiaHome) throws {
  let report = try DatabaseManager(photos, home: home).processInboundChanges([inbound])
  for answer in report.answers {
    print(answer.state.rawValue, answer.contact?.name ?? answer.reason ?? "")
  }
}

@Suite("Samples: inviting somebody")
struct InvitingSamples {
  @Test func `an invitation is accepted, and its answer taken`() throws {
    let folder = try TemporaryFolder()
    let photos = try TestDatabases.run(
      "CREATE TABLE album(id INTEGER PRIMARY KEY, name TEXT, note TEXT)", on: folder.file("photos.sqlite"))
    let mine = try TestDatabases.run("VACUUM", on: folder.file("mine.sqlite"))
    let annas = BuckiaHome(path: folder.file("home of Anna"))
    let bens = BuckiaHome(path: folder.file("home of Ben"))
    let anna = try annas.makeIdentity(named: "Anna")
    try bens.makeIdentity(named: "Benjamin")
    let file = folder.file("ben.invitation")
    try invite(photos: photos, file: file, home: annas)
    let outbox = folder.file("outbox")
    let shown = ["Anna reads to you: \(anna.fingerprint)", #"album rows where id = 7 ["note"]"#]
    #expect(
      try Printed.lines { try accept(mine: mine, file: file, outbox: outbox, home: bens) } == shown + ["accepted"])
    #expect(
      try Printed.lines { try accept(mine: mine, file: file, outbox: outbox, home: bens) }
        == shown + ["was accepted before"])
    #expect(try Printed.lines { try take(photos: photos, inbound: outbox, home: annas) } == ["accepted Ben"])
    #expect(try annas.contact(named: "Ben").state == .trusted)
  }
}
