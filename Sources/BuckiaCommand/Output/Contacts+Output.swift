import Buckia

extension Contacts {
  /// The contacts for people.
  func lines(style: Style) -> [String] {
    guard !all.isEmpty || !ended.isEmpty else { return ["There are no contacts. `buckia contact add` takes a card."] }
    var table = TextTable([.text("name"), "state", "fingerprint", "since", .prose("")])
    for contact in all {
      let proposal = contact.proposal.map { "proposes new keys: \($0.rotation.card.fingerprint)" }
      let grounds = contact.grounds == .invitation ? "by an invitation" : ""
      table.add([
        .init(contact.name.escaped(limit: 40), .strong),
        .init(contact.state.rawValue, contact.state == .trusted ? .good : .notable),
        .init("\(contact.card.fingerprint)"),
        .init("\(Moment(unixMilliseconds: contact.trustedAt ?? contact.firstSeen))", .faint),
        .init(proposal ?? grounds, .notable),
      ])
    }
    for key in ended {
      table.add([
        .init(key.name.escaped(limit: 40), .faint), .init(key.reason.rawValue, .faint),
        .init("\(key.fingerprint)", .faint), .init("\(Moment(unixMilliseconds: key.endedAt))", .faint), .init(""),
      ])
    }
    return table.lines(style: style, indent: 0)
  }
}
