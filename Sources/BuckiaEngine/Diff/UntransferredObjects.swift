import SQLiteConnections
import SQLiteSchemas

// What of a table's definition does not travel with it.
extension ComparisonRun {
  /// Names parts that others do without.
  ///
  /// - Parameters:
  ///   - table: The table in the newer database.
  ///   - older: The same in the older one; nil when it is new.
  ///   - columns: The columns that are new.
  mutating func nameLostParts(
    of table: TableDefinition, comparedWith older: TableDefinition?, columns: [ColumnDefinition]
  ) {
    // The default of a column that is not a literal is lost only where the column is made anew.
    for column in columns where column.hasExpressionDefault {
      skip("\(table.name).\(column.name)", "its default is an expression, which does not travel; its values do")
    }
    for column in table.generated
    where older?.generated.contains(where: { ASCIIName.matches($0.name, column.name) }) != true {
      skip("\(table.name).\(column.name)", "a generated column is computed from its expression, which does not travel")
    }
    guard let older else { return }
    for key in table.foreignKeys where !older.foreignKeys.contains(where: { $0.isSame(as: key) }) {
      skip(
        table.name,
        "its new foreign key to \"\(key.parent)\" does not travel: foreign keys are made along with their table only")
    }
  }

  /// Names clauses of the tables that have changed which do not travel: CHECK and ON CONFLICT, where they are new, and the
  /// foreign keys of new tables to old ones.
  mutating func nameLostClauses(_ older: borrowing SchemaReader, _ newer: borrowing SchemaReader) {
    let made = Set(tables.filter(\.isNew).map { TableName($0.definition.name) })
    for table in tables where table.definition.module == nil {
      let name = table.definition.name
      let sql = newer.entry(named: TableName(name))?.sql ?? ""
      let found = CheckConstraints.expressions(in: sql)
      let known = table.isNew ? [] : CheckConstraints.expressions(in: older.entry(named: TableName(name))?.sql ?? "")
      if found != known {
        skip(
          name,
          table.isNew
            ? "its CHECK constraints do not travel: the table is created without them"
            : "its CHECK constraints have changed, which does not travel: where the old ones hold, they may refuse rows"
        )
      }
      guard table.isNew else { continue }
      if ConflictClauses.stand(in: sql) {
        skip(name, "its ON CONFLICT clauses do not travel: the table is created without them")
      }
      for key in table.definition.foreignKeys where !made.contains(TableName(key.parent)) {
        skip(
          name,
          "its foreign key to \"\(key.parent)\" does not travel: one is made only between tables that are created together"
        )
      }
    }
  }
}

extension ComparisonRun {
  /// Names keys and UNIQUE constraints of new tables that compare a column otherwise than it is declared.
  mutating func nameLostCollations(_ newer: borrowing SQLiteConnection) throws {
    let query = """
      SELECT i.origin, x.name, x.coll FROM pragma_index_list(?1, 'main') AS i, pragma_index_xinfo(i.name, 'main') AS x
      WHERE i.origin IN ('pk', 'u') AND x.key ORDER BY i.seq DESC, x.seqno
      """
    for table in tables where table.isNew && table.definition.module == nil {
      let definition = table.definition
      var found: [SkippedItem] = []
      try newer.forEachRow(of: query, binding: [definition.name]) { row in
        guard let place = definition.column(named: row.text(at: 1) ?? "") else { return }
        let column = definition.columns[place]
        let collation = row.text(at: 2) ?? ""
        guard !ASCIIName.matches(column.collation, collation) else { return }
        let what =
          row.text(at: 0) == "pk"
          ? "its primary key compares \"\(column.name)\" by \(collation), which does not travel: the table is created without that"
          : "UNIQUE on \"\(column.name)\" compares by \(collation), and does not travel: the table is created without it"
        found.append(SkippedItem(name: definition.name, reason: what))
      }
      for item in found { skip(item.name, item.reason) }
    }
  }
}

extension ForeignKey {
  /// Whether both lead from the same columns to the same ones.
  fileprivate func isSame(as other: ForeignKey) -> Bool {
    TableName(parent) == TableName(other.parent) && columns.elementsEqual(other.columns, by: ASCIIName.matches)
      && parentColumns.elementsEqual(other.parentColumns, by: ASCIIName.matches)
  }
}
