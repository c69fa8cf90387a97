import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// One side of a comparison: a database, or the rows and columns of it that are chosen.
package final class RowSource {
  /// The connection that the rows are read through.
  package let connection: SQLiteConnection
  /// The path at which another connection finds the same database; nil if only this one sees all of it.
  package let attachablePath: String?
  /// The name of the database in messages.
  package let name: String
  private let selections: [TableName: RowSelection]
  /// The tables that have the rows of other tables, by their names; nil if each has its own.
  let standIns: [TableName: TableName]?

  private init(
    _ connection: consuming SQLiteConnection, path: String?, name: String, _ selections: Selections,
    standIns: [TableName: TableName]? = nil
  ) {
    self.standIns = standIns
    self.connection = connection
    attachablePath = path
    self.name = name
    self.selections = selections
  }

  /// The selected rows and columns by table; all of other tables.
  package typealias Selections = [TableName: RowSelection]

  /// Opens a database file for reading, and waits `busyTimeout` milliseconds for another connection's lock.
  ///
  /// - Throws: `SQLiteError` when it cannot be opened, is no database, is locked or must be recovered first.
  package convenience init(
    opening path: String, busyTimeout: Int32 = 10_000, selecting selections: Selections = [:]
  ) throws(SQLiteError) {
    let connection = try SQLiteConnection.reading(path, busyTimeout: busyTimeout)
    try connection.readThroughUnknownCollations()
    self.init(connection, path: path, name: path, selections)
  }

  /// Reads through a connection of the application, which must outlive the source.
  ///
  /// In an open transaction, the rows are those that it sees, with uncommitted changes. It stays open.
  package convenience init(on connection: borrowing SQLiteConnection, selecting selections: Selections = [:]) {
    let path = connection.path
    let name = path.isEmpty || path == ":memory:" ? "the open database" : path
    self.init(SQLiteConnection(sharing: connection), path: nil, name: name, selections)
  }

  /// Reads substitutes of tables through a connection of the application: only these, under the names of the others.
  ///
  /// - Parameters:
  ///   - standIns: For the name of a table, that of the table of `main` which has its rows.
  ///   - name: The name of the source in messages.
  package convenience init(
    on connection: borrowing SQLiteConnection, standIns: [TableName: TableName], named name: String
  ) {
    self.init(SQLiteConnection(sharing: connection), path: nil, name: name, [:], standIns: standIns)
  }

  /// True if this is a file that the source has opened by itself, and only reads.
  package var isFile: Bool { attachablePath != nil }

  /// A source without any table: compared with it, everything is an INSERT.
  package static func empty() throws(SQLiteError) -> RowSource {
    RowSource(try SQLiteConnection(opening: ":memory:", as: .create), path: nil, name: "an empty database", [:])
  }

  /// The selection of a table: of this source, otherwise of the options; nil for the whole table.
  func selection(of table: TableName, _ options: DiffOptions) -> RowSelection? {
    selections[table] ?? options.selections[table]
  }

  /// The tables that something is selected of.
  var selectedTables: [TableName] { Array(selections.keys) }

  /// Makes text sortable by its bytes as UTF-8.
  func requireByteCollation() throws(SQLiteError) {
    do throws(SQLiteError) {
      _ = try connection.prepare("SELECT '' < '' COLLATE \(SQLiteConnection.byteCollation)")
    } catch {
      // SQLite does not replace a collating sequence while any statement of the connection is running.
      try connection.registerByteCollation()
    }
  }
}
