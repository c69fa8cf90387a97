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
