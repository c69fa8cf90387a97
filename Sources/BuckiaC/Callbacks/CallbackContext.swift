/// The context of a callback.
///
/// `@unchecked Sendable`: it is only handed back, in the thread that has called.
struct CallbackContext: @unchecked Sendable {
  let pointer: UnsafeMutableRawPointer?

  init(_ pointer: UnsafeMutableRawPointer?) { self.pointer = pointer }
}

/// A callback of the program has failed, or has given an answer that is none.
struct CallbackFailure: Error, CustomStringConvertible {
  let message: String

  init(_ message: String) { self.message = message }

  var description: String { message }
}
