import SQLiteChangesets
import SQLiteSchemas

/// Finds the rows of a diff that refer to left-out rows of the same diff, directly or through others, by the declared
/// foreign keys of the local schema, in one pass over the tables that can have any.
struct ReferenceSearch {
  let session: ApplySession
  let store: ReferenceStore
  let changes: IncomingChanges
  let matches: [TableName: TableMatch]
  /// True if a row of a table is left out when it refers to one that is.
  let staysOut: (TableName) -> Bool

  /// Searches, and adds the found rows to the store.
  ///
  /// - Parameter refused: The tables with rows that were left out.
  /// - Returns: True if any row is new, or has another reason than before.
  /// - Throws: `SQLiteError`, `ByteStreamError`.
  func run(from refused: Set<TableName>) throws -> Bool {
    let summary = try changes.feed.summary()
    let written = Set(summary.tables.filter { $0.inserted + $0.updated > 0 }.map { TableName($0.table.name) })
    let links = try links(from: refused, to: written)
    guard !links.isEmpty else { return false }
    try store.beginSearch(links)
    let sections = TableSections(summary, of: changes.changeset)
    var row: Int64 = 0
    for table in summary.tables { try add(table.table, links, sections, &row) }
    return try store.finishSearch(links)
  }

  /// The foreign keys by which the written tables refer to the refused ones, directly or through each other.
  private func links(from refused: Set<TableName>, to written: Set<TableName>) throws -> [ReferenceLink] {
    let references = try session.references()
    var reached = refused
    var open = Array(refused)
    var children: Set<TableName> = []
    while let parent = open.popLast() {
      for child in references.children(of: parent) where written.contains(child) {
        children.insert(child)
        if reached.insert(child).inserted { open.append(child) }
      }
    }
    let schema = try session.schema()
    return try children.compactMap { matches[$0] }.flatMap { try ReferenceLink.all(of: $0, in: schema) }
      .filter { reached.contains(TableName($0.parent.name)) }
  }

  /// Adds the rows of one table at either end of a foreign key.
  private func add(
    _ header: ChangesetTable, _ links: [ReferenceLink], _ sections: TableSections, _ row: inout Int64
  ) throws {
    let name = TableName(header.name)
    guard let match = matches[name] else { return }
    let local = TableName(match.local.name)
    let children = links.enumerated().filter { $1.child == local }
    let parents = links.enumerated().compactMap { number, link -> (number: Int, columns: [Int])? in
      guard TableName(link.parent.name) == local else { return nil }
      let columns = link.parentColumns.compactMap { match.columns.firstIndex(of: $0 + match.local.columnOffset) }
      return columns.count == link.parentColumns.count ? (number, columns) : nil
    }
    guard !children.isEmpty || !parents.isEmpty else { return }
    let statements = try session.statements(for: match, header: header)
    let key = RowKey(of: header)
    let expands = staysOut(local)
    try sections.forEachChange(of: name) { change, bytes in
      guard change.operation != .delete else { return }
      row += 1
      var isUsed = false
      for (number, columns) in parents where change.operation == .insert {
        guard let values = try Self.values(of: columns, change, bytes) else { continue }
        try store.add(values, at: .parent, of: number, row: row)
        isUsed = true
      }
      for (number, link) in children {
        guard let values = try link.values(of: change, bytes, statements) else { continue }
        try store.add(values, at: .child, of: number, row: row)
        isUsed = true
      }
      guard isUsed else { return }
      let isInsert = change.operation == .insert
      try store.add(row: row, of: header.name, key.identity(of: change, bytes), expands: expands && isInsert)
    }
  }

  /// The values of an INSERT in some columns; nil if one of them is NULL.
  private static func values(of columns: [Int], _ change: DecodedChange, _ bytes: RawSpan) throws -> RowCopy? {
    var writer = ChangesetWriter()
    for column in columns {
      guard change.new(column).kind != .null else { return nil }
      writer.append(change.new(column), of: bytes)
    }
    return try RowCopy(record: writer.bytes)
  }
}

/// A foreign key, in the columns of the changes that it is looked for in.
struct ReferenceLink {
  /// The table that refers.
  let child: TableName
  /// The table that is referred to.
  let parent: TableDefinition
  /// The parent's columns.
  let parentColumns: [Int]
  /// The columns of the child's changes that refer to them.
  let childColumns: [Int]

  /// The foreign keys of a table whose columns its changes have.
  ///
  /// A foreign key without a parent does not count, nor does one with a generated column, whose value no change
  /// contains.
  ///
  /// - Parameter match: How the changes meet the table.
  /// - Throws: `SQLiteError` when the schema cannot be read.
  static func all(of match: TableMatch, in schema: SchemaReader) throws -> [ReferenceLink] {
    let child = match.local
    return try child.foreignKeys.compactMap { key in
      guard let parent = try schema.table(named: TableName(key.parent)) else { return nil }
      let parentColumns = parent.columns(referredToBy: key)
      let childColumns = key.columns.compactMap { name in
        child.column(named: name).flatMap { match.columns.firstIndex(of: $0 + child.columnOffset) }
      }
      guard !childColumns.isEmpty, childColumns.count == key.columns.count, parentColumns.count == key.columns.count
      else {
        return nil
      }
      return ReferenceLink(
        child: TableName(child.name), parent: parent, parentColumns: parentColumns, childColumns: childColumns)
    }
  }

  /// The referring values of a changed row: those that the change sets, and the row's own beside them.
  ///
  /// - Returns: Nil when it sets none, or when the row refers to nothing.
  func values(of change: DecodedChange, _ bytes: RawSpan, _ statements: TableStatements) throws -> RowCopy? {
    guard childColumns.contains(where: { change.new($0).isDefined }) else { return nil }
    var local: RowCopy?
    var writer = ChangesetWriter()
    for column in childColumns {
      let value = change.new(column).isDefined || !statements.isKey[column] ? change.new(column) : change.row(column)
      if value.isDefined {
        if value.kind == .null { return nil }
        writer.append(value, of: bytes)
        continue
      }
      if local == nil { local = try statements.copyOfRow(of: change, bytes) }
      guard let local else { return nil }
      let kept = local.values[statements.match.columns[column]]
      if kept.kind == .null { return nil }
      local.record.withRawSpan { writer.append(kept, of: $0) }
    }
    return try RowCopy(record: writer.bytes)
  }
}

extension TableStatements {
  /// A copy of the local row with the key of a change; nil if there is none.
  func copyOfRow(of change: DecodedChange, _ bytes: RawSpan) throws -> RowCopy? {
    guard !change.hasNullKey else { return nil }
    let queries = try selection.get()
    defer { for query in queries { query.statement.reset() } }
    for query in queries {
      try bindKey(of: change, bytes, to: query)
      guard try query.statement.step() else { return nil }
    }
    return try CurrentRow(queries).copied()
  }
}
