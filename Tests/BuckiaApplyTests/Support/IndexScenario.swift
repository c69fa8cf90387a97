import BuckiaBytes
@testable import BuckiaApply
@testable import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas
import TestSupport

/// An author and a receiver whose databases have indexes that triggers maintain.
struct IndexScenario {
  /// The schema and the rows that both start with.
  let base: String
  /// The tables whose changes are recorded.
  let tables: [String]

  /// An author's database after some edits, and the changeset.
  struct Author: ~Copyable {
    let connection: SQLiteConnection
    let changes: [UInt8]
  }

  func author(_ edits: String) throws -> Author { try author([edits], ignoringRefusals: false) }

  /// Edits that a constraint refuses have no effect.
  func author(_ edits: [String], ignoringRefusals: Bool = true) throws -> Author {
    let connection = try database()
    let session = try SQLiteSession(on: connection)
    for table in tables { try session.attach(table) }
    for edit in edits {
      if ignoringRefusals { try connection.executeUnlessRefused(edit) } else { try connection.execute(edit) }
    }
    return Author(connection: connection, changes: try session.changeset())
  }

  /// A new database with the schema and the rows.
  func database() throws -> SQLiteConnection {
    let connection = try SQLiteConnection(opening: ":memory:", as: .create)
    try connection.execute(base)
    return connection
  }

  /// A new database with the notes of another, whose triggers write the indexes.
  func database(withNotesOf other: borrowing SQLiteConnection) throws -> SQLiteConnection {
    let connection = try database()
    try connection.execute("DELETE FROM notes")
    let rows = "SELECT format('%s, %s, %s, %s', quote(id), quote(title), quote(body), quote(place)) FROM notes"
    for values in try TestDatabases.texts(rows, on: other) {
      try connection.execute("INSERT INTO notes VALUES (\(values))")
    }
    return connection
  }

  /// The recorded changes as input of the engine.
  static func incoming(_ changes: [UInt8]) throws -> IncomingChanges {
    try IncomingChanges(
      key: LedgerKey(
        sender: "", id: nil, digest: (0..<32).map { _ in UInt8.random(in: 0...255) }, isRaw: true), file: "test",
      definitions: nil, changeset: TemporaryBuffer(changes))
  }

  /// Applies changes in a separate transaction.
  static func apply(
    _ changes: [UInt8], to connection: borrowing SQLiteConnection,
    settings: ApplySettings = ApplySettings(time: 2_000_000_000_000)
  ) throws -> ApplyResult {
    let transaction = try SQLiteTransaction(on: connection)
    let result = try Receiver.plan(incoming(changes), on: connection, settings: settings).apply()
    try transaction.commit()
    return result
  }

  /// Applies an author's edits to a new receiver, and returns the receiver.
  func ship(
    _ edits: String, after local: String = "", settings: ApplySettings = ApplySettings(time: 2_000_000_000_000)
  ) throws -> (author: [String: [String]], receiver: [String: [String]], result: ApplyResult) {
    let author = try author(edits)
    let receiver = try database()
    try receiver.execute(local)
    let result = try Self.apply(author.changes, to: receiver, settings: settings)
    try Self.expectNothingLeft(on: receiver)
    return (try Self.answers(of: author.connection), try Self.answers(of: receiver), result)
  }

  struct Leftover: Error { let what: String }

  /// Throws if a TEMP trigger or a function of the engine is left. Only the function that tells whether changes are
  /// being applied may be: SQLite keeps it inside a transaction that has written to an R-tree.
  static func expectNothingLeft(on connection: borrowing SQLiteConnection) throws {
    let triggers = "SELECT group_concat(name) FROM temp.sqlite_schema WHERE type = 'trigger' AND name LIKE 'buckia%'"
    if let names = try connection.text(triggers) { throw Leftover(what: names) }
    let functions = """
      SELECT group_concat(name) FROM pragma_function_list
      WHERE name LIKE 'buckia%' AND name <> 'buckia_applying' OR name LIKE 'st\\_%' ESCAPE '\\'
      """
    if let names = try connection.text(functions) { throw Leftover(what: names) }
    guard try connection.triggersEnabled else { throw Leftover(what: "triggers are off") }
  }

  /// The results of all indexes: the rows of each word, and all entries of R-trees; and the results of their integrity checks.
  static func answers(of connection: borrowing SQLiteConnection) throws -> [String: [String]] {
    let schema = try IndexSchema(connection)
    var answers: [String: [String]] = [:]
    for index in schema.indexes {
      let name = index.name.quoted
      if index.module.hasPrefix("fts") {
        answers[index.name.text] = try texts(of: index, on: connection)
      } else if index.module == "geopoly" {
        answers[index.name.text] = try TestDatabases.texts(
          "SELECT rowid, geopoly_json(_shape) FROM \(name) ORDER BY 1", on: connection)
      } else {
        answers[index.name.text] = try TestDatabases.texts("SELECT * FROM \(name) ORDER BY 1", on: connection)
        let check = try connection.text("SELECT rtreecheck('\(index.name.text)')")
        if check != "ok" { throw Leftover(what: "\(index.name): \(check ?? "NULL")") }
      }
    }
    return answers
  }

  /// For each word of a full-text index the rows that contain it, and how often.
  private static func texts(of index: IndexTable, on connection: borrowing SQLiteConnection) throws -> [String] {
    let name = index.name.quoted
    let vocabulary = index.module == "fts5" ? "fts5vocab(main, \(name), 'row')" : "fts4aux(main, \(name))"
    try connection.execute("CREATE VIRTUAL TABLE temp.vocabulary USING \(vocabulary)")
    let words = try TestDatabases.texts("SELECT DISTINCT term FROM temp.vocabulary ORDER BY 1", on: connection)
    try connection.execute("DROP TABLE temp.vocabulary")
    var answers: [String] = []
    for word in words {
      let found = try TestDatabases.texts(
        "SELECT rowid FROM \(name) WHERE \(name) MATCH '\"\(word)\"' ORDER BY 1", on: connection)
      answers.append("\(word): \(found.joined(separator: " "))")
    }
    try connection.execute("INSERT INTO \(name)(\(name)) VALUES ('integrity-check')")
    if index.module == "fts5", index.content != nil {
      try connection.execute("INSERT INTO \(name)(\(name), rank) VALUES ('integrity-check', 1)")
    }
    return answers
  }
}

extension SQLiteConnection {
  /// Runs statements up to the first one that a constraint refuses.
  func executeUnlessRefused(_ sql: String) throws {
    do throws(SQLiteError) {
      try execute(sql)
    } catch {
      guard error.isConstraint else { throw error }
    }
  }
}
