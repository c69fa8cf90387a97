import BuckiaBytes
import BuckiaDiff
import SQLiteSchemas
import SQLiteConnections

extension SQLiteConnection {
  /// Makes sure that there is a database in the file: an empty one is what a failed copy leaves, and to take it for a database without
  /// tables would drop all of them. SQLite itself refuses a file that was cut.
  ///
  /// - Throws: `BuckiaError` with `notADatabase`; `SQLiteError` when the file cannot be read.
  func requireContent() throws {
    guard !path.isEmpty, try integer("PRAGMA main.page_count") == 0 else { return }
    throw BuckiaError(.notADatabase, "the file is empty, where a database was expected", path: path)
  }
}

extension RowSource {
  /// Makes sure that another source may be a later state of the same database.
  ///
  /// Two databases without a table in common are rather two databases than two states of one: the difference would delete
  /// everything and insert everything, which somebody who has mixed up two paths does not want. A database without any
  /// tables is the beginning, or the end, of any other.
  ///
  /// - Throws: `BuckiaError` with `nothingInCommon`; `SQLiteError` when a schema cannot be read.
  func requireRelation(to newer: RowSource) throws {
    let mine = try SchemaReader(connection)
    let others = try SchemaReader(newer.connection)
    let tables = mine.tables
    guard !tables.isEmpty, !others.tables.isEmpty else { return }
    for entry in tables {
      guard let other = others.entry(named: entry.name) else { continue }
      if entry.isDefined(like: other) { return }
      let columns = Set(try mine.columns(of: entry))
      if try others.columns(of: other).contains(where: columns.contains) { return }
    }
    throw BuckiaError(
      .nothingInCommon,
      "these are hardly two states of one database: \(connection.path) has \(Self.list(tables)), and "
        + "\(newer.connection.path) has \(Self.list(others.tables))")
  }

  /// The first names, and how many more there are.
  private static func list(_ tables: [SchemaEntry]) -> String {
    let shown = tables.prefix(3).map { EscapedText.quoted($0.name.text) }.joined(separator: ", ")
    let left = tables.count - 3
    return "the table\(tables.count == 1 ? "" : "s") \(shown)" + (left > 0 ? " and \(left) more" : "")
  }
}

extension SchemaReader {
  /// The tables that the user has made.
  fileprivate var tables: [SchemaEntry] {
    entries.filter { entry in
      switch entry.kind {
      case .table, .virtual: !Replicability.isOwn(entry.name)
      case .view, .shadow: false
      }
    }
  }

  /// The names of a table's columns, in lower case.
  fileprivate func columns(of entry: SchemaEntry) throws -> [String] {
    // What a virtual table is made of may not be loaded here; its name is enough then.
    guard case .table = entry.kind else { return [entry.name.text.lowercased()] }
    return try definition(of: entry).columns.map { ASCIIName.folded($0.name) }
  }
}
