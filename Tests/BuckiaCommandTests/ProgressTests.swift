import Testing
@testable import Buckia
@testable import BuckiaCommand
@testable import BuckiaDiff

@Suite("The line that says what is being done")
struct ProgressTests {
  @Test("Applying names the file, its rows, and how much of all files is done")
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

  @Test("Comparing names the table, its rows and the bytes that were read")
  func comparing() {
    #expect(DiffProgress(table: "", rows: 0, bytes: 0).line == "Comparing pages…")
    #expect(DiffProgress(table: "", rows: 0, bytes: 64_000_000).line == "Comparing pages… 64.0 MB read")
    #expect(DiffProgress(table: "notes", rows: 4_096, bytes: 0).line == "Comparing notes: 4,096 rows")
    #expect(
      DiffProgress(table: "a\u{1B}b", rows: 1, bytes: 64_000_000).line
        == #"Comparing a\u{1B}b: 1 row, 64.0 MB of pages read"#)
  }
}
