import BuckiaDiff
import SQLiteConnections
import Testing
import TestSupport

/// If pages cannot be compared, rows are compared instead, and the result has the reason.
@Suite struct PageFallbackTests {
  private static let rows = """
    WITH s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < 300)
    INSERT INTO t(id, v) SELECT n, 'row ' || n FROM s;
    """

  private static let table = "CREATE TABLE t(id INTEGER PRIMARY KEY, v TEXT);"

  struct Case: CustomTestStringConvertible, Sendable {
    let testDescription: String
    let older: String
    let newer: String
    let code: SkipReason.Code
    let reason: String
  }

  private static let cases = [
    Case(
      testDescription: "pages of another size", older: "PRAGMA page_size = 1024; \(table)",
      newer: "PRAGMA page_size = 4096; \(table)",
      code: .pageSizeDiffers, reason: "the pages of the two databases differ in size (1024 and 4096 bytes)"),
    Case(
      testDescription: "UTF-16 on one side", older: table, newer: "PRAGMA encoding = 'UTF-16'; \(table)",
      code: .notUTF8, reason: "text is stored as UTF-16"),
    Case(
      testDescription: "UTF-16 on both", older: "PRAGMA encoding = 'UTF-16be'; \(table)",
      newer: "PRAGMA encoding = 'UTF-16be'; \(table)", code: .notUTF8, reason: "text is stored as UTF-16"),
    Case(
      testDescription: "a column more", older: table, newer: "\(table) ALTER TABLE t ADD COLUMN w DEFAULT 4;",
      code: .definitionDiffers, reason: "its definition differs between the two databases"),
    Case(
      testDescription: "another type", older: table, newer: "CREATE TABLE t(id INTEGER PRIMARY KEY, v);",
      code: .definitionDiffers, reason: "its definition differs between the two databases"),
  ]

  @Test("A table compared by rows is reported, with the reason", arguments: cases)
  func reasons(_ found: Case) throws {
    let folder = try TemporaryFolder()
    let older = try TestDatabases.run(found.older + Self.rows, on: folder.file("older"))
    let newer = try TestDatabases.run(
      "\(found.newer) \(Self.rows) UPDATE t SET v = 'other' WHERE id = 150; DELETE FROM t WHERE id = 9",
      on: folder.file("newer"))
    for method in [DiffMethod.pages, nil] {
      let difference = try DatabaseComparison.run(older: older, newer: newer, options: DiffOptions(method: method))
      #expect(difference.tables.map(\.method) == [.rows])
      #expect(difference.fallbacks.map(\.name) == ["t"])
      #expect(difference.fallbacks.map(\.reason.code) == [found.code])
      #expect(difference.fallbacks.map(\.reason.description) == [found.reason])
      #expect(difference.tables.map(\.deleted) == [1])
    }
    // A caller who has requested rows gets no report.
    let byRows = try DatabaseComparison.run(older: older, newer: newer, options: DiffOptions(method: .rows))
    #expect(byRows.fallbacks == [])
  }

  @Test("Only the table whose pages cannot be compared is compared by rows")
  func oneOfTwo() throws {
    let folder = try TemporaryFolder()
    let older = try TestDatabases.run(
      "\(Self.table) \(Self.rows) CREATE TABLE u AS SELECT * FROM t", on: folder.file("older"))
    let newer = try folder.copy("older", to: "newer")
    try TestDatabases.run(
      "ALTER TABLE t ADD COLUMN w; UPDATE t SET w = 1 WHERE id = 3; UPDATE u SET v = 'other' WHERE id = 3", on: newer)
    let difference = try DatabaseComparison.run(older: older, newer: newer)
    #expect(difference.tables.map(\.method) == [.rows, .pages])
    #expect(difference.fallbacks.map(\.name) == ["t"])
  }

  @Test("A damaged inner page is an error, not a difference")
  func damage() throws {
    let folder = try TemporaryFolder()
    let older = try TestDatabases.run(
      "PRAGMA page_size = 512; \(Self.table) \(Self.rows)", on: folder.file("older"))
    var bytes = try fileBytes(older)
    let root = 512
    try #require(bytes[root] == 5)
    for place in root..<(root + 12) { bytes[place] ^= 0xff }
    let newer = try folder.write(bytes, to: "newer")
    for (one, other) in [(older, newer), (newer, older)] {
      let error = #expect(throws: SQLiteError.self) { try DatabaseComparison.run(older: one, newer: other) }
      #expect(error?.isCorrupt == true)
    }
  }
}
