import Buckia
import CBuckia

/// A place for the error of a function.
typealias ErrorPlace = UnsafeMutablePointer<OpaquePointer?>?

/// Does the work of a function, and turns what it throws into a status and an error for C.
func call(_ error: ErrorPlace, _ body: () throws -> Void) -> buckia_status {
  error?.pointee = nil
  do {
    try body()
    return BUCKIA_OK
  } catch let thrown {
    let failure = ErrorObject(thrown)
    let status = failure.status
    error?.pointee = Handle.give(failure)
    return status
  }
}

/// Objects as C has them: pointers to something unknown, which own what they point to.
enum Handle {
  /// Hands an object over to C.
  static func give(_ object: some AnyObject) -> OpaquePointer {
    OpaquePointer(Unmanaged.passRetained(object).toOpaque())
  }

  /// The object of a pointer; nil for NULL.
  static func object<Object: AnyObject>(_ pointer: OpaquePointer?, as type: Object.Type = Object.self) -> Object? {
    // Sound as long as C passes what it was given and has not freed, which the header demands.
    pointer.map { Unmanaged<Object>.fromOpaque(UnsafeRawPointer($0)).takeUnretainedValue() }
  }

  /// The object of a pointer.
  ///
  /// - Throws: `BuckiaError` with `misuse` for NULL.
  static func required<Object: AnyObject>(
    _ pointer: OpaquePointer?, _ name: String, as type: Object.Type = Object.self
  ) throws -> Object {
    guard let object = object(pointer, as: type) else { throw Arguments.misuse("\(name) is NULL") }
    return object
  }

  /// Takes an object back from C. NULL is fine.
  static func free<Object: AnyObject>(_ pointer: OpaquePointer?, as type: Object.Type) {
    guard let pointer else { return }
    Unmanaged<Object>.fromOpaque(UnsafeRawPointer(pointer)).release()
  }
}
