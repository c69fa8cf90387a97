/// Why something about identities or contacts cannot be done.
package struct IdentityError: Error, Equatable, Sendable, CustomStringConvertible {
  /// What went wrong: a word that stays.
  package struct Code: RawRepresentable, Hashable, Sendable {
    package let rawValue: String
    package init(rawValue: String) { self.rawValue = rawValue }
  }

  package let code: Code
  /// A sentence for people: what happened and what to do.
  package let message: String
  /// The file, when there is one.
  package var path: String?

  package init(_ code: Code, _ message: String, path: String? = nil) {
    self.code = code
    self.message = message
    self.path = path
  }

  package var description: String { (path.map { "\($0): " } ?? "") + message }
}

extension IdentityError.Code {
  /// No identity has been made.
  package static let noIdentity = Self(rawValue: "no-identity")
  /// There is an identity already.
  package static let identityExists = Self(rawValue: "identity-exists")
  /// Others than its owner can read or change a file that must be private.
  package static let notPrivate = Self(rawValue: "not-private")
  /// The identity is protected by a passphrase, which was not given.
  package static let passphraseNeeded = Self(rawValue: "passphrase-needed")
  /// A file of ours is not as Buckia writes it.
  package static let invalidFile = Self(rawValue: "invalid-file")
  /// A card or rotation is not in order.
  package static let invalidCard = Self(rawValue: "invalid-card")
  /// An invitation, or the answer to one, is not in order.
  package static let invalidInvitation = Self(rawValue: "invalid-invitation")
  /// The signature of a card or rotation is not its key's.
  package static let badSignature = Self(rawValue: "badSignature")
  /// A newer version made it.
  package static let unsupportedFormat = Self(rawValue: "unsupportedFormat")
  /// A name that nobody may have.
  package static let invalidName = Self(rawValue: "invalid-name")
  /// No contact has this name.
  package static let noSuchContact = Self(rawValue: "no-such-contact")
  /// Another contact has this name or key.
  package static let contactExists = Self(rawValue: "contact-exists")
  /// The key was removed, or has been replaced: that is final.
  package static let endedKey = Self(rawValue: "ended-key")
  /// It is the reader's own.
  package static let ownKey = Self(rawValue: "own-key")
  /// The contact is not the one that was shown: the fingerprint differs.
  package static let otherFingerprint = Self(rawValue: "other-fingerprint")
  /// There are as many as there may be.
  package static let tooMany = Self(rawValue: "too-many")
  /// The contacts cannot be locked against other programs.
  package static let notLocked = Self(rawValue: "not-locked")
}
