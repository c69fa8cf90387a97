import BuckiaBytes

/// A column that was renamed, as declared by the author: two schemas cannot tell it from one dropped and one added column.
public struct ColumnRename: Hashable, Codable, Sendable {
  /// The table.
  public let table: TableName
  /// The former name of the column.
  public let oldName: String
  /// The current name of the column.
  public let newName: String

  /// Declares that a column was renamed.
  public init(table: TableName, from oldName: String, to newName: String) {
    self.table = table
    self.oldName = oldName
    self.newName = newName
  }

  /// Why the declaration is invalid; nil when it is valid.
  package var refusal: String? {
    if let refusal = table.refusal { return refusal }
    for name in [oldName, newName] {
      if name.isEmpty { return "a name is empty" }
      if name.utf8.contains(0) { return "a name contains a NUL" }
      if name.utf8.count > TableDefinition.nameByteLimit {
        return "a name is longer than \(TableDefinition.nameByteLimit) bytes"
      }
    }
    return ASCIIName.matches(oldName, newName) ? "both names are the same" : nil
  }
}

/// All known renames, which give the other names under which a column may be found.
package struct ColumnRenames: Equatable, Sendable {
  private var neighbours: [TableName: [[UInt8]: [String]]] = [:]

  /// Collects renames. Their order does not matter.
  package init(_ renames: [ColumnRename] = []) {
    for rename in renames {
      neighbours[rename.table, default: [:]][Self.key(rename.oldName), default: []].append(rename.newName)
      neighbours[rename.table, default: [:]][Self.key(rename.newName), default: []].append(rename.oldName)
    }
  }

  /// True if there are no renames.
  package var isEmpty: Bool { neighbours.isEmpty }

  /// All other names that a column has or had, the fewest renames away first.
  package func otherNames(of column: String, in table: TableName) -> [String] {
    guard let known = neighbours[table] else { return [] }
    var seen: Set<[UInt8]> = [Self.key(column)]
    var found: [String] = []
    var open = [column]
    while !open.isEmpty {
      for name in known[Self.key(open.removeFirst())] ?? [] where seen.insert(Self.key(name)).inserted {
        found.append(name)
        open.append(name)
      }
    }
    return found
  }

  // Bytes, because Swift's strings treat composed and decomposed letters as equal and SQLite does not.
  private static func key(_ name: String) -> [UInt8] { Array(ASCIIName.folded(name).utf8) }
}
