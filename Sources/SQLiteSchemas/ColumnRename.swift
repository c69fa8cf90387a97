/// A column that has another name now: what its author declares, because nobody can tell from two schemas.
public struct ColumnRename: Hashable, Sendable {
  /// The table.
  public let table: TableName
  /// The name that the column had.
  public let oldName: String
  /// The name that it has.
  public let newName: String

  /// Declares a rename.
  public init(table: TableName, from oldName: String, to newName: String) {
    self.table = table
    self.oldName = oldName
    self.newName = newName
  }

  /// Why this cannot be a rename, or nil.
  public var refusal: String? {
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

/// The renames that are known, whoever declared them and when: under which other names a column may be found.
public struct ColumnRenames: Sendable {
  private var neighbours: [TableName: [[UInt8]: [String]]] = [:]

  /// Takes renames in, in any order.
  public init(_ renames: [ColumnRename] = []) {
    for rename in renames {
      neighbours[rename.table, default: [:]][Self.key(rename.oldName), default: []].append(rename.newName)
      neighbours[rename.table, default: [:]][Self.key(rename.newName), default: []].append(rename.oldName)
    }
  }

  /// Whether there are none.
  public var isEmpty: Bool { neighbours.isEmpty }

  /// All names that a column has had or has got, nearest first, its own left out.
  public func otherNames(of column: String, in table: TableName) -> [String] {
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

  // Bytes, because Swift takes composed and decomposed letters for equal and SQLite does not.
  private static func key(_ name: String) -> [UInt8] { Array(ASCIIName.folded(name).utf8) }
}
