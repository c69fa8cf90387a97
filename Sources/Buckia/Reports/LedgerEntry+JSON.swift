extension LedgerEntry {
  /// The entry as `--json` has it.
  package var json: JSONValue {
    [
      "id": .text(id?.description),
      "sender": .string(sender),
      "senderKey": .text(senderKey),
      "state": .string(state.rawValue),
      "appliedAt": .string(Moment(unixMilliseconds: recordedAt).rfc3339),
      "inserted": .number(inserted),
      "updated": .number(updated),
      "deleted": .number(deleted),
      "conflicts": .number(conflicts),
      "omitted": .number(omitted),
      "reason": .text(reason),
      "undoes": .text(undoes),
      "file": .string(file),
      "digest": .string(digest),
    ]
  }
}
