import ArgumentParser
import Buckia

/// Writes a page for a browser instead of text, to a file or to standard output.
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

  /// Throws for options that would write two results to standard output, or none.
  func validate(_ output: OutputOptions) throws {
    guard !output.json || !isStandardOutput else {
      throw ValidationError("--json and --html - would both write to standard output; choose one.")
    }
    guard html?.isEmpty != true else { throw ValidationError("--html needs the path of the page.") }
    guard isWanted || !force else { throw ValidationError("--force is for a page; name it with --html.") }
  }

  /// Pages of more bytes keep a browser busy for more than some seconds.
  private static let quickBytes: Int64 = 50_000_000

  /// Writes the page, and prints its path.
  ///
  /// - Parameters:
  ///   - subject: The file that the page shows: it is not more open than that.
  ///   - body: Writes the content, and counts the entries.
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

/// The shown part of the entries.
struct PageCounts {
  /// The name of the entries, in the singular.
  let noun: String
  /// The number of entries on the page.
  var shown = 0
  /// The number of entries that are not.
  var left = 0
}

/// The limits of a page, which keep it small enough for a browser.
struct PageLimits: Sendable {
  /// The changes of a table, or all conflicts.
  var entries: Int
  /// After how many bytes of the page no further ones are drawn.
  var pageBytes: Int64
  /// The characters of a text.
  var characters: Int
  /// The tables in the list.
  var tables: Int
  /// How large an image may be that is put into the page.
  var imageBytes: Int
  /// How large all images on the page may be together.
  var allImageBytes: Int

  /// The default number of entries.
  static let standard = PageLimits(
    entries: 500, pageBytes: 32 << 20, characters: 400, tables: 1_000, imageBytes: 1 << 20, allImageBytes: 16 << 20)

  /// Everything, and images that are not too large for a browser.
  static let full = PageLimits(
    entries: .max, pageBytes: .max, characters: .max, tables: .max, imageBytes: 8 << 20, allImageBytes: .max)
}
