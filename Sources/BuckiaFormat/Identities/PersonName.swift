import BuckiaBytes
import SQLiteSchemas

/// The rule for names of identities and contacts that are made here. What others call themselves may break it, and is escaped
/// wherever it is shown.
enum PersonName {
  static let characterLimit = 64
  /// Letters of many marks have no end otherwise.
  static let byteLimit = 256

  /// What reports call senders that are no contacts.
  private static let reserved: Set<String> = ["unsigned", "unknown", "you", "own", "merge", "this database", "a merge"]

  /// Requires a name that can be shown, told from others, and written on a command line.
  ///
  /// - Throws: `IdentityError` with code `invalidName`.
  static func require(_ name: String) throws(IdentityError) {
    guard isBounded(name) else {
      throw IdentityError(
        .invalidName, "a name has 1 to \(characterLimit) characters (and at most \(byteLimit) bytes); choose another")
    }
    guard name.unicodeScalars.allSatisfy(EscapedText.isHarmless) else {
      throw IdentityError(
        .invalidName,
        "the name \(EscapedText.quoted(name)) has characters that cannot be seen or turn text around; choose another")
    }
    guard name.first != " ", name.last != " " else {
      throw IdentityError(.invalidName, "a name neither begins nor ends with a space; choose another")
    }
    let lowercased = name.lowercased()
    guard !reserved.contains(lowercased), !lowercased.hasPrefix("key ") else {
      throw IdentityError(
        .invalidName, "reports say \(EscapedText.quoted(name)) of something else; choose another name")
    }
    // Where a contact is asked for, these mean a file, a key or an option.
    guard !name.utf8.contains(UInt8(ascii: "/")), !name.hasPrefix("-"), !lowercased.hasPrefix("age1") else {
      throw IdentityError(
        .invalidName,
        "the name \(EscapedText.quoted(name)) could be taken for a file, an option or a key: it has a / or begins with - or "
          + "age1; choose another")
    }
  }

  /// Whether ``require(_:)`` takes a name.
  static func isAllowed(_ name: String) -> Bool {
    do throws(IdentityError) {
      try require(name)
      return true
    } catch {
      return false
    }
  }

  static func isBounded(_ name: String) -> Bool {
    !name.isEmpty && name.utf8.count <= byteLimit && name.count <= characterLimit
  }
}
