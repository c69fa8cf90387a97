import Buckia
import BuckiaReports

extension Invitation {
  /// The invitation as `--json` has it, without its secret.
  var json: JSONValue {
    [
      "number": .string(number),
      "from": card.json,
      "to": .text(recipient),
      "scope": [
        "name": .text(scope.name),
        "tables": .array(
          scope.tables.map { table in
            [
              "name": .string(table.name), "rows": .string(table.rows),
              "omitted": .array(table.omittedColumns.map { .string($0) }),
              "rewritten": .array(table.rewrittenColumns.map { .string($0) }),
            ]
          }),
      ],
      "folder": .text(folder),
      "madeAt": .string(Moment(unixMilliseconds: madeAt).rfc3339),
      "expiresAt": .string(Moment(unixMilliseconds: expiresAt).rfc3339),
    ]
  }

  /// Who invites, and to what, for people.
  func lines(style: Style) -> [String] {
    let whom = recipient.map { ", for \($0.escaped(limit: 64))" } ?? ""
    var lines = style.wrapped(
      "\(style(card.name.escaped(limit: 64), .strong)) invites you\(whom). The fingerprint of the card is", hanging: 2)
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
  /// The report as `--json` has it.
  ///
  /// - Parameter path: The file of the invitation; nil where there is none, and then the document has the text.
  func json(path: String?) -> JSONValue {
    [
      "version": 1, "invitation": invitation.json, "path": .text(path),
      "text": .text(path == nil ? invitation.text : nil),
      "warnings": .array(warnings.map { .string($0.shown) }),
      "remarks": .array(warnings.map(\.json)),
    ]
  }

  /// What to do with it.
  func nextLines(style: Style) -> [String] {
    let whom = invitation.recipient?.escaped(limit: 64) ?? "the person you invite"
    return style.wrapped(
      "Send it to \(whom) alone, by a way that others do not read: whoever answers it first is taken for them. It is good for one "
        + "answer, until \(Moment(unixMilliseconds: invitation.expiresAt)). Your fingerprint, for them to compare, is "
        + "\(invitation.card.fingerprint).")
  }
}

extension AcceptanceReport {
  /// The report as `--json` has it.
  func json(of invitation: Invitation) -> JSONValue {
    [
      "version": 1, "invitation": invitation.json, "outcome": .string(wasAccepted ? "known" : "accepted"),
      "contact": inviter.map(\.json) ?? .null,
      "acceptedAt": .string(Moment(unixMilliseconds: acceptedAt).rfc3339), "path": .text(path),
      "answer": .string(answer),
      "warnings": .array(warnings.map { .string($0.shown) }),
      "remarks": .array(warnings.map(\.json)),
    ]
  }

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
