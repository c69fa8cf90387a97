import BuckiaBytes

/// One kind of identity: how it unwraps the key of a file.
protocol IdentityKind: Sendable {
  /// The kind of stanza that it looks at; it skips all others.
  static var stanzaKind: String { get }

  /// Refuses a stanza of its kind that breaks a rule, whoever it is for.
  ///
  /// - Throws: `ByteStreamError`.
  static func check(_ stanza: Stanza) throws(ByteStreamError)

  /// Unwraps the key from a stanza of its kind that was checked.
  ///
  /// - Returns: The key; nil when the stanza is for somebody else.
  /// - Throws: `ByteStreamError`.
  func unwrap(_ stanza: Stanza) throws(ByteStreamError) -> FileKey?
}

extension IdentityKind {
  /// Looks through all stanzas of a header.
  func unwrap(_ stanzas: [Stanza]) throws(ByteStreamError) -> FileKey? {
    let mine = stanzas.filter { $0.kind == Self.stanzaKind }
    for stanza in mine { try Self.check(stanza) }
    for stanza in mine {
      if let key = try unwrap(stanza) { return key }
    }
    return nil
  }

  /// An argument that is bytes of a certain length.
  static func bytes(_ argument: String, count: Int) -> [UInt8]? {
    guard let bytes = Base64.decode(argument.utf8), bytes.count == count else { return nil }
    return bytes
  }

  /// A stanza that breaks a rule.
  static func malformed(_ what: String) -> ByteStreamError {
    HeaderReader.malformed("the key wrapped for \(stanzaKind) \(what)")
  }

  /// Refuses a wrapped key of any other length than that of a file's key: a longer one could open with several keys.
  static func checkBody(of stanza: Stanza) throws(ByteStreamError) {
    guard stanza.body.count == KeyWrapping.byteCount else { throw malformed("has the wrong length") }
  }
}
