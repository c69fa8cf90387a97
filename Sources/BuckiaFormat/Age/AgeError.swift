/// Why a key cannot be used, or a file not be encrypted to the recipients that were given.
///
/// What is wrong with an encrypted file is a `ByteStreamError`, with the codes of this module.
package struct AgeError: Error, Equatable, Sendable, CustomStringConvertible {
  /// What went wrong.
  package enum Code: String, Sendable {
    /// It is no recipient, or one of a kind that is not known here.
    case invalidRecipient
    /// It is no identity, or one of a kind that is not known here.
    case invalidIdentity
    /// Nobody could read the file.
    case noRecipients
    /// More recipients than a file may have.
    case tooManyRecipients
    /// Recipients that may not share a file.
    case mixedRecipients
    /// A passphrase without a character.
    case emptyPassphrase
    /// The system's cryptography lacks what this kind of key needs.
    case unsupportedKey
    /// The cryptographic library failed where it should not.
    case encryptionFailed
  }

  package let code: Code
  /// A sentence for people.
  package let description: String

  package init(_ code: Code, _ description: String) {
    self.code = code
    self.description = description
  }
}
