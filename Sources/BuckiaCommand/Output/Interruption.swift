import BuckiaBytes
import Dispatch
import NIOConcurrencyHelpers

/// Notices an interruption (Control-C), by which polling work stops in order: unfinished work is rolled back. A second
/// one ends the program at once, and so does the first if nothing polls for some seconds.
final class Interruption {
  private let source: any DispatchSourceSignal
  private let isSet = NIOLockedValueBox(false)

  init() {
    source = DispatchSource.makeSignalSource(signal: SIGINT, queue: .global())
    source.setEventHandler { [isSet] in
      let wasSet = isSet.withLockedValue { isSet in
        defer { isSet = true }
        return isSet
      }
      if wasSet { InterruptionCleanup.end(by: SIGINT) }
      DispatchQueue.global().asyncAfter(deadline: .now() + 5) { InterruptionCleanup.end(by: SIGINT) }
    }
    source.resume()
    #if canImport(Darwin)
      signal(SIGINT, SIG_IGN)
    #endif
  }

  deinit {
    source.cancel()
    signal(SIGINT, SIG_DFL)
  }

  /// - Throws: `CancellationError` after an interruption.
  func check() throws { if isSet.withLockedValue({ $0 }) { throw CancellationError() } }
}

/// Removes a folder when the program is interrupted (Control-C) or ended by a signal, and lets it end then.
///
/// Copies of a person's database must not remain in the folder for temporary files.
final class InterruptionCleanup {
  private static let signals = [SIGINT, SIGTERM, SIGHUP]
  private let sources: [any DispatchSourceSignal]
  // Its owner ends the program: the signal's handler, which never releases it, or the command.
  private let end = DispatchSemaphore(value: 1)

  init(removing folder: String) {
    let isListening = DispatchSemaphore(value: 0)
    sources = Self.signals.map { [end] number in
      let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
      source.setEventHandler {
        end.wait()
        // Renamed first, to prevent new files in it meanwhile.
        let doomed = "\(folder).removed"
        do {
          try FileManager.default.moveItem(atPath: folder, toPath: doomed)
          try FileManager.default.removeItem(atPath: doomed)
        } catch {
          StandardStream.error.tell("\nbuckia: \(folder) could not be removed: \(error)\n")
        }
        Self.end(by: number)
      }
      source.setRegistrationHandler { isListening.signal() }
      source.resume()
      return source
    }
    // Until then a signal ends the program, which has nothing to remove yet. If it was ignored meanwhile, it would be lost.
    for _ in Self.signals { isListening.wait() }
    #if canImport(Darwin)
      // A source only hears of signals there; on Linux it catches them.
      for number in Self.signals { signal(number, SIG_IGN) }
    #endif
  }

  /// Ends the program as the signal would have, which shells and scripts check.
  fileprivate static func end(by number: Int32) {
    signal(number, SIG_DFL)
    // Dispatch's threads let no signals through, nor do programs that one of them started.
    var signals = sigset_t()
    sigemptyset(&signals)
    sigaddset(&signals, number)
    pthread_sigmask(SIG_UNBLOCK, &signals, nil)
    raise(number)
  }

  /// Restores the default handling of signals. Does not return if one is ending the program.
  func cancel() {
    end.wait()
    for source in sources { source.cancel() }
    for number in Self.signals { signal(number, SIG_DFL) }
    end.signal()
  }
}
