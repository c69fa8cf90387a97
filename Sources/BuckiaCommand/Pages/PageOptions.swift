import ArgumentParser
import Buckia

/// True if a verb writes a page for a browser instead of text, and where.
struct PageOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Write a page for a browser instead: one file, which needs nothing else. - is standard output.",
      valueName: "path"))
  var html: String?

  @Flag(help: "Replace a page that is there already.")
  var force = false

  /// True if a page is wanted.
  var isWanted: Bool { html != nil }

  /// True if the page goes to standard output.
  var isStandardOutput: Bool { html == OutputPath.standardOutput }

  /// Refuses what would write two things to standard output, or nothing.
  func validate(_ output: OutputOptions) throws {
    guard !output.json || !isStandardOutput else {
      throw ValidationError("--json and --html - would both write to standard output; choose one.")
    }
    guard html?.isEmpty != true else { throw ValidationError("--html needs the path of the page.") }
    guard isWanted || !force else { throw ValidationError("--force is for a page; name it with --html.") }
  }

  /// Pages of more bytes keep a browser busy for more than some seconds.
  private static let quickBytes: Int64 = 50_000_000

  /// Writes the page, and tells of it.
  ///
  /// - Parameters:
  ///   - subject: The file that the page shows: it is not more open than that.
  ///   - body: Writes everything, and counts what it writes.
  func write(about subject: String, on console: Console, _ body: (PageWriter) throws -> PageCounts) throws {
    guard let html else { return }
    let target =
      isStandardOutput
      ? PageTarget.stream { try StandardStream.output.write($0) }
      : .file(html, isReplacing: force, isPrivate: !FileSystem.isReadableByAll(subject))
    var counts = PageCounts(noun: "")
    let byteCount = try target.write { counts = try body($0) }
    let name = isStandardOutput ? "standard output" : html.escaped
    try console.say(
      console.style.wrapped(
        "\(name)  \(counts.shown.counted(counts.noun)), \(ByteCount(Int(byteCount)))", hanging: 2))
    if counts.left > 0 { try console.say("\(counts.left.grouped) more are not on the page (--full draws all).") }
    if byteCount > Self.quickBytes {
      try console.say(
        "A browser takes long to open a page of this size; fewer \(counts.noun)s make a smaller one.")
    }
    try console.document([
      "version": 1, "path": .string(html), "bytes": .integer(byteCount), "shown": .number(counts.shown),
      "left": .number(counts.left),
    ])
  }
}

/// How much of what there is a page shows.
struct PageCounts {
  /// What is counted, in the singular.
  let noun: String
  /// How many are on the page.
  var shown = 0
  /// How many are not.
  var left = 0
}

/// How much is drawn on a page, so that a browser can show it.
struct PageLimits: Sendable {
  /// How many changes of a table, or conflicts in all.
  var entries: Int
  /// After how many bytes of the page no further ones are drawn.
  var pageBytes: Int64
  /// How many characters of a text.
  var characters: Int
  /// How many tables the contents list.
  var tables: Int
  /// How large an image may be that is put into the page.
  var imageBytes: Int
  /// How large all images on the page may be together.
  var allImageBytes: Int

  /// What a page shows when nothing is said.
  static let standard = PageLimits(
    entries: 500, pageBytes: 32 << 20, characters: 400, tables: 1_000, imageBytes: 1 << 20, allImageBytes: 16 << 20)

  /// Everything, and images that are not too large for a browser.
  static let full = PageLimits(
    entries: .max, pageBytes: .max, characters: .max, tables: .max, imageBytes: 8 << 20, allImageBytes: .max)
}
