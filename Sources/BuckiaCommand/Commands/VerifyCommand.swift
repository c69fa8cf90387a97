import ArgumentParser
import Buckia

/// `buckia verify`
struct VerifyCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "verify",
    abstract: "Opens and checks diff files, or a backup store, completely, and changes nothing.",
    discussion: """
      Exits with 1 when any file is not in order.

      Example:
        buckia verify inbound
      """)

  @Argument(help: "Diff files, raw changesets and inbound folders, or - for standard input; or a backup store.")
  var paths: [String]

  @OptionGroup var decryption: DecryptionOptions

  @OptionGroup var output: OutputOptions

  func validate() throws { try decryption.validate(besides: paths) }

  func perform(on console: Console) throws -> ExitStatus {
    if paths.count == 1, StoreKeys.isStore(paths[0]) { return try verifyStore(paths[0], on: console) }
    let report = try DiffInspection.verify(
      ArgumentFile.sources(paths), home: home.folder, decryption: decryption.decryption(in: home),
      progress: { console.progress.show($0.line) }, poll: { try console.progress.check() })
    try console.show(report.json, report.lines(style: console.style))
    return report.files.allSatisfy(\.isGood) ? .done : .failed
  }
}

extension VerifyReport {
  /// The report for people. Of many files, those come first that are not in order.
  func lines(style: Style) -> [String] {
    guard !files.isEmpty else { return ["There is nothing to verify."] + misnamedLines(style: style) }
    var shown = files
    if files.count > style.listLimit {
      shown = Array((files.filter { !$0.isGood } + files.filter(\.isGood)).prefix(style.listLimit))
    }
    var lines = TextTable(["", "file", "signature", .text("sender")], of: shown) { file in
      [
        .init(file.verdict, file.isGood ? .good : .bad), .init(file.path.escaped),
        .init(file.signature.rawValue), .init(file.sender.escaped(limit: 70), .faint),
      ]
    }.lines(style: style, indent: 0)
    if shown.count < files.count {
      let bad = files.filter { !$0.isGood }.count
      lines.append(style.rest(files.count - shown.count, "file"))
      lines.append("\(files.count.counted("file")), \(bad.grouped) not in order.")
    }
    for file in shown {
      if let reason = file.reason { lines += [""] + style.wrapped(reason.escaped, hanging: 2) }
    }
    return lines + misnamedLines(style: style)
  }

  /// The diff files in the folders that go by another name than their id.
  private func misnamedLines(style: Style) -> [String] {
    guard !misnamed.isEmpty else { return [] }
    let heading = "Not looked at, since in a folder a diff file goes by its id; name it to verify it:"
    return [""] + style.wrapped(style(heading, .notable), hanging: 2)
      + style.listed(misnamed, "file", limit: style.fileLimit) { ["  \($0.shellQuoted)"] }
  }
}

extension VerifyReport.File {
  /// What the check came to, in a word or two.
  fileprivate var verdict: String {
    if isGood { return "good" }
    return code == .noMatchingIdentity || code == .notAddressed || code == .encrypted ? "not for you" : "bad"
  }
}
