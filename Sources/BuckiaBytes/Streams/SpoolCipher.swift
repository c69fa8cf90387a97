/// Encrypts what a temporary buffer keeps in its file, under a key that nobody else has and nothing keeps.
///
/// Two threads may use one at the same time.
package protocol SpoolCipher: AnyObject, Sendable {
  /// Encrypts bytes in place, or decrypts what was encrypted: both are the same.
  ///
  /// - Parameters:
  ///   - bytes: The bytes.
  ///   - offset: Where the first of them stands. No place is ever written twice.
  /// - Throws: `ByteStreamError`. What the bytes are then is not known.
  func apply(to bytes: UnsafeMutableRawBufferPointer, at offset: Int) throws(ByteStreamError)
}
