import BuckiaBytes

/// Why something about identities, contacts or keys cannot be done.
///
/// What is wrong with an encrypted file is a `ByteStreamError`, with the codes of this module.
package struct IdentityError: Error, Equatable, Sendable, CustomStringConvertible {
  /// What went wrong: a word that stays.
  package struct Code: RawRepresentable, Hashable, Sendable {
    package let rawValue: String
    package init(rawValue: String) { self.rawValue = rawValue }
  }

  package let code: Code
  /// A sentence with the error and the remedy.
  package let message: String
  /// The file, when there is one.
  package var path: String?

  package init(_ code: Code, _ message: String, path: String? = nil) {
    self.code = code
    self.message = message
    self.path = path
  }

  package var description: String { (path.map { "\($0): " } ?? "") + message }

  /// The same error, about a file.
  package func naming(path: String) -> IdentityError { IdentityError(code, message, path: path) }
}
