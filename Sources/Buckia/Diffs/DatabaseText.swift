import SQLiteConnections

extension DatabaseManager {
  /// Calls `body` with the whole database as lines of text, for programs that compare texts.
  ///
  /// First come the statements of the schema by kind and name, then the rows of each table, one for each line, in the
  /// order of their keys. Equal rows give the same lines, wherever they are stored, and values that differ in storage
  /// class or bytes give different ones.
  ///
  /// ```swift
  /// try DatabaseManager("notes.sqlite").forEachTextLine { print($0) }
  /// ```
  ///
  /// - Text is in single quotes, doubled inside; invisible characters and the backslash are escaped with a backslash.
  /// - A blob of more than 32 bytes is its size and SHA-256, a shorter one `x'…'`. A real always has a point, an exponent or a sign.
  /// - Tables of SQLite and of Buckia, and shadow tables, have no rows in the text; recorded conflicts are counted.
  ///
  /// - Parameter body: Receives a line without its end. Control characters in it are escaped. May throw to stop.
  /// - Throws: `BuckiaError` when the database cannot be read; whatever `body` throws.
  public func forEachTextLine(_ body: (String) throws -> Void) throws {
    try BuckiaError.wrapping {
      try requireFile()
      let traces = ReadTraces(besides: [path])
      defer { traces.remove() }
      try writeText(body)
    }
  }

  private func writeText(_ body: (String) throws -> Void) throws {
    let source = try RowSource(opening: path, busyTimeout: busyTimeout)
    let transaction = try SQLiteTransaction(.deferred, on: source.connection)
    try DatabaseText(of: source.connection).forEachLine(body)
    transaction.rollback()
  }
}

extension SchemaEntry {
  /// True for a table that is not the shadow table of another.
  fileprivate var holdsRows: Bool {
    switch kind {
    case .table, .virtual: true
    case .view, .shadow: false
    }
  }
}

/// A database as text.
private struct DatabaseText: ~Copyable {
  private let connection: SQLiteConnection
  private let schema: SchemaReader

  init(of connection: borrowing SQLiteConnection) throws {
    self.connection = SQLiteConnection(sharing: connection)
    schema = try SchemaReader(connection)
  }

  func forEachLine(_ body: (String) throws -> Void) throws {
    for line in try settings() { try body(line) }
    for statement in try schema.statements().sorted(by: Self.standsBefore) {
      try body("")
      for line in "\(statement.sql);".split(separator: "\n", omittingEmptySubsequences: false) {
        try body(line.escaped)
      }
    }
    let entries = schema.entries.sorted { Self.isBefore($0.name, $1.name) }
    for entry in entries where !Replicability.isOwn(entry.name) && entry.holdsRows {
      try writeRows(of: entry, body)
    }
    guard try Ledger.exists(on: connection) else { return }
    let conflicts = try ConflictRecord.counts(ConflictSelection(), on: connection).reduce(0) { $0 + $1.count }
    if conflicts > 0 { for line in ["", "-- recorded conflicts: \(conflicts)"] { try body(line) } }
  }

  /// The settings of the database that differ from those of a new one.
  private func settings() throws -> [String] {
    var lines: [String] = []
    for name in ["application_id", "user_version"] {
      if let value = try connection.integer("PRAGMA main.\(name)"), value != 0 {
        lines.append("PRAGMA \(name) = \(value);")
      }
    }
    if let encoding = try connection.text("PRAGMA main.encoding"), encoding != "UTF-8" {
      lines.append("PRAGMA encoding = '\(encoding)';")
    }
    return lines
  }

  private static func standsBefore(_ first: SchemaStatement, _ second: SchemaStatement) -> Bool {
    let places = [first, second].map { AuthorSchema.order.firstIndex(of: $0.kind) ?? 0 }
    return places[0] == places[1] ? isBefore(first.name, second.name) : places[0] < places[1]
  }

  private static func isBefore(_ first: TableName, _ second: TableName) -> Bool {
    first.text.utf8.lexicographicallyPrecedes(second.text.utf8)
  }

  // MARK: Rows

  private func writeRows(of entry: SchemaEntry, _ body: (String) throws -> Void) throws {
    if let reason = Replicability.refusal(of: entry) {
      return try note(reason, of: entry, body)
    }
    let table = try schema.definition(of: entry)
    if let reason = Replicability.refusal(of: table) {
      return try note(reason, of: entry, body)
    }
    let names = table.changesetColumns
    var results = table.columns.map { SQLText.identifier($0.name) }
    if table.isKeyedByRowID { results.insert(table.rowIDName ?? TableDefinition.rowIDColumn, at: 0) }
    var order = table.keyIndexes.map { "\(results[$0]) COLLATE BINARY" }
    // Rows with NULL in the key are identified by their content.
    if !table.nullableKeyColumns.isEmpty { order += results.indices.map { "\(results[$0]) COLLATE BINARY" } }
    try body("")
    try body("table \(entry.name.text.escaped)")
    let sql =
      "SELECT \(results.joined(separator: ", ")) FROM main.\(entry.name.quoted) ORDER BY \(order.joined(separator: ", "))"
    try connection.forEachRow(of: sql) { row in
      var line = " "
      for (place, name) in names.enumerated() {
        line += "\(place == 0 ? " " : ", ")\(name.escaped)=\(Self.text(of: row, at: place))"
      }
      try body(line)
    }
  }

  /// Says why rows are not in the text.
  private func note(_ reason: String, of entry: SchemaEntry, _ body: (String) throws -> Void) throws {
    for line in ["", "-- \(entry.name.text.escaped): \(reason.escaped)"] { try body(line) }
    // What cannot be shown can still be seen to differ.
    guard let content = try schema.contentStaying(of: entry) else { return }
    try body("-- \(content.rows) rows, digest \(String(content.hash, radix: 16))")
  }

  /// The longest blob that is shown byte by byte.
  private static let shownBlobBytes = 32

  private static func text(of row: borrowing SQLiteStatement, at column: Int) -> String {
    switch row.storageClass(at: column) {
    case .null: return "NULL"
    case .integer: return String(row.integer(at: column))
    case .real: return row.real(at: column).description
    case .text:
      guard row.isWellFormedText(at: column) else { return "text \(hex(row.textBytes(at: column)))" }
      return quoted(row.textBytes(at: column))
    case .blob:
      let bytes = row.blobBytes(at: column)
      guard bytes.count > shownBlobBytes else { return hex(bytes) }
      var hasher = ContentHasher()
      hasher.update(bytes)
      return "blob(\(bytes.count) bytes, sha256 \(hasher.digest))"
    }
  }

  private static func hex(_ bytes: UnsafeRawBufferPointer) -> String { "x'\(HexText.lowercase(Array(bytes)))'" }

  private static func quoted(_ bytes: UnsafeRawBufferPointer) -> String {
    var text = "'"
    for scalar in String(decoding: bytes, as: UTF8.self).unicodeScalars {
      switch scalar {
      case "'": text += "''"
      case "\\": text += "\\\\"
      case "\n": text += "\\n"
      case "\r": text += "\\r"
      case "\t": text += "\\t"
      case _ where EscapedText.isHarmless(scalar): text.unicodeScalars.append(scalar)
      default: text += "\\u{\(String(scalar.value, radix: 16, uppercase: true))}"
      }
    }
    return text + "'"
  }
}
