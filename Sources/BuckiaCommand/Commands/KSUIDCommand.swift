import ArgumentParser
import Buckia

/// `buckia ksuid`: makes ids and explains them.
struct KSUIDCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "ksuid",
    abstract: "Makes the ids that name diff files, and tells what is in one.",
    discussion: """
      Ids sort by the time they were made, as text and as bytes.

      Example:
        buckia ksuid show 0ujtsYcgvSTl8PAuAdqWYSMnLOv
      """,
    subcommands: [KSUIDNewCommand.self, KSUIDShowCommand.self])
}

/// `buckia ksuid new`
struct KSUIDNewCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "new",
    abstract: "Makes new ids, each greater than all made before.",
    discussion: """
      Example:
        buckia ksuid new -n 3
      """)

  @Option(name: [.customShort("n"), .long], help: "How many, up to 100,000.")
  var count = 1

  @OptionGroup var output: OutputOptions

  func validate() throws {
    guard (1...100_000).contains(count) else { throw ValidationError("--count must be from 1 to 100,000.") }
  }

  func perform(on console: Console) throws -> ExitStatus {
    let now = Int64(Date().timeIntervalSince1970)
    let (ids, warning) = try home.folder.newIDs(count, after: [], unixSeconds: now)
    if let warning { console.note(warning.shown.escaped) }
    for id in ids { try console.say("\(id)") }
    try console.document(["version": 1, "ids": .array(ids.map(\.json))])
    return .done
  }
}

/// `buckia ksuid show`
struct KSUIDShowCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "show",
    abstract: "Tells when ids were made, and their random part.",
    discussion: """
      Example:
        buckia ksuid show 0ujtsYcgvSTl8PAuAdqWYSMnLOv
      """)

  @Argument(help: "The ids, or - to read them from standard input, one a line.")
  var ids: [String]

  @OptionGroup var output: OutputOptions

  func perform(on console: Console) throws -> ExitStatus {
    let ids = try ids.flatMap(lines).map { try KSUID(parsing: $0) }
    let table = TextTable(["id", "time", "payload"], of: ids) {
      [.init("\($0)", .strong), .init("\(UTCTime(unixSeconds: $0.unixSeconds))"), .init($0.payload, .faint)]
    }
    try console.show(
      ["version": 1, "ids": .array(ids.map(\.json))], table.lines(style: console.style, indent: 0))
    return .done
  }

  private func lines(of argument: String) -> [String] {
    guard argument == "-" else { return [argument] }
    var lines: [String] = []
    while let line = readLine() { lines.append(line) }
    return lines
  }
}

extension KSUID {
  /// The random part in hex.
  fileprivate var payload: String { HexText.lowercase(Array(bytes.dropFirst(4))) }

  fileprivate var json: JSONValue {
    [
      "id": .string(description),
      "time": .string(UTCTime(unixSeconds: unixSeconds).rfc3339),
      "unixSeconds": .integer(unixSeconds),
      "payload": .string(payload),
    ]
  }
}
