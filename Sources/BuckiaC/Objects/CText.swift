/// Text that C can read, for as long as this lives.
///
/// `@unchecked Sendable`: it never changes.
final class CText: @unchecked Sendable {
  /// UTF-8 with a NUL behind it.
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
  let pointer: UnsafePointer<UnsafePointer<CChar>?>

  init(_ texts: [String]) {
    self.texts = texts.map { CText($0) }
    let array = UnsafeMutablePointer<UnsafePointer<CChar>?>.allocate(capacity: texts.count)
    for (index, text) in self.texts.enumerated() { array.advanced(by: index).initialize(to: text.pointer) }
    pointer = UnsafePointer(array)
  }

  deinit { pointer.deallocate() }
}
