import SQLiteConnections

/// The kinds of table. They differ in how rows are found, and so in which pages are read.
package enum TableShape: String, CaseIterable, Sendable {
  /// A rowid table with a random text key in an index of its own.
  case textKey = "TEXT key"
  /// A rowid table whose key is the rowid.
  case integerKey = "INTEGER key"
  /// A table stored in its key, a random text.
  case withoutRowID = "WITHOUT ROWID"

  /// The size of a row.
  enum Width {
    /// Some 120 bytes.
    case narrow
    /// Some 230 bytes.
    case wide
  }

  /// The table's name.
  static let table = "t"

  /// The part of a comparison's id.
  package var id: String {
    switch self {
    case .textKey: "text-key"
    case .integerKey: "integer-key"
    case .withoutRowID: "without-rowid"
    }
  }

  /// The table `t`: a key and four columns of different kinds.
  var definition: String {
    let columns = "a INTEGER, b TEXT, c REAL, d BLOB"
    switch self {
    case .textKey: return "CREATE TABLE t(k TEXT PRIMARY KEY, \(columns))"
    case .integerKey: return "CREATE TABLE t(k INTEGER PRIMARY KEY, \(columns))"
    case .withoutRowID: return "CREATE TABLE t(k TEXT PRIMARY KEY, \(columns)) WITHOUT ROWID"
    }
  }

  /// The key of row `i`, as SQL. Text keys look random (Knuth's multiplicative hash) and are the same in every run.
  var key: String {
    switch self {
    case .integerKey: "i"
    case .textKey, .withoutRowID: "printf('%08x%08x%08x', i * 2654435761 % 4294967296, i * 40503 % 65536, i)"
    }
  }

  /// SQL that inserts rows numbered from one to the other. Half of a row's bytes do not compress.
  func insertion(of rows: ClosedRange<Int>, width: Width = .narrow) -> String {
    // Products stay below 2^63 for any realistic number of rows.
    let hash = "(i * 2654435761 % 4294967296)"
    let blob = "CAST(printf('%015x%015x%015x', \(hash) * 268435399, \(hash) * 268435361, \(hash) * 268435337) AS BLOB)"
    let text =
      switch width {
      case .narrow: "'the text of row ' || i"
      case .wide:
        "'the text of row ' || i || printf(' is %015x and %015x and %015x, and then it goes on to %015x and ends.', "
          + "\(hash) * 268435331, \(hash) * 268435327, \(hash) * 268435313, \(hash) * 268435291)"
      }
    return """
      WITH n(i) AS (SELECT \(rows.lowerBound) UNION ALL SELECT i + 1 FROM n WHERE i < \(rows.upperBound))
      INSERT INTO t SELECT \(key), i, \(text), i * 0.5, \(blob) FROM n
      """
  }

  /// Makes a database file in WAL mode with rows numbered from 1. It is closed when this returns.
  func makeDatabase(at path: String, rows: Int, width: Width = .narrow) throws(SQLiteError) {
    let connection = try SQLiteConnection(opening: path, as: .create)
    try connection.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; PRAGMA cache_size = -262144")
    try connection.execute(definition)
    if rows > 0 { try connection.execute(insertion(of: 1...rows, width: width)) }
    // Closing the last connection checkpoints the log.
  }

  /// SQL that updates the chosen rows.
  static let update = "UPDATE t SET b = b || ', changed', c = c + 1 WHERE k IN (SELECT k FROM chosen)"
  /// SQL that deletes the chosen rows.
  static let deletion = "DELETE FROM t WHERE k IN (SELECT k FROM chosen)"
  /// SQL that updates half of the chosen rows and deletes the others.
  static let alteration = "\(update) AND a % 2 = 0; \(deletion) AND a % 2 = 1"
  /// SQL that changes every row, so that it differs from the incoming one.
  static let localEdit = "UPDATE t SET b = b || ', changed here', c = c + 1"

  /// Puts the keys of the rows with these numbers into the temporary table `chosen(k)`.
  func choose(_ rows: [Int], on connection: borrowing SQLiteConnection) throws(SQLiteError) {
    try connection.execute(
      """
      CREATE TEMP TABLE IF NOT EXISTS numbers(i INTEGER PRIMARY KEY);
      CREATE TEMP TABLE IF NOT EXISTS chosen(k PRIMARY KEY) WITHOUT ROWID;
      DELETE FROM numbers; DELETE FROM chosen; BEGIN
      """)
    let insert = try connection.prepare("INSERT INTO numbers VALUES (?)", isPersistent: true)
    for row in rows {
      try insert.bind(Int64(row), at: 0)
      try insert.run()
    }
    try connection.execute("INSERT INTO chosen SELECT \(key) FROM numbers; COMMIT")
  }
}
