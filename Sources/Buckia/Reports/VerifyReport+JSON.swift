extension VerifyReport {
  /// The report as `--json` has it.
  package var json: JSONValue {
    let files = files.map { file -> JSONValue in
      [
        "path": .string(file.path),
        "id": .text(file.id?.description),
        "ok": .bool(file.isGood),
        "sender": .string(file.sender),
        "signature": .string(file.signature.rawValue),
        "encrypted": .bool(file.isEncrypted),
        "reason": .text(file.reason),
        "code": .text(file.code?.rawValue),
      ]
    }
    return ["version": 1, "files": .array(files), "misnamed": .array(misnamed.map { .string($0) })]
  }
}
