import Buckia
import CBuckia

/// Text from C.
package typealias CString = UnsafePointer<CChar>?
/// An array of texts from C.
package typealias CStrings = UnsafePointer<CString>?
/// A place for the text of a result, which C frees.
package typealias TextPlace = UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?
/// A place for the error of a function.
package typealias ErrorPlace = UnsafeMutablePointer<OpaquePointer?>?

/// Objects for C: opaque pointers, which own their objects.
enum Handle {
  /// Hands an object over to C.
  static func give(_ object: some AnyObject) -> OpaquePointer {
    OpaquePointer(Unmanaged.passRetained(object).toOpaque())
  }

  /// The object of a pointer; nil for NULL.
  static func object<Object: AnyObject>(_ pointer: OpaquePointer?, as type: Object.Type = Object.self) -> Object? {
    // Sound if C passes a pointer from this library that it has not freed, which the header demands.
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

  /// Takes the ownership of an object back from C. NULL is allowed.
  static func free<Object: AnyObject>(_ pointer: OpaquePointer?, as type: Object.Type) {
    guard let pointer else { return }
    Unmanaged<Object>.fromOpaque(UnsafeRawPointer(pointer)).release()
  }
}

/// Reads the arguments of a C function. A missing or invalid one is misuse.
enum Arguments {
  /// - Throws: `BuckiaError` with `misuse` and this message.
  static func misuse(_ message: String) -> BuckiaError { BuckiaError(.misuse, message) }

  /// The text that an argument points to.
  ///
  /// - Throws: `BuckiaError` with `misuse` when it is NULL, or no UTF-8.
  static func text(_ pointer: CString, _ name: String) throws -> String {
    guard let text = try optionalText(pointer, name) else { throw misuse("\(name) is NULL") }
    return text
  }

  /// The text that an argument points to; nil for NULL.
  ///
  /// - Throws: `BuckiaError` with `misuse` when it is no UTF-8.
  static func optionalText(_ pointer: CString, _ name: String) throws -> String? {
    guard let pointer else { return nil }
    guard let text = String(validatingCString: pointer) else { throw misuse("\(name) is not UTF-8") }
    return text
  }

  /// The texts of an array.
  ///
  /// - Throws: `BuckiaError` with `misuse` when the array is NULL and not empty, or one of them is NULL or no UTF-8.
  static func texts(
    _ pointer: CStrings, _ count: Int, _ name: String
  ) throws -> [String] {
    try array(pointer, count, name).enumerated().map { index, text in
      try Arguments.text(text, "\(name)[\(index)]")
    }
  }

  /// The elements of an array, which are not copied.
  ///
  /// - Throws: `BuckiaError` with `misuse` when it is NULL and not empty, or larger than memory.
  static func array<Element>(
    _ pointer: UnsafePointer<Element>?, _ count: Int, _ name: String
  ) throws -> UnsafeBufferPointer<Element> {
    guard count >= 0, count <= Int.max / MemoryLayout<Element>.stride else {
      throw misuse("the count of \(name) is larger than memory")
    }
    guard pointer != nil || count == 0 else { throw misuse("\(name) is NULL, and is to have \(count) elements") }
    return UnsafeBufferPointer(start: pointer, count: count)
  }

  /// The options of a function. Options that the program does not know are zero.
  ///
  /// - Throws: `BuckiaError` with `misuse` when their size is none, or they say something that this version does not
  ///   know.
  static func options<Options>(_ pointer: UnsafePointer<Options>?, _ zero: Options) throws -> Options {
    guard let pointer else { return zero }
    // Sound: all options begin with their size, and have as many bytes.
    let given = UnsafeRawPointer(pointer)
    let size = given.load(as: Int.self)
    guard size >= MemoryLayout<Int>.size, size <= 4_096 else {
      throw misuse("the size of the options is \(size); set it to the sizeof of their struct")
    }
    let known = MemoryLayout<Options>.size
    let rest = UnsafeRawBufferPointer(start: given, count: size).dropFirst(known)
    guard rest.allSatisfy({ $0 == 0 }) else {
      throw misuse("the options are of a newer version than the library, and set something that it does not know")
    }
    var options = zero
    withUnsafeMutableBytes(of: &options) { bytes in
      bytes.copyMemory(from: UnsafeRawBufferPointer(start: given, count: min(size, known)))
    }
    return options
  }

  /// The path for a new file.
  ///
  /// - Throws: `BuckiaError` with `misuse` when neither a path nor a callback is given, or both.
  static func output(
    _ path: CString, replacing: Bool, write: buckia_write_callback? = nil,
    _ context: UnsafeMutableRawPointer? = nil
  ) throws -> DiffOutput {
    guard let write else {
      guard path != nil else { throw misuse("output is NULL, and there is no callback that takes the file") }
      return .path(try text(path, "output"), replacing: replacing)
    }
    guard path == nil else { throw misuse("the file goes either to output or to the callback") }
    // It is only handed back, in the thread that has called.
    nonisolated(unsafe) let context = context
    return .stream { bytes in
      guard write(context, bytes.baseAddress, bytes.count) == 0 else {
        throw CallbackFailure("the callback that takes the file has failed")
      }
    }
  }
}

/// Hands results to C.
enum Results {
  /// Text that C frees.
  ///
  /// - Throws: `BuckiaError` when there is no memory left.
  static func copy(_ text: String) throws -> UnsafeMutablePointer<CChar> {
    guard let copy = strdup(text) else { throw BuckiaError(.unwritable, "out of memory") }
    return copy
  }

  /// Stores a document in an output argument.
  static func give(_ json: @autoclosure () -> JSONValue, to place: TextPlace) throws {
    guard let place else { return }
    place.pointee = try copy(json().lineText())
  }

  /// Passes an item of a list to a callback.
  ///
  /// - Throws: `CancellationError` when it wants no more.
  static func give(_ json: JSONValue, to item: buckia_item_callback, _ context: UnsafeMutableRawPointer?) throws {
    guard json.lineText().withCString({ item(context, $0) }) == 0 else { throw CancellationError() }
  }
}

/// A callback of the program has failed, or has given an answer that is none.
struct CallbackFailure: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) { self.description = description }
}
