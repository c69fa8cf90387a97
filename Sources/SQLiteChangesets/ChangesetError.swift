/// Why bytes are not a changeset, with the place where reading stopped.
public struct ChangesetError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The kinds of damage that are told apart.
  public enum Code: String, Sendable {
    /// The bytes end inside a header, a change or a value.
    case truncated
    /// A byte that opens a change is no operation and no table header.
    case unknownOperation
    /// A value has a kind byte outside 0…5.
    case unknownValueKind
    /// A table header announces no columns or more than 65,536.
    case badColumnCount
    /// A table header marks no column as part of the key.
    case missingKey
    /// A length does not fit its bounds.
    case badLength
    /// A change comes before the first table header.
    case changeBeforeTable
    /// Changeset and patchset tables are mixed in one input.
    case mixedFormats
    /// A value that this operation needs is absent, or one that it must not have is there.
    case misplacedValue
    /// Two inputs describe one table with different columns or keys.
    case incompatibleTables
    /// The operation needs old values, which a patchset does not have.
    case needsChangeset
    /// The changes go back and forth between tables more often than anything real does.
    case tooManySections
  }

  /// What is wrong.
  public let code: Code
  /// The offset in bytes, from 0, of the element that is wrong.
  public let offset: Int
  /// The table in whose changes it was found, when known.
  public let table: String?

  /// Makes an error.
  public init(_ code: Code, offset: Int, table: String? = nil) {
    self.code = code
    self.offset = offset
    self.table = table
  }

  /// A sentence for people: what is wrong and where.
  public var description: String {
    let place = table.map { "at byte \(offset), in the changes of table \"\($0)\"" } ?? "at byte \(offset)"
    let what =
      switch code {
      case .truncated: "the changeset ends too early"
      case .unknownOperation: "this is no change and no table header"
      case .unknownValueKind: "a value has an unknown kind"
      case .badColumnCount: "a table header announces an impossible number of columns"
      case .missingKey: "a table header names no key column"
      case .badLength: "a length is out of bounds"
      case .changeBeforeTable: "a change stands before any table header"
      case .mixedFormats: "changeset and patchset tables are mixed"
      case .misplacedValue: "a value is missing, or stands where none may be"
      case .incompatibleTables: "a table appears with different columns or another key"
      case .tooManySections: "the changes go back and forth between tables too often"
      case .needsChangeset: "this needs a changeset, and a patchset has no old values"
      }
    return "\(what) (\(place))"
  }
}
