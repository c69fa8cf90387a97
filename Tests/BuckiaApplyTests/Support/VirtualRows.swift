import BuckiaBytes
import ReplicationTestSupport
import SQLiteConnections
import SQLiteSchemas

/// The contents of R-trees and full-text tables, their answers to queries, and their integrity.
enum VirtualRows {
  struct Unsound: Error { let what: String }

  /// All rows of a table with storage class and bytes, including a hidden rowid.
  static func content(of table: String, on connection: borrowing SQLiteConnection) throws -> [String] {
    let name = SQLText.identifier(table)
    var rows: [String] = []
    try connection.forEachRow(of: "SELECT rowid, * FROM main.\(name) ORDER BY rowid") { row in
      rows.append((0..<row.columnCount).map { Rows.text(of: row, at: $0) }.joined(separator: " | "))
    }
    return rows
  }

  /// Throws if SQLite finds the table inconsistent.
  static func requireSound(_ table: String, on connection: borrowing SQLiteConnection) throws {
    let name = SQLText.identifier(table)
    let sql = try connection.text("SELECT sql FROM sqlite_schema WHERE name = ?1", binding: [table]) ?? ""
    if VirtualTableDefinition(parsing: sql).map({ ASCIIName.folded($0.module) }) == "fts5" {
      try connection.execute("INSERT INTO main.\(name)(\(name)) VALUES ('integrity-check')")
    } else {
      let found = try connection.text("SELECT rtreecheck('main', ?1)", binding: [table])
      if found != "ok" { throw Unsound(what: "\(table): \(found ?? "NULL")") }
    }
    let whole = try connection.text("PRAGMA main.integrity_check")
    if whole != "ok" { throw Unsound(what: whole ?? "NULL") }
  }

  /// The rows that a full-text query finds, with their rank and snippets.
  static func matches(_ table: String, _ query: String, on connection: borrowing SQLiteConnection) throws -> [String] {
    let name = SQLText.identifier(table)
    var found: [String] = []
    let sql =
      "SELECT rowid, rank, highlight(\(name), 0, '<', '>') FROM main.\(name) WHERE \(name) MATCH ?1 ORDER BY rowid"
    try connection.forEachRow(of: sql, binding: [query]) { row in
      found.append((0..<3).map { Rows.text(of: row, at: $0) }.joined(separator: " | "))
    }
    return found
  }
}
