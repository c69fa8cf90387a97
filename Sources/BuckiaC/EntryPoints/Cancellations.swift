import CBuckia

@c @implementation
package func buckia_cancellation_new() -> OpaquePointer? { Handle.give(Cancellation()) }

@c @implementation
package func buckia_cancel(_ cancellation: OpaquePointer?) {
  Handle.object(cancellation, as: Cancellation.self)?.cancel()
}

@c @implementation
package func buckia_is_cancelled(_ cancellation: OpaquePointer?) -> Bool {
  Handle.object(cancellation, as: Cancellation.self)?.isCancelled ?? false
}

@c @implementation
package func buckia_cancellation_free(_ cancellation: OpaquePointer?) {
  Handle.free(cancellation, as: Cancellation.self)
}
