import Buckia

/// Where a verb prints: people's text and JSON to standard output, diagnostics to standard error.
final class Console {
  /// The style of people's text.
  let style: Style
  /// The style of standard error.
  let errorStyle: Style
  /// Whether JSON is wanted instead of text.
  let isJSON: Bool
  /// Whether only errors are wanted.
  let isQuiet: Bool
  /// What happens right now, for those who watch.
  let progress: ProgressLine

  /// Where people's text and JSON go.
  private let stream: StandardStream
  private var pending: [UInt8] = []

  /// - Parameter printsResult: Whether standard output is for the result itself.
  init(_ options: OutputOptions, printsResult: Bool = false) {
    stream = printsResult ? .error : .output
    style = Style(descriptor: stream.rawValue, isFull: options.full)
    errorStyle = .ofMessages(isFull: options.full)
    isJSON = options.json
    isQuiet = options.quiet
    progress = ProgressLine(isWanted: !options.json && !options.quiet)
  }

  /// Whether text for people is wanted at all.
  var showsText: Bool { !isJSON && !isQuiet }

  /// Prints a line for people.
  func say(_ line: String = "") throws {
    guard showsText else { return }
    try write(line + "\n")
  }

  /// Prints lines for people.
  func say(_ lines: [String]) throws {
    for line in lines { try say(line) }
  }

  /// Prints the document that `--json` asks for.
  func document(_ json: @autoclosure () -> JSONValue) throws {
    guard isJSON else { return }
    try write(json().prettyText() + "\n")
  }

  /// Prints bytes as they are: results, and JSON that is written piece by piece.
  func write(_ text: String) throws {
    pending.append(contentsOf: text.utf8)
    if pending.count >= 1 << 16 { try flush() }
  }

  /// Hands everything printed so far to the system.
  func flush() throws {
    guard !pending.isEmpty else { return }
    progress.clear()
    defer { pending.removeAll(keepingCapacity: true) }
    try pending.withUnsafeBytes { try stream.write($0) }
  }

  /// Prints a remark on standard error: not a result, so it goes there with `--json` too.
  func remark(_ text: String) {
    guard !isQuiet else { return }
    progress.clear()
    StandardStream.error.tell("\(errorStyle.wrapped(message: text))\n")
  }

  /// Prints an error on standard error, and as a document with `--json`.
  ///
  /// - Returns: The exit code the error asks for.
  func report(_ error: ErrorReport) -> ExitStatus {
    progress.clear()
    do {
      // What was printed before the failure stands; a JSON document would be cut off, so it is dropped.
      if isJSON {
        pending.removeAll()
        try write(error.json.prettyText() + "\n")
      }
      try flush()
    } catch {
      // Standard output is gone: the message below still tells what happened first.
      StandardStream.error.tell("buckia: \(error)\n")
    }
    diagnose(error)
    return error.status
  }

  /// Prints an error on standard error, behind what was printed so far: for a result that tells of it already.
  func explain(_ error: ErrorReport) throws {
    try flush()
    diagnose(error)
  }

  private func diagnose(_ error: ErrorReport) {
    let text = "\(errorStyle("buckia:", .bad)) \(error.message.escaped)"
    StandardStream.error.tell("\(errorStyle.wrapped(message: text))\n")
  }
}
