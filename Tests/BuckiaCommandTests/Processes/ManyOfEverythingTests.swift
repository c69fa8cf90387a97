import Foundation
import TestSupport
import Testing

@Suite("Many columns, many tables, many files")
struct ManyOfEverythingTests {
  /// Diffs `old.db` and `new.db`, applies the result to a copy of the old one and expects the new one.
  private func expectMirror(on bench: Workbench) throws {
    let diff = try bench.buckia(["diff", "old.db", "new.db", "-o", "x.bdiff"])
    #expect(diff.status == 0, "\(diff.output) \(diff.diagnostics)")
    let apply = try bench.buckia(["apply", "old.db", "x.bdiff"])
    #expect(apply.status == 0, "\(apply.output) \(apply.diagnostics)")
    #expect(
      try TestDatabases.content(of: bench.path("old.db")) == TestDatabases.content(of: bench.path("new.db")))
  }

  @Test("A table may have nearly as many columns as SQLite allows", arguments: ["", " WITHOUT ROWID"])
  func columns(options: String) throws {
    // A DELETE compares all columns: the chain of ANDs is deeper than SQLite allows.
    let bench = try Workbench()
    let columns = (0..<1_500).map { "c\($0) INTEGER DEFAULT \($0)" }.joined(separator: ", ")
    try bench.sql(
      "old.db",
      "CREATE TABLE t(id INTEGER PRIMARY KEY, \(columns))\(options); INSERT INTO t(id) VALUES (1), (2), (3), (4)")
    try FileManager.default.copyItem(atPath: bench.path("old.db"), toPath: bench.path("new.db"))
    let all = (0..<1_500).map { "c\($0) = c\($0) + 1" }.joined(separator: ", ")
    try bench.sql(
      "new.db",
      "DELETE FROM t WHERE id = 1; UPDATE t SET \(all) WHERE id = 2; UPDATE t SET c7 = NULL WHERE id = 3;"
        + "INSERT INTO t(id) VALUES (5)")
    try expectMirror(on: bench)
  }

  @Test("Many tables that refer to each other")
  func tables() throws {
    let bench = try Workbench()
    let count = 400
    try bench.sql(
      "old.db",
      "BEGIN;"
        + (0..<count).map {
          "CREATE TABLE t\($0)(id INTEGER PRIMARY KEY, n REFERENCES t\(($0 + 1) % count));"
            + "INSERT INTO t\($0) VALUES (1, 1)"
        }.joined(separator: ";") + "; COMMIT")
    try FileManager.default.copyItem(atPath: bench.path("old.db"), toPath: bench.path("new.db"))
    try bench.sql(
      "new.db", "BEGIN;" + (0..<count).map { "INSERT INTO t\($0) VALUES (2, 1)" }.joined(separator: ";") + "; COMMIT")
    try expectMirror(on: bench)
    #expect(try bench.sql("old.db", "SELECT count(*) FROM buckia_conflict") == ["0"])
  }

  @Test("A large value")
  func value() throws {
    let bench = try Workbench()
    try bench.sql("old.db", "CREATE TABLE t(id INTEGER PRIMARY KEY, b); INSERT INTO t VALUES (1, zeroblob(20000000))")
    try FileManager.default.copyItem(atPath: bench.path("old.db"), toPath: bench.path("new.db"))
    try bench.sql("new.db", "UPDATE t SET b = randomblob(20000000); INSERT INTO t VALUES (2, zeroblob(20000000))")
    #expect(try bench.buckia(["diff", "old.db", "new.db", "-o", "x.bdiff"]).status == 0)
    #expect(try bench.buckia(["apply", "old.db", "x.bdiff"]).status == 0)
    let equal = "ATTACH 'new.db' AS n; SELECT count(*) FROM t JOIN n.t AS o USING (id) WHERE t.b = o.b"
    #expect(try bench.sql("old.db", equal.replacing("new.db", with: bench.path("new.db"))) == ["2"])
  }
}
