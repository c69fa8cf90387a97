import BuckiaBytes
import BuckiaFormat

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

  /// Keeps somebody's card, or the new keys that a contact proposes. Neither is trusted by that: see
  /// ``trustContact(_:fingerprint:)``.
  ///
  /// - Parameters:
  ///   - text: A card or a rotation: one line of text.
  ///   - name: What a new contact is called here; nil for what the card says.
  /// - Returns: What came of it.
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

  /// Trusts a contact: what they have signed is applied from now on where only known senders are trusted.
  ///
  /// Show ``Contact/fingerprintToConfirm`` first, and let a person compare it with what its owner reads to them. Where the contact
  /// proposes new keys, those are trusted, and the old ones end for good.
  ///
  /// - Parameters:
  ///   - name: The contact.
  ///   - fingerprint: What was compared.
  /// - Throws: `BuckiaError`: `noSuchContact`; `otherFingerprint` when the contact has other keys. Nothing has been changed then.
  @discardableResult
  public func trustContact(_ name: String, fingerprint: Fingerprint) throws -> Contact {
    try change { try $0.trust(name, fingerprint: fingerprint, at: WallClock.unixMilliseconds) }
  }

  /// Removes a contact. Nothing that their key has signed is ever applied again, in any database of this person, whoever else is
  /// trusted; nor can the card be added again. What was applied before stays: see
  /// ``DatabaseManager/undo(_:options:)``.
  ///
  /// - Throws: `BuckiaError`: `noSuchContact`.
  @discardableResult
  public func removeContact(_ name: String) throws -> Contact {
    try change { try $0.remove(name, at: WallClock.unixMilliseconds) }
  }

  /// Gives a contact another name. Their shares go on.
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
