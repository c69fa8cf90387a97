import Buckia
import CBuckia

extension FailureReport {
  /// Creates the C error for any error of a function.
  init(reporting error: any Error) {
    switch BuckiaError.wrapped(error) {
    case let error as BuckiaError: self.init(error)
    case is CancellationError: self.init(code: "cancelled", message: "the caller has stopped the work")
    case let error as CallbackFailure: self.init(code: "callback-failed", message: error.description)
    case let error: self.init(code: "failed", message: String(describing: error))
    }
  }
}

/// What NULL has instead of a code and a message.
private let empty = CText("")

@c @implementation
package func buckia_error_status(_ error: OpaquePointer?) -> buckia_status {
  Handle.object(error, as: ErrorObject.self)?.status ?? BUCKIA_OK
}

@c @implementation
package func buckia_error_code(_ error: OpaquePointer?) -> CString {
  (Handle.object(error, as: ErrorObject.self)?.code ?? empty).pointer
}

@c @implementation
package func buckia_error_message(_ error: OpaquePointer?) -> CString {
  (Handle.object(error, as: ErrorObject.self)?.message ?? empty).pointer
}

@c @implementation
package func buckia_error_path(_ error: OpaquePointer?) -> CString {
  Handle.object(error, as: ErrorObject.self)?.path?.pointer
}

@c @implementation
package func buckia_error_json(_ error: OpaquePointer?) -> CString {
  Handle.object(error, as: ErrorObject.self)?.json.pointer
}

@c @implementation
package func buckia_error_free(_ error: OpaquePointer?) { Handle.free(error, as: ErrorObject.self) }

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
