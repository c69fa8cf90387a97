import Buckia

extension Invitation {
  /// Who invites, and to what, for people.
  func lines(style: Style) -> [String] {
    let name = card.name.escaped(limit: 64)
    let whom = recipient.map { " to \($0.escaped(limit: 64))" } ?? ""
    var lines = style.wrapped(
      "Invitation from \(style(name, .strong))\(whom). The fingerprint of \(name)'s card is", hanging: 2)
    lines += ["", "  \(card.fingerprint)", ""]
    lines += scopeLines(heading: "You would get", style: style)
    if let folder { lines += style.wrapped("The folder: \(folder.escaped(limit: 200))", hanging: 2) }
    return lines + ["It expires on \(Moment(unixMilliseconds: expiresAt)).", ""]
  }

  /// What there is to get.
  func scopeLines(heading: String, style: Style) -> [String] {
    let named = scope.name.map { " \"\($0.escaped(limit: 100))\"" } ?? ""
    var lines = ["\(heading)\(named):"]
    for table in scope.tables.prefix(style.listLimit) {
      var line = "\(table.name.escaped(limit: 60)): \(table.rows.escaped(limit: style.isFull ? .max : 300))"
      line +=
        Self.columns(", without ", table.omittedColumns)
        + Self.columns(", with other values in ", table.rewrittenColumns)
      lines += style.wrapped(line, indent: 2, hanging: 4)
    }
    if scope.tables.count > style.listLimit {
      lines.append(style.rest(scope.tables.count - style.listLimit, "table", indent: 2))
    }
    return lines + [""]
  }

  private static func columns(_ heading: String, _ names: [String]) -> String {
    names.isEmpty ? "" : heading + names.map { $0.escaped(limit: 40) }.joined(separator: ", ")
  }
}

extension InvitationReport {
  /// What to do with it.
  func nextLines(style: Style) -> [String] {
    let whom = invitation.recipient?.escaped(limit: 64) ?? "the person you invite"
    return style.wrapped(
      "Send it to \(whom) alone, in a way that others cannot read: the first to answer it becomes that contact. It can be answered once, "
        + "until \(Moment(unixMilliseconds: invitation.expiresAt)). Your fingerprint, for them to compare, is "
        + "\(invitation.card.fingerprint).")
  }
}

extension AcceptanceReport {
  /// The report for people.
  func lines(of invitation: Invitation, database: String, style: Style) -> [String] {
    var lines: [String] = []
    if let inviter {
      lines.append("\(inviter.name.escaped) is a trusted contact now: \(inviter.card.fingerprint)")
    } else {
      lines += style.wrapped(
        "The invitation was accepted on \(Moment(unixMilliseconds: acceptedAt)); nothing has been changed.")
    }
    if let path {
      lines += style.wrapped(
        "Your answer is \(style(path.escaped, .strong)). Once \(invitation.card.name.escaped(limit: 64)) has applied it, what they "
          + "share with you arrives as diff files.")
      lines += style.suggestion("Apply them", "buckia apply \(database.shellQuoted) FOLDER")
    }
    return lines + warnings.lines(style: style)
  }
}

extension InvitationAnswer {
  /// The answer for people.
  ///
  /// - Parameter database: The database's path as it was typed, for the command that is suggested.
  func lines(database: String, style: Style, isDryRun: Bool) -> [String] {
    let file = style(path.escaped, .strong)
    switch state {
    case .accepted:
      guard let contact, let invitedAt else { return [] }
      let verb = isDryRun ? "would be" : "is"
      var lines = style.wrapped(
        "\(contact.name.escaped) has accepted your invitation of \(Moment(unixMilliseconds: invitedAt)), and \(verb) a contact now, "
          + "trusted because they had its secret: \(contact.card.fingerprint)", hanging: 2)
      if isRemoved { lines += style.wrapped("The answer \(path.escaped) was removed.", hanging: 2) }
      return lines
        + style.suggestion(
          "Make what they get", "buckia share \(database.shellQuoted) --to \(contact.name.shellQuoted)")
    case .alreadyAccepted:
      return style.wrapped("\(file): it was taken before; nothing has been changed.", hanging: 2)
    case .notOurs:
      return style.wrapped("\(file): it answers no invitation from this database, and was left alone.", hanging: 2)
    case .refused:
      return style.wrapped("\(file): \(style("refused", .bad)): \(reason?.escaped ?? "")", hanging: 2)
    }
  }
}
