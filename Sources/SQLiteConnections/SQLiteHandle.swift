import BuckiaBytes
import CBuckiaSQLite

/// A `sqlite3 *` with its copy of SQLite, which a connection shares with its statements, sessions and transactions. It
/// does not own the connection.
final class SQLiteHandle {
  let pointer: OpaquePointer
  let library: SQLiteLibrary
  let routines: SQLiteRoutines
  /// The given path of the file, for messages.
  let path: String
  /// True if the connection belongs to the app, with whatever the app has installed on it.
  let isBorrowed: Bool
  /// True if a collating sequence of ours was added.
  var hasByteCollation = false
  /// The cached statements of the connection, by their text. They retain this handle: the connection must release them
  /// when it ends.
  var statements: [String: PreparedStatement] = [:]

  init(_ pointer: OpaquePointer, of library: SQLiteLibrary, path: String, isBorrowed: Bool = false) {
    self.pointer = pointer
    self.library = library
    self.path = path
    self.isBorrowed = isBorrowed
    routines = library.routines
  }

  /// The error that a call has just returned, with SQLite's message.
  func error(_ code: Int32, sql: String? = nil) -> SQLiteError {
    let extended = routines.extended_errcode(pointer)
    // The connection does not record the codes of the session functions; its message is then about another call.
    let isOwn = extended & 0xff == code & 0xff
    let text = (isOwn ? routines.errmsg(pointer) : nil) ?? routines.errstr(code)
    var message = text.map { String(cString: $0) } ?? "unknown error"
    if isOwn, let name = SQLiteError.missingCollation(in: message) { message += columns(ofIndexesBy: name) }
    if isOwn, let name = SQLiteError.missingFunction(in: message) { message += definitions(calling: name) }
    return SQLiteError(code: isOwn ? extended : code, message: message, path: path, sql: sql)
  }

  /// The columns that indexes of the database compare by a collating sequence, for a message.
  private func columns(ofIndexesBy collation: String) -> String {
    let sql = """
      SELECT DISTINCT ' ' || m.name || '.' || x.name FROM sqlite_schema m
      JOIN pragma_index_list(m.name) l JOIN pragma_index_xinfo(l.name) x
      WHERE m.type = 'table' AND x.key AND x.coll = ?1 COLLATE NOCASE ORDER BY 1
      """
    do {
      var columns = ""
      let statement = try SQLiteStatement(sql, on: self, isPersistent: false)
      try statement.bind(collation, at: 0)
      while try statement.step() {
        columns += (columns.isEmpty ? " in the index of" : ",") + (statement.text(at: 0) ?? "")
      }
      return columns
    } catch {
      // The error that the message belongs to is thrown without them.
      return ""
    }
  }

  /// The columns, tables, indexes and triggers whose definitions call a function, for a message.
  private func definitions(calling function: String) -> String {
    let sql = """
      SELECT type, name, sql FROM sqlite_schema WHERE sql LIKE '%' || ?1 || '%(%' ORDER BY type = 'table' DESC, name
      """
    do {
      var found: [String] = []
      let statement = try SQLiteStatement(sql, on: self, isPersistent: false)
      try statement.bind(function, at: 0)
      while try statement.step() {
        let (type, name) = (statement.text(at: 0) ?? "", statement.text(at: 1) ?? "")
        guard type == "table" else {
          found.append("\(type) \(name)")
          continue
        }
        for part in DefinitionParts.of(statement.text(at: 2) ?? "") where DefinitionParts.part(part, calls: function) {
          found.append(DefinitionParts.column(of: part).map { "\(name).\($0)" } ?? "table \(name)")
        }
      }
      return found.isEmpty ? "" : " in \(found.joined(separator: ", "))"
    } catch {
      // The error that the message belongs to is thrown without them.
      return ""
    }
  }

  /// Throws the error of a call that did not return `SQLITE_OK`.
  func check(_ code: Int32, sql: String? = nil) throws(SQLiteError) {
    if code != SQLITE_OK { throw error(code, sql: sql) }
  }
}

/// The columns and constraints of a CREATE TABLE statement, as far as a message about them needs it.
private enum DefinitionParts {
  /// The parts between the commas of the outer parentheses.
  static func of(_ sql: String) -> [Substring] {
    var parts: [Substring] = []
    var depth = 0
    var quote: Character?
    var start = sql.startIndex
    for place in sql.indices {
      let character = sql[place]
      if let end = quote {
        if character == end { quote = nil }
        continue
      }
      switch character {
      case "'", "\"", "`": quote = character
      case "[": quote = "]"
      case "(":
        depth += 1
        if depth == 1 { start = sql.index(after: place) }
      case ")", ",":
        if depth == 1 {
          parts.append(sql[start..<place])
          start = sql.index(after: place)
        }
        if character == ")" { depth -= 1 }
      default: break
      }
    }
    return parts
  }

  /// True if a part calls a function.
  static func part(_ part: Substring, calls function: String) -> Bool {
    part.lowercased().filter { !$0.isWhitespace }.contains("\(function.lowercased())(")
  }

  /// The name of the column that a part defines; nil for a constraint of the table.
  static func column(of part: Substring) -> String? {
    let text = part.drop { $0.isWhitespace }
    guard let first = text.first else { return nil }
    if let end: Character = ["\"": "\"", "`": "`", "[": "]", "'": "'"][first] {
      return String(text.dropFirst().prefix { $0 != end })
    }
    let word = text.prefix { !$0.isWhitespace && $0 != "(" }
    let isConstraint = ["CONSTRAINT", "CHECK", "UNIQUE", "PRIMARY", "FOREIGN"].contains(word.uppercased())
    return isConstraint ? nil : String(word)
  }
}
