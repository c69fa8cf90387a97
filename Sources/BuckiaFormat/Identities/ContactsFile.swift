/// The file that holds a person's contacts. It is changed by one program at a time, and replaced whole.
package struct ContactsFile: Sendable {
  private let document: PrivateDocument

  /// Where it is.
  package var path: String { document.path }

  package init(path: String) {
    document = PrivateDocument(path: path, subject: "the list of contacts", byteLimit: Contacts.documentByteLimit)
  }

  /// Reads the contacts; none where there is no file.
  ///
  /// - Throws: `IdentityError` with code `notPrivate`, `invalidFile` or `unsupportedFormat`; `ByteStreamError`.
  package func read() throws -> Contacts {
    guard let bytes = try document.bytes() else { return Contacts() }
    do throws(IdentityError) {
      return try Contacts(document: bytes)
    } catch {
      throw IdentityError(error.code, error.message, path: path)
    }
  }

  /// Changes the contacts, with no other program between reading and writing.
  ///
  /// - Parameter change: What to change. Where it throws, nothing is.
  /// - Throws: As ``read()`` and `change`; `IdentityError` with code `notLocked` where files cannot be locked.
  package func update<Result>(_ change: (inout Contacts) throws -> Result) throws -> Result {
    try document.locked {
      let old = try read()
      var contacts = old
      let result = try change(&contacts)
      if contacts != old { try document.write(contacts.document, replacing: true) }
      return result
    }
  }
}
