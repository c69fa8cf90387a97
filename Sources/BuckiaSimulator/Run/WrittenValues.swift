/// What edits have written and no later edit has overwritten that knew it. It must not get lost.
///
/// A value is identified by its table and column: its row may change with the key.
struct WrittenValues {
  /// A value in a column.
  struct Cell: Hashable {
    let table: Int
    let column: Int
    let value: ChangesetValue
  }

  /// The key of a row, as keys are compared.
  private typealias Place = [ChangesetValue]

  private let tables: [ReplicatedTable]
  /// The writer of each value, and the rows.
  private var authors: [Cell: [Int: Set<Place>]] = [:]
  /// The replica that has overwritten each value, and the rows. If two replicas write the same value, a later edit by
  /// one of them is no conflict for the other: it finds the value that it knows.
  private var overwritten: [Cell: [Int: Set<Place>]] = [:]

  init(of tables: [ReplicatedTable]) { self.tables = tables }

  private func cell(_ value: ChangesetValue, _ column: Int, of table: Int) -> Cell {
    Cell(table: table, column: column, value: tables[table].comparable(value, in: column))
  }

  /// Follows an edit.
  ///
  /// - Parameters:
  ///   - before: The rows of the replica before.
  ///   - after: The rows afterwards.
  ///   - known: The rows of the snapshot. Restoring a value of the snapshot is no edit that is sent.
  mutating func edit(of replica: Int, from before: DatabaseRows, to after: DatabaseRows, known: DatabaseRows) {
    for table in after.tables.indices {
      let old = before.tables[table]
      let new = after.tables[table]
      let (alikeBefore, alikeAfter) = (alike(old, table), alike(new, table))
      for (key, row) in old {
        let next = new[key] ?? alikeAfter[comparableKey(of: row, table)]
        for (column, value) in row.enumerated() where !isSame(next?[column], value, column, of: table) {
          let cell = cell(value, column, of: table)
          authors[cell] = nil
          overwritten[cell, default: [:]][replica, default: []].insert(comparableKey(of: row, table))
        }
      }
      for (key, row) in new {
        let last = old[key] ?? alikeBefore[comparableKey(of: row, table)]
        let shared = known.tables[table][key]
        for (column, value) in row.enumerated()
        where !isSame(last?[column], value, column, of: table) && value != .null && shared?[column] != value {
          let (cell, place) = (cell(value, column, of: table), comparableKey(of: row, table))
          authors[cell, default: [:]][replica, default: []].insert(place)
          overwritten[cell]?[replica]?.remove(place)
        }
      }
    }
  }

  // A key that is only spelled again is no value that could get lost: `Schemas/applying.md` names that limit.

  /// Rows by the collation of their keys; empty if equal keys are identical.
  private func alike(
    _ rows: [[ChangesetValue]: [ChangesetValue]], _ table: Int
  ) -> [[ChangesetValue]: [ChangesetValue]] {
    guard tables[table].foldsKeys else { return [:] }
    return Dictionary(rows.values.map { (comparableKey(of: $0, table), $0) }) { first, _ in first }
  }

  private func comparableKey(of row: [ChangesetValue], _ table: Int) -> Place {
    tables[table].key.map { tables[table].comparable(row[$0], in: $0) }
  }

  private func isSame(_ other: ChangesetValue?, _ value: ChangesetValue, _ column: Int, of table: Int) -> Bool {
    guard let other else { return false }
    return other == value || tables[table].comparable(other, in: column) == tables[table].comparable(value, in: column)
  }

  /// Checks that everything is still there.
  ///
  /// - Parameters:
  ///   - replicas: The replicas, all of which have received everything.
  ///   - keepsLocal: True if each replica keeps its own values.
  /// - Throws: `Violation`.
  func require(in replicas: [Replica], keepsLocal: Bool) throws {
    let recorded = try Set(replicas.flatMap(recorded(by:)))
    for replica in replicas where !replica.hasRefused {
      let present = present(in: try replica.rows())
      let missing = authors.filter { !present.contains($0.key) && !isOverwrittenByOthers($0.key, $0.value) }
      if let sentence = first(missing.filter { !recorded.contains($0.key) }, at: replica) {
        throw Violation(.nothingLost, sentence)
      }
      guard keepsLocal else { continue }
      let written = missing.filter { $0.value[replica.number] != nil && !isSetByAction($0.key) }
      if let sentence = first(written, at: replica) {
        throw Violation(.localKept, sentence)
      }
    }
  }

  /// True if other replicas have written the same value into the same rows, and then another one.
  private func isOverwrittenByOthers(_ cell: Cell, _ authors: [Int: Set<Place>]) -> Bool {
    guard let overwritten = overwritten[cell] else { return false }
    return authors.allSatisfy { author, places in
      places.allSatisfy { place in overwritten.contains { $0.key != author && $0.value.contains(place) } }
    }
  }

  /// True for a reference whose foreign key changes it when the parent row is deleted.
  private func isSetByAction(_ cell: Cell) -> Bool {
    let table = tables[cell.table]
    return table.definition.foreignKeys.contains { key in
      [.setNull, .setDefault].contains(key.onDelete)
        && key.columns.contains { ASCIIName.matches($0, table.columns[cell.column]) }
    }
  }

  /// A sentence about one of the values that a replica lacks, the same one each time.
  private func first(_ missing: [Cell: [Int: Set<Place>]], at replica: Replica) -> String? {
    missing.map { cell, authors in
      let table = tables[cell.table]
      let writers = authors.keys.sorted().map(String.init).joined(separator: ", ")
      return "\(cell.value), written into \(table.name.text).\(table.columns[cell.column]) by replica \(writers), "
        + "is not in the rows of replica \(replica.number)"
    }.min()
  }

  private func present(in rows: DatabaseRows) -> Set<Cell> {
    var cells: Set<Cell> = []
    for (table, rows) in rows.tables.enumerated() {
      for row in rows.values {
        for (column, value) in row.enumerated() { cells.insert(cell(value, column, of: table)) }
      }
    }
    return cells
  }

  /// The values in the conflict records of a replica.
  private func recorded(by replica: Replica) throws -> Set<Cell> {
    var cells: Set<Cell> = []
    for record in try ConflictRecord.all(on: replica.database) {
      guard let table = tables.firstIndex(where: { $0.name == TableName(record.table) }) else { continue }
      for version in [record.base, record.local, record.incoming] {
        for known in version ?? [] {
          guard let value = known.value,
            let column = tables[table].columns.firstIndex(where: { ASCIIName.matches($0, known.column) })
          else { continue }
          cells.insert(cell(value, column, of: table))
        }
      }
    }
    return cells
  }
}
