import Buckia

/// One line on standard error with the progress, rewritten in place; nothing if that is not a terminal.
final class ProgressLine {
  private let isShown: Bool
  private var lastUpdate: ContinuousClock.Instant?
  private var isOnScreen = false
  private var interruption: Interruption?

  /// - Parameter isWanted: False with `--quiet` and `--json`.
  init(isWanted: Bool) { isShown = isWanted && isatty(2) != 0 }

  deinit { clear() }

  /// Shows a text, at most ten times a second, because a terminal would slow the work down.
  ///
  /// - Throws: `CancellationError` after an interruption.
  func update(_ text: @autoclosure () -> String) throws {
    try check()
    show(text())
  }

  /// Notices interruptions from now on: what begins here calls ``check()``.
  func begin() { if interruption == nil { interruption = Interruption() } }

  /// - Throws: `CancellationError` after an interruption.
  func check() throws {
    begin()
    try interruption?.check()
  }

  /// Ends work that is stopped by ``check()``: from now on an interruption ends the program.
  ///
  /// - Throws: `CancellationError` after an interruption.
  func end() throws {
    clear()
    try interruption?.check()
    interruption = nil
  }

  /// Shows a text for work that is stopped by ``check()``.
  func show(_ text: @autoclosure () -> String) {
    guard isShown else { return }
    let now = ContinuousClock.now
    if let lastUpdate, now - lastUpdate < .milliseconds(100) { return }
    lastUpdate = now
    isOnScreen = true
    // A line that is broken could not be rewritten.
    let width = Style.terminalWidth(of: StandardStream.error.rawValue) - 1
    StandardStream.error.tell("\r\u{1B}[K\(text().escaped.prefix(columns: width))")
  }

  /// Removes the line before other output.
  func clear() {
    guard isOnScreen else { return }
    isOnScreen = false
    StandardStream.error.tell("\r\u{1B}[K")
  }
}

extension DiffProgress {
  /// The table being compared, and its progress.
  var line: String {
    let read = bytes > 0 ? ", \(ByteCount(Int(bytes))) of pages read" : ""
    guard !table.isEmpty else { return "Comparing pages…\(read.isEmpty ? "" : " \(ByteCount(Int(bytes))) read")" }
    return "Comparing \(table.escaped(limit: 30)): \(rows.counted("row"))\(read)"
  }
}

extension InspectionProgress {
  /// The file being checked, and its progress.
  var line: String {
    return "Checking \(path.fileName.escaped(limit: 40)), \(ByteCount(bytes)) of \(ByteCount(byteCount))"
  }
}

extension RewritingProgress {
  /// The file being checked; then the activity, the number of changes, and the written part.
  func line(_ activity: String) -> String {
    switch self {
    case .checking(let progress): return progress.line
    case .rewriting(let changes, let bytes, let byteCount):
      let written = bytes > 0 ? ", \(ByteCount(bytes)) of \(ByteCount(byteCount)) written" : ""
      return "\(activity): \(changes.counted("change"))\(written)"
    }
  }
}

extension ApplyProgress {
  /// The file, the activity, and its progress.
  var line: String {
    let verb =
      switch activity {
      case .verifying: "Verifying"
      case .applying: "Applying"
      }
    let place = fileCount > 1 ? " \((files + 1).grouped) of \(fileCount.grouped)," : ""
    var line = "\(verb)\(place) \(path.fileName.escaped(limit: 40))"
    if rows > 0 { line += ", \(rows.counted("row"))" }
    if byteCount > 0, fileCount > 1 || rows > 0 { line += ", \(ByteCount(Int(bytes))) of \(ByteCount(Int(byteCount)))" }
    return line
  }
}
