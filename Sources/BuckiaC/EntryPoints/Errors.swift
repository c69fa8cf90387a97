import CBuckia

/// What NULL has instead of a code and a message.
private let empty = CText("")

@c @implementation
package func buckia_error_status(_ error: OpaquePointer?) -> buckia_status {
  Handle.object(error, as: ErrorObject.self)?.status ?? BUCKIA_OK
}

@c @implementation
package func buckia_error_code(_ error: OpaquePointer?) -> UnsafePointer<CChar>? {
  (Handle.object(error, as: ErrorObject.self)?.code ?? empty).pointer
}

@c @implementation
package func buckia_error_message(_ error: OpaquePointer?) -> UnsafePointer<CChar>? {
  (Handle.object(error, as: ErrorObject.self)?.message ?? empty).pointer
}

@c @implementation
package func buckia_error_path(_ error: OpaquePointer?) -> UnsafePointer<CChar>? {
  Handle.object(error, as: ErrorObject.self)?.path?.pointer
}

@c @implementation
package func buckia_error_json(_ error: OpaquePointer?) -> UnsafePointer<CChar>? {
  Handle.object(error, as: ErrorObject.self)?.json.pointer
}

@c @implementation
package func buckia_error_free(_ error: OpaquePointer?) { Handle.free(error, as: ErrorObject.self) }
