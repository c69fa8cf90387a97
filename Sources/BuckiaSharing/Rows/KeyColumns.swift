import BuckiaApply
import BuckiaBytes
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// A reference that no foreign key declares, and its table.
typealias KeyLink = (table: TableName, key: ForeignKey)

/// The columns that hold integer keys of tables: the keys themselves, and columns that refer to them, directly or
/// through the key of another table.
struct KeyColumns {
  private var targets: [TableName: [String: TableName]] = [:]

  /// - Parameters:
  ///   - definitions: The tables.
  ///   - keyed: The tables whose integer keys each replica assigns itself; nil if the definitions are the local ones.
  ///   - links: References that no foreign key declares.
  init(_ definitions: [TableDefinition], keyed: Set<TableName>? = nil, links: [KeyLink]) {
    let keyed = keyed ?? definitions.namesWithOwnKeys(links)
    let tables = Dictionary(definitions.map { (TableName($0.name), $0) }) { first, _ in first }
    for (name, table) in tables where keyed.contains(name) {
      guard let column = table.ownKeyColumn else { continue }
      targets[name] = [ASCIIName.folded(column): name]
    }
    var isDone = false
    while !isDone {
      isDone = true
      for (name, table) in tables {
        for key in table.references(with: links) {
          guard let parent = tables[TableName(key.parent)] else { continue }
          let theirs = parent.columns(referredToBy: key).map { parent.columns[$0].name }
          guard theirs.count == key.columns.count else { continue }
          for (mine, other) in zip(key.columns, theirs) {
            guard let target = self.table(in: TableName(parent.name), column: other),
              self.table(in: name, column: mine) == nil
            else { continue }
            targets[name, default: [:]][ASCIIName.folded(mine)] = target
            isDone = false
          }
        }
      }
    }
  }

  /// The table whose keys a column holds; nil for none.
  func table(in table: TableName, column: String) -> TableName? { targets[table]?[ASCIIName.folded(column)] }

  /// The table whose keys each of some columns holds.
  func tables(in table: TableName, columns: [String]) -> [TableName?] {
    guard let known = targets[table] else { return columns.map { _ in nil } }
    return columns.map { known[ASCIIName.folded($0)] }
  }

  /// The tables whose keys the columns of a table hold.
  func referred(by table: TableName) -> Set<TableName> { Set((targets[table] ?? [:]).values) }
}

extension TableDefinition {
  /// The foreign keys, and the references that no foreign key declares.
  fileprivate func references(with links: [KeyLink]) -> [ForeignKey] {
    let name = TableName(name)
    return foreignKeys + links.filter { $0.table == name }.map(\.key)
  }

  /// The single column of an integer key; nil for other keys.
  fileprivate var ownKeyColumn: String? {
    guard module == nil, primaryKey.count == 1, affinity(at: primaryKey[0]) == .integer else { return nil }
    return columns[primaryKey[0]].name
  }

  /// True if this replica assigns the integer keys of rows, rather than the rows to which they refer.
  fileprivate func hasOwnKeys(_ links: [KeyLink]) -> Bool {
    guard let column = ownKeyColumn else { return false }
    return !references(with: links).contains { $0.columns.contains { ASCIIName.matches($0, column) } }
  }
}

extension [TableDefinition] {
  /// The names of the tables whose integer keys this replica assigns.
  func namesWithOwnKeys(_ links: [KeyLink]) -> Set<TableName> {
    Set(filter { $0.hasOwnKeys(links) }.map { TableName($0.name) })
  }
}

extension SchemaReader {
  /// The local definitions of some tables and of all that they refer to, directly or indirectly.
  ///
  /// - Throws: `SQLiteError`.
  func definitions(
    of tables: [TableName], with links: [KeyLink]
  ) throws -> [TableDefinition] {
    var found: [TableDefinition] = []
    var seen = Set(tables)
    var open = tables
    while let name = open.popLast() {
      guard let table = try table(named: name) else { continue }
      found.append(table)
      for key in table.references(with: links) {
        let parent = TableName(key.parent)
        if seen.insert(parent).inserted { open.append(parent) }
      }
    }
    return found
  }
}

extension ShareScope {
  /// The references that no foreign key declares, as foreign keys.
  var keyLinks: [KeyLink] {
    references.map { reference in
      let key = ForeignKey(
        columns: reference.columns, parent: reference.parent.text, parentColumns: reference.parentColumns)
      return (reference.table, key)
    }
  }
}

/// Integer keys as records.
enum IntegerKey {
  /// An integer key in the format of changesets.
  static func encoded(_ key: Int64) -> [UInt8] {
    var writer = ChangesetWriter()
    writer.append(integer: key)
    return writer.bytes
  }

  /// The integer key that ``encoded(_:)`` has written; nil for any other key.
  static func decoded(_ key: [UInt8]) -> Int64? {
    key.withRawSpan { bytes in
      var position = 0
      let value = ValueSlice(verified: bytes, at: &position)
      return value.kind == .integer && position == bytes.byteCount ? value.integer(in: bytes) : nil
    }
  }
}
