import Testing
@testable import Buckia
@testable import BuckiaCommand
@testable import BuckiaDiff

@Suite("The progress line")
struct ProgressTests {
  @Test("Applying shows the file, its rows, and the progress through all files")
  func applying() {
    var progress = ApplyProgress()
    progress.path = "inbound/x.bdiff"
    progress.fileCount = 1
    #expect(progress.line == "Verifying x.bdiff")
    progress.activity = .applying
    progress.rows = 12_000
    #expect(progress.line == "Applying x.bdiff, 12,000 rows")
    progress.fileCount = 1_200
    progress.files = 2
    progress.bytes = 4_500_000
    progress.byteCount = 20_100_000
    #expect(progress.line == "Applying 3 of 1,200, x.bdiff, 12,000 rows, 4.50 MB of 20.1 MB")
  }

  @Test("Verifying shows the file and the bytes read, up to its size")
  func checking() throws {
    #expect(
      InspectionProgress(path: "inbound/x\u{1B}.bdiff", bytes: 4_500_000, byteCount: 20_100_000).line
        == #"Checking x\u{1B}.bdiff, 4.50 MB of 20.1 MB"#)
    let bench = try Workbench()
    try bench.sql("old.db", "CREATE TABLE t(a INTEGER PRIMARY KEY, b)")
    try bench.sql("new.db", "CREATE TABLE t(a INTEGER PRIMARY KEY, b); INSERT INTO t VALUES (1, randomblob(3000000))")
    for arguments in [["-o", "x.bdiff"], ["--raw", "-o", "x.changeset"]] {
      #expect(try bench.buckia(["diff", "old.db", "new.db"] + arguments).status == 0)
      let path = bench.path(arguments.last ?? "")
      for isShown in [true, false] {
        var told: [InspectionProgress] = []
        if isShown {
          _ = try DiffInspection.open(.path(path), progress: { told.append($0) })
        } else {
          _ = try DiffInspection.verify([.path(path)]) { told.append($0) }
        }
        let last = try #require(told.last)
        #expect(told.count > 10 && last.path == path && last.bytes == last.byteCount && last.byteCount > 3_000_000)
        #expect(told.map(\.bytes) == told.map(\.bytes).sorted())
      }
    }
  }

  @Test("Comparing shows the table, its rows and the bytes read")
  func comparing() {
    #expect(DiffProgress(table: "", rows: 0, bytes: 0).line == "Comparing pages…")
    #expect(DiffProgress(table: "", rows: 0, bytes: 64_000_000).line == "Comparing pages… 64.0 MB read")
    #expect(DiffProgress(table: "notes", rows: 4_096, bytes: 0).line == "Comparing notes: 4,096 rows")
    #expect(
      DiffProgress(table: "a\u{1B}b", rows: 1, bytes: 64_000_000).line
        == #"Comparing a\u{1B}b: 1 row, 64.0 MB of pages read"#)
  }

  @Test("Inverting, joining and sorting show the file that is verified, and then the bytes written")
  func rewriting() throws {
    #expect(
      RewritingProgress.rewriting(changes: 12_000, bytes: 0, byteCount: 9).line("Sorting x")
        == "Sorting x: 12,000 changes")
    #expect(
      RewritingProgress.rewriting(changes: 1, bytes: 4_500_000, byteCount: 20_100_000).line("Joining 2 files")
        == "Joining 2 files: 1 change, 4.50 MB of 20.1 MB written")
    let bench = try Workbench()
    try bench.sql("old.db", "CREATE TABLE t(a INTEGER PRIMARY KEY, b)")
    try bench.sql(
      "new.db",
      """
      CREATE TABLE t(a INTEGER PRIMARY KEY, b);
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) INSERT INTO t SELECT i, hex(zeroblob(50)) FROM n
      """)
    #expect(try bench.buckia(["diff", "old.db", "new.db", "-o", "x.bdiff"]).status == 0)
    let input = InboundSource.path(bench.path("x.bdiff"))
    let rewrites: [(@escaping RewrittenChanges.Progress) throws -> RewrittenChanges] = [
      { try RewrittenChanges(inverting: input, progress: $0) }, { try RewrittenChanges(sorting: input, progress: $0) },
      { try RewrittenChanges(concatenating: [input], progress: $0) },
    ]
    for rewrite in rewrites {
      var told: [RewritingProgress] = []
      _ = try rewrite { told.append($0) }
      guard case .checking = told.first, case .rewriting(20_000, let bytes, let byteCount) = told.last else {
        Issue.record("\(told)")
        continue
      }
      #expect(bytes > 0 && bytes <= byteCount && byteCount > 2_000_000)
    }
  }
}
