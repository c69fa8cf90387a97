import BuckiaBytes

/// The name of a table. Names that SQLite treats as the same are equal.
public struct TableName: Hashable, Sendable, CustomStringConvertible, ExpressibleByStringLiteral {
  /// The name as written, without quotes.
  public let text: String
  private let folded: String

  /// Creates a name.
  ///
  /// - Parameter text: The name without quotes.
  public init(_ text: String) {
    self.text = text
    folded = ASCIIName.folded(text)
  }

  /// Creates a name from a literal without quotes.
  public init(stringLiteral value: String) { self.init(value) }

  /// The name as written, without quotes.
  public var description: String { text }

  /// The name as an SQL identifier.
  public var quoted: String { SQLText.identifier(text) }

  /// Whether SQLite treats two names as the same.
  ///
  /// Compares bytes, because Swift's strings treat composed and decomposed letters as equal and SQLite does not.
  public static func == (first: TableName, second: TableName) -> Bool {
    first.folded.utf8.elementsEqual(second.folded.utf8)
  }

  /// Hashes the bytes that `==` compares.
  public func hash(into hasher: inout Hasher) {
    var folded = folded
    hasher.combine(folded.utf8.count)
    folded.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
  }

  /// Whether the name is that of a table of SQLite's own, such as `sqlite_stat1`: no other may begin with `sqlite_`.
  package var isReservedBySQLite: Bool { folded.utf8.starts(with: "sqlite_".utf8) }

  /// Why no diff may contain a table with this name; nil when one may.
  ///
  /// The tables of SQLite and Buckia, and the names of pragma functions, are reserved.
  public var refusal: String? {
    for prefix in ["sqlite_", "buckia_", "pragma_"] where folded.utf8.starts(with: prefix.utf8) {
      return "names that begin with \(prefix) are reserved"
    }
    if text.isEmpty { return "the name is empty" }
    if text.utf8.contains(0) { return "the name contains a NUL" }
    return nil
  }
}
