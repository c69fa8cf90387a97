import Buckia
import Foundation
import TestSupport
import Testing

/// A misspelled table or column in an option is refused or reported.
@Suite("Names of tables and columns in options")
struct OptionNamesTests {
  private static let schema = """
    CREATE TABLE note(id INTEGER PRIMARY KEY, title TEXT UNIQUE); CREATE TABLE tag(id TEXT PRIMARY KEY, label TEXT UNIQUE);
    INSERT INTO note VALUES (1, 'one')
    """

  @Test("A table in any option that is missing after apply is reported, and one that a file creates is not")
  func unknownTables() throws {
    let exchange = try Exchange(Self.schema)
    try exchange.send("CREATE TABLE later(id INTEGER PRIMARY KEY, v); INSERT INTO later VALUES (1, 2)")
    var options = ApplyOptions(conflicts: [.table("nots"): .abort, .column("v", of: "later"): .takeIncoming])
    options.ignoredColumns = ["nota": ["title"], "later": ["v"]]
    options.matches = ["notc": ["title"]]
    let named = try exchange.apply(options).warnings.filter { $0.code == .unknownTable }.map(\.arguments)
    #expect(named == [["nota"], ["notc"], ["nots"]])
  }

  @Test("An unknown column in an option is refused, and so is matching rows without integer keys")
  func unknownColumns() throws {
    let exchange = try Exchange(Self.schema)
    try exchange.send("INSERT INTO note VALUES (2, 'two')")
    for change: (inout ApplyOptions) -> Void in [
      { $0.ignoredColumns = ["note": ["titel"]] }, { $0.conflicts = [.column("titel", of: "note"): .takeIncoming] },
      { $0.matches = ["note": ["titel"]] }, { $0.matches = ["tag": ["label"]] },
    ] {
      var options = ApplyOptions()
      change(&options)
      let error = #expect(throws: BuckiaError.self) { try exchange.apply(options) }
      #expect(error?.code == .columnsDiffer)
    }
    var options = ApplyOptions()
    options.matches = ["note": ["title"]]
    let report = try exchange.apply(options)
    #expect(report.applied.count == 1)
    #expect(report.warnings.map(\.code) == [.nothingMatched], "only rows of shares are matched")
  }

  @Test("A merge and a diff refuse unknown names before they change anything")
  func merges() throws {
    let three = try ThreeWay(base: Self.schema, ours: "", theirs: "INSERT INTO note VALUES (2, 'two')")
    for (change, code): ((inout MergeOptions) -> Void, BuckiaErrorCode) in [
      ({ $0.ignoredColumns = ["nota": ["title"]] }, .noSuchTable), ({ $0.matches = ["nota": ["title"]] }, .noSuchTable),
      ({ $0.conflicts = [.table("nota"): .takeIncoming] }, .noSuchTable),
      ({ $0.conflicts = [.column("titel", of: "note"): .abort] }, .columnsDiffer),
      ({ $0.matches = ["tag": ["label"]] }, .columnsDiffer),
    ] {
      var options = MergeOptions()
      change(&options)
      let error = #expect(throws: BuckiaError.self) { try three.merge(options) }
      #expect(error?.code == code)
    }
    let error = #expect(throws: BuckiaError.self) {
      try DatabaseManager(three.theirs).createDatabaseDiff(
        since: three.base, output: .folder(three.folder.path),
        options: DiffOptions(renames: [ColumnRename(table: "nota", from: "a", to: "b")]))
    }
    #expect(error?.code == .noSuchTable)
    #expect(try three.folder.names(in: ".").contains("out.db") == false)
  }
}
