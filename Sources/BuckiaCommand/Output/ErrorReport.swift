import Buckia
import BuckiaStorage

/// An error as the command line tells it: with a code for programs, a sentence for people and an exit code.
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

  /// Any error that a verb ended with.
  init(_ error: any Error) {
    switch BuckiaError.wrapped(error) {
    case let error as BuckiaError:
      let status: ExitStatus =
        switch error.code {
        case .busy: .busy
        case .nothingInCommon, .conflict: .needsPerson
        case .invalidRecipient, .mixedRecipients: .usage
        // An id that was typed is the only error of this kind that a verb meets.
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

  /// The document `--json` prints instead of a result.
  var json: JSONValue { failure.json }

  /// The error itself as `--json` has it.
  var details: JSONValue { failure.details }
}
