extension IdentityCard {
  /// The card as `--json` has it.
  package var json: JSONValue {
    [
      "name": .string(name),
      "fingerprint": .string("\(fingerprint)"),
      "key": .string(key),
      "madeAt": .string(Moment(unixMilliseconds: madeAt).rfc3339),
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
      "firstSeen": .string(Moment(unixMilliseconds: firstSeen).rfc3339),
      "trustedAt": .text(trustedAt.map { Moment(unixMilliseconds: $0).rfc3339 }),
      "grounds": .text(grounds?.rawValue),
      "card": card.json,
      "proposal": proposal.map {
        ["seenAt": .string(Moment(unixMilliseconds: $0.seenAt).rfc3339), "card": $0.rotation.card.json]
      } ?? .null,
    ]
  }
}

extension Identity {
  /// The public part of the identity as `--json` has it.
  package var json: JSONValue {
    [
      "version": 1, "identity": card.json, "rotations": .array(rotations.map { .string($0.text) }),
    ]
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
      "key": .string(key), "endedAt": .string(Moment(unixMilliseconds: endedAt).rfc3339),
    ]
  }
}

extension Contacts {
  /// The contacts as `--json` has them.
  package var json: JSONValue {
    ["version": 1, "contacts": .array(all.map(\.json)), "ended": .array(ended.map(\.json))]
  }
}
