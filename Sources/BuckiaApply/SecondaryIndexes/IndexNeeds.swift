import BuckiaLedger
import SQLiteSchemas
import SQLiteConnections

/// Which indexes are needed while changes are applied, so that they have to stay whatever keeping them takes.
struct IndexNeeds {
  private let session: ApplySession
  private let indexes: IndexMaintenance?
  /// The tables whose rows may be looked for by the rows that refer to them; nil for any.
  private let parents: Set<TableName>?

  /// - Parameters:
  ///   - expected: How many changes there will be of each table; nil where that is not known.
  ///   - indexes: Copies of triggers that read tables while rows are written.
  init(
    expecting expected: [TableName: ApplyCounts]?, keeping indexes: IndexMaintenance?, in session: ApplySession
  ) {
    self.session = session
    self.indexes = indexes
    parents = expected.map { Set($0.filter { $0.value.updated + $0.value.deleted > 0 }.keys) }
  }

  /// The indexes of a table that may be dropped for a while.
  ///
  /// - Parameter matchesContent: Whether rows are found by their content, for which any index can serve.
  func droppable(_ all: [SecondaryIndex], of table: TableDefinition, matchesContent: Bool) throws -> Set<Int> {
    let name = TableName(table.name)
    guard !matchesContent, !isRead(name) else { return [] }
    let references = try referringColumns(of: table)
    return Set(
      all.indices.filter { place in
        let index = all[place]
        guard !index.isUnique, let leading = index.leading ?? index.columns.min() else { return false }
        return !references.contains(leading)
      })
  }

  /// Whether triggers that maintain other indexes read a table.
  private func isRead(_ table: TableName) -> Bool {
    guard let indexes else { return false }
    return indexes.copies.contains { copy in
      copy.references.sources.contains { indexes.schema.sources(of: $0).contains(table) }
    }
  }

  /// The columns by which rows of a table refer to rows that may be changed, as places in the local layout.
  private func referringColumns(of table: TableDefinition) throws -> Set<Int> {
    let offset = table.isKeyedByRowID ? 1 : 0
    var columns: Set<Int> = []
    for key in table.foreignKeys where parents?.contains(TableName(key.parent)) != false {
      columns.formUnion(key.columns.compactMap { table.column(named: $0) }.map { $0 + offset })
    }
    return columns
  }
}
