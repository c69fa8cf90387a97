/// What is wrong with a database file.
public struct DatabaseFileError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The kinds of fault.
  public enum Code: String, Sendable {
    /// The file does not begin as a database does.
    case notADatabase = "not-a-database"
    /// The header says something that no database has.
    case badHeader = "bad-header"
    /// The file ends before a page that is needed.
    case truncated
    /// A page is none of the kind that belongs in its place.
    case badPage = "bad-page"
    /// A cell reaches beyond its page, or says something impossible.
    case badCell = "bad-cell"
    /// A chain of overflow pages ends too early, or leads out of the file.
    case badOverflow = "bad-overflow"
    /// A record contradicts itself.
    case badRecord = "bad-record"
    /// Pages lead back to one another, or too deep.
    case cycle
    /// The log does not hold what it must.
    case badLog = "bad-log"
  }

  /// What kind of fault.
  public let code: Code
  /// The page, counted from 1; nil where it is not a page's.
  public let page: Int?
  /// What is wrong, as a sentence for people.
  public let message: String

  init(_ code: Code, page: Int? = nil, _ message: String) {
    self.code = code
    self.page = page
    self.message = message
  }

  /// A sentence for people.
  public var description: String { page.map { "page \($0): \(message)" } ?? message }
}
