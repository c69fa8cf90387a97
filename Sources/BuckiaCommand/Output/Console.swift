import Buckia
import BuckiaStorage

/// The output of a command: text for people and JSON on standard output, diagnostics on standard error.
final class Console {
  /// The style of people's text.
  let style: Style
  /// The style of standard error.
  let errorStyle: Style
  /// True if JSON is wanted instead of text.
  let isJSON: Bool
  /// True if only errors are wanted.
  let isQuiet: Bool
  /// The line that shows the progress.
  let progress: ProgressLine

  /// The stream for text and JSON.
  private let stream: StandardStream
  private var pending: [UInt8] = []

  /// - Parameter printsResult: True if standard output is for the result itself.
  init(_ options: OutputOptions, printsResult: Bool = false) {
    stream = printsResult ? .error : .output
    style = Style(descriptor: stream.rawValue, isFull: options.full)
    errorStyle = .ofMessages(isFull: options.full)
    isJSON = options.json
    isQuiet = options.quiet
    progress = ProgressLine(isWanted: !options.json && !options.quiet)
  }

  /// True if text for people is wanted at all.
  var showsText: Bool { !isJSON && !isQuiet }

  /// Prints a line for people.
  func say(_ line: String = "") throws {
    guard showsText else { return }
    try write(line + "\n")
  }

  /// Tells that a person has said no.
  func sayNothingChanged() throws -> ExitStatus {
    try say("Nothing was changed.")
    return .needsPerson
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

  /// Prints a result: the document with `--json`, otherwise the lines for people.
  func show(_ json: @autoclosure () -> JSONValue, _ lines: @autoclosure () -> [String]) throws {
    if isJSON { try document(json()) } else if showsText { try say(lines()) }
  }

  /// Prints text verbatim: results, and JSON that is written piece by piece.
  func write(_ text: String) throws {
    pending.append(contentsOf: text.utf8)
    if pending.count >= 1 << 16 { try flush() }
  }

  /// Flushes the output to the system.
  func flush() throws {
    guard !pending.isEmpty else { return }
    progress.clear()
    defer { pending.removeAll(keepingCapacity: true) }
    try pending.withUnsafeBytes { try stream.write($0) }
  }

  /// Prints a note on standard error, even with `--json`, because it is not a result.
  func note(_ text: String) {
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
      // Text that was printed before the failure stays; an incomplete JSON document is dropped.
      if isJSON {
        pending.removeAll()
        try write(error.failure.json.prettyText() + "\n")
      }
      try flush()
    } catch {
      // Standard output is closed: the message below still reports the first error.
      StandardStream.error.tell("buckia: \(error)\n")
    }
    diagnose(error)
    return error.status
  }

  /// Prints an error on standard error, after the output so far, for a result that contains the error.
  func explain(_ error: ErrorReport) throws {
    try flush()
    diagnose(error)
  }

  private func diagnose(_ error: ErrorReport) {
    let text = "\(errorStyle("buckia:", .bad)) \(error.message.escaped)"
    StandardStream.error.tell("\(errorStyle.wrapped(message: text))\n")
  }
}

/// An error of the command line: a code for programs, a sentence for people, and an exit code.
struct ErrorReport {
  let code: String
  let message: String
  var path: String?
  var offset: Int?
  var status = ExitStatus.failed
}

extension ErrorReport {
  /// A command that was not understood.
  init(usage message: String) { self.init(code: "usage", message: message, status: .usage) }

  /// Any error that a command ended with.
  init(_ error: any Error) {
    switch BuckiaError.wrapped(error) {
    case let error as BuckiaError:
      let status: ExitStatus =
        switch error.code {
        case .busy: .busy
        case .nothingInCommon, .conflict: .needsPerson
        case .invalidRecipient, .mixedRecipients: .usage
        // An id that was typed is the only error of this kind that a command meets.
        default: error.cause is KSUIDError ? .usage : .failed
        }
      self.init(
        code: error.code.rawValue, message: error.shown, path: error.context.path, offset: error.context.offset,
        status: status)
    case let error as StorageError:
      self.init(code: error.code.rawValue, message: error.description, path: error.path?.text)
    case is CancellationError:
      self.init(
        code: BuckiaErrorCode.cancelled.rawValue, message: "Interrupted: nothing was changed", status: .interrupted)
    default: self.init(code: "failed", message: String(describing: error))
    }
  }

  /// The error without an exit code.
  var failure: FailureReport { FailureReport(code: code, message: message, path: path, offset: offset) }
}

/// Prints a `--json` document that is one long list, item by item, because it need not fit in memory.
struct JSONListWriter {
  private let name: String
  private let fields: [(name: String, value: JSONValue)]
  private let console: Console
  private var isEmpty = true

  /// - Parameters:
  ///   - name: The name of the list in the document.
  ///   - fields: The fields before it.
  init(_ name: String, after fields: [(name: String, value: JSONValue)] = [], on console: Console) {
    self.name = name
    self.fields = [("version", 1)] + fields
    self.console = console
  }

  /// Prints an item.
  mutating func add(_ item: JSONValue) throws {
    if isEmpty {
      let head = fields.map { "\n  \"\($0.name)\": \($0.value.prettyText(level: 1))," }.joined()
      try console.write("{\(head)\n  \"\(name)\": [")
    } else {
      try console.write(",")
    }
    try console.write("\n    \(item.prettyText(level: 2))")
    isEmpty = false
  }

  /// Prints the end of the document.
  func end() throws {
    guard !isEmpty else {
      let all = fields + [(name, .array([]))]
      return try console.document(.object(JSONObject(all.map { .init($0.name, $0.value) })))
    }
    try console.write("\n  ]\n}\n")
  }
}
