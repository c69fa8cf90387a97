import BuckiaBytes
import SQLiteSchemas

/// The constraint that refuses a row, as far as SQLite's message and the schema tell.
public struct ViolatedConstraint: Hashable, Sendable {
  /// The kinds of constraints.
  public enum Kind: String, Sendable {
    /// A UNIQUE constraint or index, or the primary key.
    case unique
    /// A CHECK constraint.
    case check
    /// A NOT NULL constraint.
    case notNull = "not-null"
    /// A foreign key.
    case foreignKey = "foreign-key"
  }

  /// What kind of constraint.
  public let kind: Kind
  /// The name of the constraint or index; nil where it has none, or it is not known.
  public package(set) var name: String?
  /// The columns that it is about; empty where they are not known.
  public package(set) var columns: [String] = []
  /// The expression: of a CHECK constraint, or of the index with the WHERE that it may have.
  public package(set) var expression: String?
  /// The table that a foreign key refers to.
  public package(set) var parentTable: String?
  /// The columns that a foreign key refers to.
  public package(set) var parentColumns: [String] = []

  /// Makes one.
  package init(_ kind: Kind) { self.kind = kind }

  /// Reads SQLite's message about a constraint, such as `UNIQUE constraint failed: notes.code`.
  ///
  /// - Parameters:
  ///   - message: The message.
  ///   - table: The table that the row is of.
  package init?(message: String, table: String) {
    for (prefix, kind) in Self.prefixes where message.utf8.starts(with: prefix.utf8) {
      self.init(kind)
      let rest = String(decoding: message.utf8.dropFirst(prefix.utf8.count), as: UTF8.self)
      switch kind {
      case .check: expression = rest
      case .foreignKey: break
      case .unique where rest.utf8.starts(with: "index '".utf8) && rest.utf8.last == UInt8(ascii: "'"):
        name = String(decoding: rest.utf8.dropFirst("index '".utf8.count).dropLast(), as: UTF8.self)
      case .unique, .notNull: columns = Self.columns(in: rest, of: table)
      }
      return
    }
    return nil
  }

  /// Whether this is the UNIQUE constraint of an index.
  ///
  /// - Parameters:
  ///   - index: The name of the index.
  ///   - members: Its columns, nil in the place of an expression.
  package func isOf(index: String, over members: [String?]) -> Bool {
    guard kind == .unique else { return false }
    if let name { return ASCIIName.matches(name, index) }
    return members.elementsEqual(columns) { member, column in member.map { ASCIIName.matches($0, column) } ?? false }
  }

  private static let prefixes: [(String, Kind)] = [
    ("UNIQUE constraint failed: ", .unique), ("CHECK constraint failed: ", .check),
    ("NOT NULL constraint failed: ", .notNull), ("FOREIGN KEY constraint failed", .foreignKey),
  ]

  /// The columns in a list such as `notes.a, notes.b`. Names can hold anything, so the table in front of each parts them.
  private static func columns(in list: String, of table: String) -> [String] {
    let bytes = Array(list.utf8)
    let prefix = Array("\(table).".utf8)
    guard bytes.starts(with: prefix) else { return [] }
    let separator = Array(", ".utf8) + prefix
    var columns: [String] = []
    var column: [UInt8] = []
    var index = prefix.count
    while index < bytes.count {
      if bytes[index...].starts(with: separator) {
        columns.append(String(decoding: column, as: UTF8.self))
        column = []
        index += separator.count
      } else {
        column.append(bytes[index])
        index += 1
      }
    }
    return columns + [String(decoding: column, as: UTF8.self)]
  }
}
