import Buckia
import Foundation
import SQLiteConnections
import TestSupport
import Testing

/// A database, a series of diffs of its later states, and its last state.
///
/// Each state builds on the one before: a row counts the states, so a diff that is lost, applied twice or out of order
/// is a conflict, and leads to another last state.
struct Chain {
  let bench: Workbench
  let count: Int

  /// The journal mode of the database.
  enum Journal: String, CaseIterable, Sendable {
    case rollback = "DELETE"
    case wal = "WAL"
  }

  /// Creates `base.db`, `end.db` and the folder `sent` with `count` diffs that lead from one to the other.
  init(count: Int, rowsPerDiff: Int = 20) throws {
    bench = try Workbench()
    self.count = count
    try FileManager.default.createDirectory(atPath: bench.path("sent"), withIntermediateDirectories: true)
    try bench.sql(
      "base.db",
      """
      CREATE TABLE state(id INTEGER PRIMARY KEY, n INTEGER);
      CREATE TABLE row(name TEXT PRIMARY KEY, n INTEGER, filling TEXT) WITHOUT ROWID;
      CREATE TABLE line(t);
      CREATE INDEX row_n ON row(n);
      INSERT INTO state VALUES (1, 0);
      WITH RECURSIVE i(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM i WHERE x < 400)
      INSERT INTO row SELECT 'row ' || x, 0, hex(zeroblob(100)) FROM i
      """)
    try copy("base.db", to: "before.db")
    try copy("base.db", to: "end.db")
    let home = BuckiaHome(path: bench.path(".home"))
    for number in 1...max(1, count) {
      try bench.sql(
        "end.db",
        """
        BEGIN;
        UPDATE state SET n = n + 1;
        UPDATE row SET n = n + 1, filling = hex(zeroblob(100 + \(number % 7))) WHERE name IN (
          SELECT name FROM row WHERE substr(name, 1, 4) = 'row ' ORDER BY name
          LIMIT \(rowsPerDiff) OFFSET \(number * 13 % 400));
        INSERT INTO row VALUES ('new ' || \(number), \(number), hex(zeroblob(\(number))));
        INSERT INTO line VALUES (\(number));
        COMMIT
        """)
      _ = try DatabaseManager(bench.path("end.db"), home: home).createDatabaseDiff(
        since: bench.path("before.db"), output: .folder(bench.path("sent")))
      try remove("before.db")
      try copy("end.db", to: "before.db")
    }
    try remove("before.db")
  }

  /// Copies the first state to `database` and all diffs to the folder `inbound`.
  func deliver(to database: String, inbound: String, journal: Journal) throws {
    for name in [database, "\(database)-wal", "\(database)-shm", "\(database)-journal", inbound] {
      try remove(name)
    }
    try copy("base.db", to: database)
    try bench.sql(database, "PRAGMA journal_mode = \(journal.rawValue)")
    try copy("sent", to: inbound)
  }

  /// Expects that a database is intact, is the last state, and has each diff in its ledger exactly once.
  func expectEnd(of database: String, _ comment: Comment) throws {
    #expect(try bench.sql(database, "PRAGMA integrity_check") == ["ok"], comment)
    #expect(try bench.sql(database, "SELECT n FROM state") == ["\(count)"], comment)
    #expect(
      try TestDatabases.content(of: bench.path(database)) == TestDatabases.content(of: bench.path("end.db")), comment)
    let ledger = "SELECT count(*), count(DISTINCT diff), sum(state = 'applied'), sum(conflicts) FROM buckia_ledger"
    #expect(try bench.sql(database, ledger) == ["\(count)|\(count)|\(count)|0"], comment)
    #expect(try bench.sql(database, "SELECT count(*) FROM buckia_refused") == ["0"], comment)
  }

  private func copy(_ name: String, to other: String) throws {
    try FileManager.default.copyItem(atPath: bench.path(name), toPath: bench.path(other))
  }

  private func remove(_ name: String) throws {
    guard FileManager.default.fileExists(atPath: bench.path(name)) else { return }
    try FileManager.default.removeItem(atPath: bench.path(name))
  }
}
