/// A person's own keys, in the file `identity`.
extension BuckiaHome {
  private var identityFile: IdentityFile { IdentityFile(path: "\(path)/identity", sealing: passphrase) }

  /// The person's identity.
  ///
  /// - Throws: `BuckiaError`: `noIdentity` when none has been made; `notPrivate` when others can read or change the file;
  ///   `passphraseNeeded` when it is protected and the home has no ``passphrase``; `noMatchingIdentity` when that is wrong.
  public func identity() throws -> Identity { try BuckiaError.wrapping { try identityFile.read() } }

  /// The person's identity; nil for none.
  ///
  /// - Throws: `BuckiaError` with `notPrivate` when others can read or change the file.
  package func identityIfAny() throws -> Identity? { try BuckiaError.wrapping { try identityFile.readIfPresent() } }

  /// The secret keys that open what is encrypted for the person: those of the identity, if there is one, and of files.
  package func secretKeys(and files: [String] = []) throws -> [AgeIdentity] {
    let own = try identityIfAny().map { AgeIdentity.identities(of: $0) } ?? []
    return try own + files.flatMap { try AgeIdentity.identities(inFile: $0, passphrase: passphrase) }
  }

  /// What signs backups; nil without an identity.
  package func backupSigner() throws -> ManifestSigner? { try identityIfAny().map { try ManifestSigner($0) } }

  /// The card to give to others; nil without an identity.
  func ownCard() throws -> IdentityCard? { try identityFile.readPublicPart()?.card }

  /// The public part of the person's identity: the card, and the rotations of replaced keys. A protected identity is
  /// not unlocked for it.
  ///
  /// - Throws: `BuckiaError`: `noIdentity`, `notPrivate`; `passphraseNeeded` when the file that is kept for it beside a protected
  ///   identity is missing.
  public func publicIdentity() throws -> PublicIdentity {
    // Throws without an identity.
    try publicIdentityIfAny() ?? BuckiaError.wrapping { try identity().publicPart() }
  }

  /// The same; nil without an identity.
  func publicIdentityIfAny() throws -> PublicIdentity? {
    try BuckiaError.wrapping { try identityFile.readPublicPart() }
  }

  /// True if a passphrase protects the identity; nil without an identity.
  ///
  /// - Throws: `BuckiaError` with `notPrivate` when others can read or change the file.
  public func isIdentityProtected() throws -> Bool? { try BuckiaError.wrapping { try identityFile.isProtected() } }

  /// Protects the identity with another passphrase, or with none. A concurrent reader finds it protected in the old way
  /// or in the new one. Remains of the old file on the disk are not wiped.
  ///
  /// - Parameter next: The passphrase from now on; nil for none. This home still has the old one.
  /// - Throws: As ``identity()``; when the file cannot be written. Nothing has been changed then.
  public func changePassphrase(to next: IdentityPassphrase?) throws {
    try BuckiaError.wrapping { try identityFile.protect(with: next) }
  }

  /// Creates an identity: new keys, in a file that only its owner can read, protected if the home has a ``passphrase``.
  /// An existing identity is never replaced.
  ///
  /// ```swift
  /// let me = try BuckiaHome.standard.makeIdentity(named: "Anna")
  /// print(me.card)
  /// ```
  ///
  /// - Parameter name: The owner's name for others: 1 to 64 characters.
  /// - Throws: `BuckiaError`: `identityExists`; `invalidName`; when the file cannot be written.
  @discardableResult
  public func makeIdentity(named name: String) throws -> Identity {
    try BuckiaError.wrapping {
      makeFolders()
      var generator = SystemRandomNumberGenerator()
      let identity = try Identity(named: name, at: WallClock.unixMilliseconds, using: &generator)
      try identityFile.create(identity)
      return identity
    }
  }

  /// Replaces the keys by new ones. Everyone who accepts the rotation refuses files that are signed with the old key.
  ///
  /// - Returns: The rotation to send to everyone who has the card. They add it, and confirm the new fingerprint.
  /// - Throws: As ``identity()``; when the file cannot be written. The old keys are in force then. A protected identity stays so.
  public func rotateIdentity() throws -> KeyRotation {
    try BuckiaError.wrapping {
      var generator = SystemRandomNumberGenerator()
      return try identityFile.rotate(at: WallClock.unixMilliseconds, using: &generator).rotation
    }
  }
}

extension Identity {
  /// Reads an identity from a file that only its owner can read.
  ///
  /// - Parameters:
  ///   - path: The file.
  ///   - passphrase: The passphrase of a protected identity.
  /// - Throws: `BuckiaError` as ``BuckiaHome/identity()``.
  public init(contentsOf path: String, passphrase: IdentityPassphrase? = nil) throws {
    self = try BuckiaError.wrapping { try IdentityFile(path: path, sealing: passphrase).read() }
  }
}

extension IdentityCard {
  /// Reads a card and verifies its signature.
  ///
  /// - Parameter text: The line that begins with `buckia-card-1:`. White space in it is ignored.
  /// - Throws: `BuckiaError`: `invalidCard`, `badSignature`, or `unsupportedFormat` for one of a newer version.
  public init(_ text: String) throws {
    self = try BuckiaError.wrapping { try IdentityCard(verifying: text) }
  }

  /// Reads the card in a file and verifies its signature.
  ///
  /// - Throws: As for its text; `BuckiaError` when the file cannot be read.
  public init(contentsOf path: String) throws {
    self = try BuckiaError.wrapping { try IdentityCard(verifying: Self.text(inFile: path)) }
  }

