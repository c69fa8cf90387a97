import Buckia
import CBuckia

/// What `buckia_error` points to.
final class ErrorObject {
  let status: buckia_status
  let code: CText
  let message: CText
  let path: CText?
  let json: CText

  init(_ error: any Error) {
    let error = (error as? ApplyInterruption)?.cause ?? error
    status = Self.status(of: error)
    let report = FailureReport(reporting: error)
    code = CText(report.code)
    message = CText(report.message)
    path = report.path.map { CText($0) }
    json = CText(report.json.lineText())
  }

  private static func status(of error: any Error) -> buckia_status {
    switch BuckiaError.wrapped(error) {
    case is CancellationError: BUCKIA_CANCELLED
    case is CallbackFailure: BUCKIA_CALLBACK_FAILED
    case let error as BuckiaError:
      switch error.code {
      case .busy: BUCKIA_BUSY
      case .misuse: BUCKIA_MISUSE
      case .cancelled: BUCKIA_CANCELLED
      default: BUCKIA_ERROR
      }
    default: BUCKIA_ERROR
    }
  }
}
