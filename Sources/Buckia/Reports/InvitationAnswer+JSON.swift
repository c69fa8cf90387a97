extension InvitationAnswer {
  /// The answer as `--json` has it.
  package var json: JSONValue {
    [
      "path": .string(path), "state": .string(state.rawValue), "contact": contact.map(\.json) ?? .null,
      "invitedAt": .text(invitedAt.map { Moment(unixMilliseconds: $0).rfc3339 }), "reason": .text(reason),
      "code": .text(code?.rawValue), "removed": .bool(isRemoved),
    ]
  }
}

extension Invitation {
  /// The invitation as `--json` has it, without its secret.
  package var json: JSONValue {
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
}

extension InvitationReport {
  /// The report as `--json` has it.
  ///
  /// - Parameter path: The file of the invitation; nil where there is none, and then the document has the text.
  package func json(path: String?) -> JSONValue {
    [
      "version": 1, "invitation": invitation.json, "path": .text(path),
      "text": .text(path == nil ? invitation.text : nil),
      "warnings": .array(warnings.map { .string($0.shown) }),
      "remarks": .array(warnings.map(\.json)),
    ]
  }
}

extension AcceptanceReport {
  /// The report as `--json` has it.
  package func json(of invitation: Invitation) -> JSONValue {
    [
      "version": 1, "invitation": invitation.json, "outcome": .string(wasAccepted ? "known" : "accepted"),
      "contact": inviter.map(\.json) ?? .null,
      "acceptedAt": .string(Moment(unixMilliseconds: acceptedAt).rfc3339), "path": .text(path),
      "answer": .string(answer),
      "warnings": .array(warnings.map { .string($0.shown) }),
      "remarks": .array(warnings.map(\.json)),
    ]
  }
}
