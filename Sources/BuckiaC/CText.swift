import Buckia
import CBuckia

/// Text that C can read, for as long as this lives.
///
/// `@unchecked Sendable`: it never changes.
final class CText: @unchecked Sendable {
  /// UTF-8 with a NUL at its end.
  let pointer: UnsafePointer<CChar>

  init(_ text: String) {
    let bytes = text.utf8CString
    let copy = UnsafeMutablePointer<CChar>.allocate(capacity: bytes.count)
    for (index, byte) in bytes.enumerated() { copy.advanced(by: index).initialize(to: byte) }
    pointer = UnsafePointer(copy)
  }

  deinit { pointer.deallocate() }
}

/// Texts that C can read as an array, for as long as this lives.
final class CTexts {
  private let texts: [CText]
  /// The array.
  let pointer: UnsafePointer<CString>

  init(_ texts: [String]) {
    self.texts = texts.map { CText($0) }
    let array = UnsafeMutablePointer<CString>.allocate(capacity: texts.count)
    for (index, text) in self.texts.enumerated() { array.advanced(by: index).initialize(to: text.pointer) }
    pointer = UnsafePointer(array)
  }

  deinit { pointer.deallocate() }
}

/// Made once, and never freed: C may keep the pointer.
private let version = CText(Version.number)

@c @implementation
package func buckia_abi_version() -> Int32 { BUCKIA_ABI_VERSION }

@c @implementation
package func buckia_version() -> CString { version.pointer }

@c @implementation
package func buckia_version_text() -> UnsafeMutablePointer<CChar>? { strdup(Version.text) }

@c @implementation
package func buckia_free(_ memory: UnsafeMutableRawPointer?) { free(memory) }
