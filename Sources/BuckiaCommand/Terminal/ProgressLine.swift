import BuckiaBytes
import Buckia

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
    let width = TerminalWidth.of(descriptor: StandardStream.error.rawValue) - 1
    StandardStream.error.tell("\r\u{1B}[K\(text().escaped.prefix(columns: width))")
  }

  /// Takes the line away, so that what is printed next stands alone.
  func clear() {
    guard isOnScreen else { return }
    isOnScreen = false
    StandardStream.error.tell("\r\u{1B}[K")
  }
}
