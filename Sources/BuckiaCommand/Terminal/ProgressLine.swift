import Buckia
import Foundation

/// One line on standard error that says what is going on, rewritten in place; nothing where that is no terminal.
final class ProgressLine {
  private let isShown: Bool
  private var lastUpdate: ContinuousClock.Instant?
  private var isOnScreen = false

  /// - Parameter isWanted: False with `--quiet` and `--json`.
  init(isWanted: Bool) { isShown = isWanted && isatty(2) != 0 }

  deinit { clear() }

  /// Shows a text, at most ten times a second so that the terminal does not slow the work down.
  func update(_ text: @autoclosure () -> String) {
    guard isShown else { return }
    let now = ContinuousClock.now
    if let lastUpdate, now - lastUpdate < .milliseconds(100) { return }
    lastUpdate = now
    isOnScreen = true
    FileHandle.standardError.write(Data("\r\u{1B}[K\(text().escaped(limit: 100))".utf8))
  }

  /// Takes the line away, so that what is printed next stands alone.
  func clear() {
    guard isOnScreen else { return }
    isOnScreen = false
    FileHandle.standardError.write(Data("\r\u{1B}[K".utf8))
  }
}
