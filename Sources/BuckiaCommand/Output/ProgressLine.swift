import Buckia
import BuckiaBytes

/// One line on standard error that says what is going on, rewritten in place; nothing where that is no terminal.
final class ProgressLine {
  private let isShown: Bool
  private var lastUpdate: ContinuousClock.Instant?
  private var isOnScreen = false
  private lazy var interruption = Interruption()

  /// - Parameter isWanted: False with `--quiet` and `--json`.
  init(isWanted: Bool) { isShown = isWanted && isatty(2) != 0 }

  deinit { clear() }

  /// Shows a text, at most ten times a second so that the terminal does not slow the work down.
  ///
  /// - Throws: `CancellationError` after an interruption.
  func update(_ text: @autoclosure () -> String) throws {
    try check()
    show(text())
  }

  /// - Throws: `CancellationError` after an interruption.
  func check() throws { try interruption.check() }

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

  /// Takes the line away, so that what is printed next stands alone.
  func clear() {
    guard isOnScreen else { return }
    isOnScreen = false
    StandardStream.error.tell("\r\u{1B}[K")
  }
}

extension DiffProgress {
  /// What is being compared, and how much has been.
  var line: String {
    let read = bytes > 0 ? ", \(ByteCount(Int(bytes))) of pages read" : ""
    guard !table.isEmpty else { return "Comparing pages…\(read.isEmpty ? "" : " \(ByteCount(Int(bytes))) read")" }
    return "Comparing \(table.escaped(limit: 30)): \(rows.counted("row"))\(read)"
  }
}

extension InspectionProgress {
  /// Which file is being checked, and how much of it has been read.
  var line: String {
    return "Checking \(path.fileName.escaped(limit: 40)), \(ByteCount(bytes)) of \(ByteCount(byteCount))"
  }
}

extension RewritingProgress {
  /// Which file is being checked; then what is being done, with how many changes, and how much of them has been written.
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
  /// What is being done with which file, and how much has been done.
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
