import Buckia

extension VerifyReport {
  /// The report as `--json` has it.
  var json: JSONValue {
    let files = files.map { file -> JSONValue in
      [
        "path": .string(file.path),
        "id": .text(file.id?.description),
        "ok": .bool(file.isGood),
        "sender": .string(file.sender),
        "signature": .string(file.signature.rawValue),
        "encrypted": .bool(file.isEncrypted),
        "reason": .text(file.reason),
      ]
    }
    return ["version": 1, "files": .array(files)]
  }

  /// The report for people.
  func lines(style: Style) -> [String] {
    guard !files.isEmpty else { return ["There is nothing to verify."] }
    var table = TextTable(["", "file", "signature", "sender"])
    for file in files {
      table.add([
        file.isGood ? .init("good", .good) : .init("BAD", .bad), .init(file.path.escaped),
        .init(file.signature.rawValue), .init(file.sender.escaped(limit: 70), .faint),
      ])
    }
    var lines = table.lines(style: style, indent: 0)
    for file in files {
      if let reason = file.reason { lines += ["", reason.escaped] }
    }
    return lines
  }
}
