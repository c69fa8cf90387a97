/// The name of a table, equal to another when SQLite takes both for the same table.
public struct TableName: Hashable, Sendable, CustomStringConvertible, ExpressibleByStringLiteral {
  /// The name as it is written.
  public let text: String
  private let folded: String

  /// Takes a name as it is written, without quotes.
  public init(_ text: String) {
    self.text = text
    folded = ASCIIName.folded(text)
  }

  /// Takes a name as it is written, without quotes.
  public init(stringLiteral value: String) { self.init(value) }

  /// The name as it is written.
  public var description: String { text }

  /// The name as an SQL identifier.
  public var quoted: String { SQLText.identifier(text) }

  /// Two spellings of one table are equal.
  ///
  /// Bytes are compared: to Swift's strings two ways to write an accented letter are equal, to SQLite they are not.
  public static func == (first: TableName, second: TableName) -> Bool {
    first.folded.utf8.elementsEqual(second.folded.utf8)
  }

  /// Hashes what `==` compares.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(folded.utf8.count)
    for byte in folded.utf8 { hasher.combine(byte) }
  }

  /// Why a diff may never name this table, whatever the local database holds, or nil.
  ///
  /// SQLite's own tables, ours and the names of its pragma functions stay at home.
  public var refusal: String? {
    for prefix in ["sqlite_", "buckia_", "pragma_"] where folded.utf8.starts(with: prefix.utf8) {
      return "names that begin with \(prefix) are reserved"
    }
    if text.isEmpty { return "the name is empty" }
    if text.utf8.contains(0) { return "the name contains a NUL" }
    return nil
  }
}
