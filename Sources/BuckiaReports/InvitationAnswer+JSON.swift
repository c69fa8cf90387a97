import Buckia

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
