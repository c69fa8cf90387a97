import SQLiteSchemas
import SQLiteChangesets

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
  /// One without a parent is none, nor is one with a generated column: no change tells the value of that.
  ///
  /// - Parameter match: How the changes meet the table.
  /// - Throws: `SQLiteError` when the schema cannot be read.
  static func all(of match: TableMatch, in schema: SchemaReader) throws -> [ReferenceLink] {
    let child = match.local
    let offset = child.isKeyedByRowID ? 1 : 0
    return try child.foreignKeys.compactMap { key in
      guard let entry = schema.entry(named: TableName(key.parent)), entry.kind == .table else { return nil }
      let parent = try schema.definition(of: entry)
      let parentColumns = parent.columns(referredToBy: key)
      let childColumns = key.columns.compactMap { name in
        child.column(named: name).flatMap { match.columns.firstIndex(of: $0 + offset) }
      }
      guard !childColumns.isEmpty, childColumns.count == key.columns.count, parentColumns.count == key.columns.count
      else {
        return nil
      }
      return ReferenceLink(
        child: TableName(child.name), parent: parent, parentColumns: parentColumns, childColumns: childColumns)
    }
  }

  /// The values by which a change makes its row refer to another: those it sets, and what the row has beside them.
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
  /// A copy of the local row with the key of a change; nil when there is none.
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
