extension ShareReport {
  /// The report as `--json` has it.
  package var json: JSONValue {
    [
      "version": 1,
      "id": .text(id?.description),
      "path": .text(path),
      "files": .array(files.map(\.json)),
      "bytes": .number(bytes),
      "method": .string(DiffMethod.rows.rawValue),
      "snapshot": .bool(isSnapshot),
      "sequence": .number(sequence),
      "dryRun": .bool(isDryRun),
      "tables": .array(tables.map(\.json)),
      "leftOut": .array(leftOut.map(\.json)),
      "skipped": .array(skipped.map(\.json)),
      "delivered": .array(delivered.map(\.json)),
      "incomplete": .bool(isIncomplete),
      "warnings": warnings.sentences, "warningCodes": warnings.json,
      "seconds": .real(seconds),
    ]
  }
}

extension LeftOutRows {
  fileprivate var json: JSONValue {
    [
      "table": .string(table), "columns": .strings(columns), "parent": .string(parent),
      "reason": .string(reason.rawValue), "count": .number(count),
      "rows": .array(
        rows.map { ["key": .array($0.key.map(\.json)), "values": .array($0.values.map(\.json))] }),
    ]
  }
}

extension ShareReport.Delivery {
  fileprivate var json: JSONValue {
    [
      "id": .string(id.description), "path": .text(path), "bytes": .number(bytes),
      "recipients": .strings(recipients),
    ]
  }
}

extension ShareReport.Table {
  fileprivate var json: JSONValue {
    [
      "name": .string(name), "columns": .strings(columns), "inserted": .number(inserted),
      "updated": .number(updated), "deleted": .number(deleted), "withdrawn": .number(withdrawn), "kept": .number(kept),
      "method": .string(DiffMethod.rows.rawValue),
      "changes": .array(changes.map { ["op": .string($0.operation.word), "key": .array($0.key.map(\.json))] }),
    ]
  }
}

extension InvitationAnswer {
  /// The answer as `--json` has it.
  package var json: JSONValue {
    [
      "path": .string(path), "state": .string(state.rawValue), "contact": contact.map(\.json) ?? .null,
      "invitedAt": .time(invitedAt), "reason": .text(reason),
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
              "omitted": .strings(table.omittedColumns),
              "rewritten": .strings(table.rewrittenColumns),
            ]
          }),
      ],
      "folder": .text(folder),
      "madeAt": .time(madeAt),
      "expiresAt": .time(expiresAt),
    ]
  }
}

extension InvitationReport {
  /// The report as `--json` has it.
  ///
  /// - Parameter path: The file of the invitation; nil for none, and then the document has the text.
  package func json(path: String?) -> JSONValue {
    [
      "version": 1, "invitation": invitation.json, "path": .text(path),
      "text": .text(path == nil ? invitation.text : nil),
      "warnings": warnings.sentences, "warningCodes": warnings.json,
    ]
  }
}

extension AcceptanceReport {
  /// The report as `--json` has it.
  package func json(of invitation: Invitation) -> JSONValue {
    [
      "version": 1, "invitation": invitation.json, "outcome": .string(wasAccepted ? "known" : "accepted"),
      "contact": inviter.map(\.json) ?? .null,
      "acceptedAt": .time(acceptedAt), "path": .text(path),
      "answer": .string(answer),
      "warnings": warnings.sentences, "warningCodes": warnings.json,
    ]
  }
}

extension IdentityCard {
  /// The card as `--json` has it.
  package var json: JSONValue {
    [
      "name": .string(name),
      "fingerprint": .string("\(fingerprint)"),
      "key": .string(key),
      "madeAt": .time(madeAt),
      "card": .string(text),
    ]
  }
}

extension Contact {
  /// The contact as `--json` has it.
  package var json: JSONValue {
    [
      "name": .string(name),
      "state": .string(state.rawValue),
      "fingerprint": .string("\(card.fingerprint)"),
      "firstSeen": .time(firstSeen),
      "trustedAt": .time(trustedAt),
      "grounds": .text(grounds?.rawValue),
      "card": card.json,
      "proposal": proposal.map {
        ["seenAt": .time($0.seenAt), "card": $0.rotation.card.json]
      } ?? .null,
    ]
  }
}

extension Contacts.Addition {
  /// The contact.
  package var contact: Contact {
    switch self {
    case .added(let contact), .known(let contact), .proposed(let contact): contact
    }
  }

  /// The result as `--json` has it.
  package var json: JSONValue {
    let outcome =
      switch self {
      case .added: "added"
      case .known: "known"
      case .proposed: "proposed"
      }
    return ["version": 1, "outcome": .string(outcome), "contact": contact.json]
  }
}

extension KeyRotation {
  /// The rotation as `--json` has it.
  package var json: JSONValue { ["version": 1, "rotation": .string(text), "card": card.json] }
}

extension Identity {
  /// The public part of the identity as `--json` has it.
  package var json: JSONValue {
    ["version": 1, "identity": card.json, "rotations": .array(rotations.map { .string($0.text) })]
  }
}

extension PublicIdentity {
  /// The identity as `--json` has it.
  package var json: JSONValue {
    ["version": 1, "identity": card.json, "rotations": .array(rotations.map { .string($0.text) })]
  }
}

extension EndedKey {
  fileprivate var json: JSONValue {
    [
      "name": .string(name), "reason": .string(reason.rawValue), "fingerprint": .string("\(fingerprint)"),
      "key": .string(key), "endedAt": .time(endedAt),
    ]
  }
}

extension Contacts {
  /// The contacts as `--json` has them.
  package var json: JSONValue {
    ["version": 1, "contacts": .array(all.map(\.json)), "ended": .array(ended.map(\.json))]
  }
}