  /// The text in the file of a card or a rotation.
  ///
  /// - Throws: `IdentityError` when it is too long for one; `ByteStreamError`.
  static func text(inFile path: String) throws -> String {
    guard let bytes = try PosixFile(reading: path).contents(limit: Int(textByteLimit)) else {
      throw IdentityError(.invalidCard, "it is no card: no card is that long", path: path)
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}

/// The people whose cards are kept, in the file `contacts.json`.
extension BuckiaHome {
  private var contactsFile: ContactsFile { ContactsFile(path: "\(path)/contacts.json") }

  /// All contacts, and the keys that have ended.
  ///
  /// - Throws: `BuckiaError`: `notPrivate` when others can read or change the file; when it cannot be read.
  public func contacts() throws -> Contacts { try BuckiaError.wrapping { try contactsFile.read() } }

  /// The contact of this name, in capitals or not.
  ///
  /// - Throws: `BuckiaError`: `noSuchContact`; as ``contacts()``.
  public func contact(named name: String) throws -> Contact {
    try BuckiaError.wrapping { try contactsFile.read().require(named: name) }
  }

  /// Adds a card, or the new keys that a contact proposes, without trusting them: see ``trustContact(_:fingerprint:)``.
  ///
  /// - Parameters:
  ///   - text: A card or a rotation, a line of text; or all rotations of a person, the oldest first.
  ///   - name: The local name of a new contact; nil for the name on the card.
  /// - Returns: The result.
  /// - Throws: `BuckiaError`: `invalidCard`, `badSignature`; `contactExists` when another one has the name or the key;
  ///   `endedKey` for a key that was removed or replaced; `invalidName`. Nothing has been changed then.
  @discardableResult
  public func addContact(_ text: String, named name: String? = nil) throws -> Contacts.Addition {
    try change { contacts in
      try contacts.add(text, named: name, besides: ownCard(), at: WallClock.unixMilliseconds)
    }
  }

  /// Keeps the card or the rotation in a file.
  ///
  /// - Throws: As ``addContact(_:named:)``; `BuckiaError` when the file cannot be read.
  @discardableResult
  public func addContact(contentsOf path: String, named name: String? = nil) throws -> Contacts.Addition {
    let text = try BuckiaError.wrapping { try IdentityCard.text(inFile: path) }
    return try addContact(text, named: name)
  }

  /// Trusts a contact: their signed files are applied from now on where only known senders are trusted.
  ///
  /// Show ``Contact/fingerprintToConfirm`` first, and let a person compare it with the fingerprint that its owner reads
  /// to them. If the contact proposes new keys, those are trusted, and the old ones end for good.
  ///
  /// - Parameters:
  ///   - name: The contact.
  ///   - fingerprint: The compared fingerprint.
  /// - Throws: `BuckiaError`: `noSuchContact`; `otherFingerprint` when the contact has other keys. Nothing has been changed then.
  @discardableResult
  public func trustContact(_ name: String, fingerprint: Fingerprint) throws -> Contact {
    try change { try $0.trust(name, fingerprint: fingerprint, at: WallClock.unixMilliseconds) }
  }

  /// Removes a contact. Files that their key has signed are never applied again, in any database of this person, under
  /// any trust mode, and the card cannot be added again. Applied files stay: see ``DatabaseManager/undo(_:options:)``.
  ///
  /// - Throws: `BuckiaError`: `noSuchContact`.
  @discardableResult
  public func removeContact(_ name: String) throws -> Contact {
    try change { try $0.remove(name, at: WallClock.unixMilliseconds) }
  }

  /// Gives a contact another name. Their shares continue.
  ///
  /// - Throws: `BuckiaError`: `noSuchContact`; `invalidName`; `contactExists` where another contact has, or had, the name. Nothing has been
  ///   changed then.
  @discardableResult
  public func renameContact(_ name: String, to newName: String) throws -> Contact {
    try change { try $0.rename(name, to: newName) }
  }

  func change<Result>(_ body: (inout Contacts) throws -> Result) throws -> Result {
    try BuckiaError.wrapping {
      makeFolders()
      return try contactsFile.update(body)
    }
  }
}

extension BuckiaHome {
  /// The known senders: the contacts and the person's own identity.
  ///
  /// - Throws: `BuckiaError` as ``contacts()`` and ``identity()``. Who is trusted is not guessed.
  func knownSenders() throws -> KnownSenders {
    let contacts = try contacts()
    var standings: [String: KnownSenders.Standing] = [:]
    var replaced = contacts.replacedKeys
    if let own = try publicIdentityIfAny() {
      standings[own.card.key] = .own
      replaced[own.card.key] = own.rotations.map { $0.endedKey.description }
    }
    for contact in contacts.all {
      for proposed in contact.proposal?.rotations.map(\.card) ?? [] {
        standings[proposed.key] = .seen(name: contact.name, fingerprint: "\(proposed.fingerprint)")
      }
      standings[contact.card.key] =
        switch contact.state {
        case .seen: .seen(name: contact.name, fingerprint: "\(contact.card.fingerprint)")
        case .trusted: .trusted(name: contact.name)
        }
    }
    for key in contacts.ended {
      standings[key.key] = key.reason == .removed ? .removed(name: key.name) : .replaced(name: key.name)
    }
    // Under the name that the contact has now.
    for contact in contacts.all {
      for key in replaced[contact.card.key] ?? [] { standings[key] = .replaced(name: contact.name) }
    }
    return KnownSenders(standings, replaced: replaced)
  }
}
