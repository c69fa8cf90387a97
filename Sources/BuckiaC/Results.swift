import Buckia
import BuckiaBytes
import CBuckia

/// Hands results to C.
enum Results {
  /// A place for text that a function gives.
  typealias Text = UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?

  /// Text that C frees.
  ///
  /// - Throws: `BuckiaError` when there is no memory left.
  static func copy(_ text: String) throws -> UnsafeMutablePointer<CChar> {
    guard let copy = strdup(text) else { throw BuckiaError(.unwritable, "out of memory") }
    return copy
  }

  /// Puts a document where it is wanted.
  static func give(_ json: @autoclosure () -> JSONValue, to place: Text) throws {
    guard let place else { return }
    place.pointee = try copy(json().lineText())
  }

  /// Gives an item of a list to a callback.
  ///
  /// - Throws: `CancellationError` when it wants no more.
  static func give(_ json: JSONValue, to item: buckia_item_callback, _ context: UnsafeMutableRawPointer?) throws {
    guard json.lineText().withCString({ item(context, $0) }) == 0 else { throw CancellationError() }
  }
}
