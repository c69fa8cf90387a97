/// Why a database file or its write-ahead log cannot be read: damage, or a failure of the file system.
public struct DatabaseFileError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The kinds of error.
  public enum Code: String, Sendable {
    /// The file does not start with the header of an SQLite database.
    case notADatabase = "not-a-database"
    /// The database header holds an invalid value.
    case badHeader = "bad-header"
    /// The file ends before a page that is needed.
    case truncated
    /// A page is not of the type that its place in the b-tree requires.
    case badPage = "bad-page"
    /// A cell extends beyond its page, or holds an invalid value.
    case badCell = "bad-cell"
    /// An overflow chain ends too early, or leads to a page that does not exist.
    case badOverflow = "bad-overflow"
    /// The header of a record does not match the size of the record.
    case badRecord = "bad-record"
    /// Two pointers lead to one page, or a b-tree is too deep.
    case cycle
    /// The write-ahead log does not hold the requested state.
    case badLog = "bad-log"
    /// The two databases of a comparison have different page sizes or reserved bytes.
    case pageSizesDiffer = "page-sizes-differ"
    /// The operating system cannot open or read the file.
    case unreadable
  }

  /// The kind of error.
  public let code: Code
  /// The number of the page at fault, from 1; nil when the error is not about one page.
  public let page: Int?
  /// What is wrong, in English.
  public let message: String

  init(_ code: Code, page: Int? = nil, _ message: String) {
    self.code = code
    self.page = page
    self.message = message
  }

  /// The message, after the page number when there is one.
  public var description: String { page.map { "page \($0): \(message)" } ?? message }
}

extension DatabaseFileError {
  static func visitedTwice(_ page: Int) -> DatabaseFileError {
    DatabaseFileError(.cycle, page: page, "two pointers lead to this page")
  }
}
