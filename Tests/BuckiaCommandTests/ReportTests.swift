import BuckiaBytes
import SQLiteChangesets
import Testing
@testable import Buckia
@testable import BuckiaApply
@testable import BuckiaCommand
@testable import BuckiaDiff
@testable import BuckiaLedger
@testable import SQLiteSchemas

@Suite("Reports")
struct ReportTests {
  private let plain = Style(isColored: false)

  private func report(
    _ states: [(DiffState, conflicts: Int, code: BuckiaErrorCode?)]
  ) -> ApplyReport {
    let diffs = states.map { state, conflicts, code in
      var diff = DiffOutcome(id: nil, path: "inbound/x.bdiff", sender: "unsigned", state: state)
      diff.conflicts = conflicts
      diff.code = code
      return diff
    }
    return ApplyReport(
      trust: .any, diffs: diffs, ignored: 0, createdLedger: false, seconds: 0, isDryRun: false,
      changedRows: [])
  }

  @Test("Success exits with 0, with or without conflicts")
  func done() {
    #expect(report([]).status(failure: nil, failsOnConflict: true) == .done)
    #expect(
      report([(.applied, 0, nil), (.alreadyApplied, 0, nil)]).status(failure: nil, failsOnConflict: true) == .done)
    #expect(report([(.applied, 3, nil)]).status(failure: nil, failsOnConflict: false) == .done)
  }

  @Test(
    "A file that needs a person exits with 2",
    arguments: [DiffState.waiting, .held, .quarantined])
  func needsPerson(state: DiffState) {
    #expect(report([(.applied, 0, nil), (state, 0, nil)]).status(failure: nil, failsOnConflict: false) == .needsPerson)
  }

  @Test("Conflicts exit with 2 if requested, and under the policy abort")
  func conflicts() {
    #expect(report([(.applied, 1, nil)]).status(failure: nil, failsOnConflict: true) == .needsPerson)
    #expect(report([(.rejected, 1, .conflict)]).status(failure: nil, failsOnConflict: false) == .needsPerson)
  }

  @Test("A refused file takes precedence over one that waits")
  func refused() {
    let mixed = report([(.waiting, 0, nil), (.rejected, 0, .refusedTable), (.rejected, 1, .conflict)])
    #expect(mixed.status(failure: nil, failsOnConflict: true) == .failed)
  }

  @Test("An error that stopped the work decides the exit code and is in the document")
  func failure() {
    let failure = ErrorReport(BuckiaError(.noDatabase, "gone", path: "a.db"))
    let stopped = report([(.applied, 0, nil)])
    #expect(stopped.status(failure: failure, failsOnConflict: false) == .failed)
    #expect(
      stopped.json(failure: failure).text().contains(
        #""error":{"code":"no-database","message":"a.db: gone; `buckia init` makes a new one","path":"a.db""#))
  }

  @Test("Names and reasons from files are escaped in text, and unchanged in documents")
  func hostile() {
    let evil = "a\u{1B}[2J\u{202E}\nb"
    var diff = DiffOutcome(id: nil, path: "inbound/\(evil)", sender: evil, state: .rejected)
    diff.reason = evil
    diff.schemaChanges = [evil]
    diff.warnings = [Warning(.damaged, evil)]
    let apply = ApplyReport(
      trust: .any, diffs: [diff], ignored: 0, createdLedger: true, seconds: 0, isDryRun: false,
      changedRows: [])
    let skipped = [SkippedItem(name: evil, reason: evil)]
    let conflict = ConflictRecord(
      id: 1, entry: 1, diff: evil, table: evil, key: [.init(evil, .text(evil))], kind: .data, outcome: .keptLocal,
      base: [.init(evil, .text(evil))], local: [.init(evil, .text("x"))], incoming: [.init(evil, nil)], reason: evil)
    let entry = LedgerEntry(
      diff: nil, sender: evil, senderKey: nil, state: .rejected, recordedAt: 0, inserted: 0, updated: 0, deleted: 0,
      conflicts: 0,
      omitted: 0, reason: evil, file: evil, digest: "00")
    let file = VerifyReport.File(
      path: evil, id: nil, isGood: false, sender: evil, signature: .unknown, isEncrypted: false, reason: evil)
    let doctor = DoctorReport(
      replicates: [.init(name: evil, key: evil)], skipped: skipped, warnings: [Warning(.damaged, evil)])
    var lines = apply.lines(database: evil, style: plain)
    lines += skipped.lines(heading: "h", style: plain)
    lines += conflict.lines(style: plain)
    lines += [entry].lines(style: plain)
    lines += VerifyReport(files: [file]).lines(style: plain)
    lines += doctor.lines(style: plain)
    for line in lines {
      #expect(line.unicodeScalars.allSatisfy { $0 != "\u{1B}" && $0 != "\u{202E}" && $0 != "\n" }, "\(line)")
    }
    #expect(apply.json(failure: nil).text().contains(#""reason":"a\u001b[2J\#u{202E}\nb""#))
  }

  @Test("A conflict shows the columns that differ, or the whole row if there is only one")
  func conflictColumns() {
    let changed = ConflictRecord(
      id: 7, entry: 1, diff: "d", table: "things", key: [.init("id", .integer(17))], kind: .data, outcome: .keptLocal,
      base: [.init("id", .integer(17)), .init("name", .text("radio")), .init("note", nil)],
      local: [.init("id", .integer(17)), .init("name", .text("bell")), .init("note", .text("mine"))],
      incoming: [.init("id", nil), .init("name", .text("ship")), .init("note", nil)], reason: nil)
    #expect(
      changed.lines(style: plain) == [
        "#7  things, id = 17 (bell)",
        "  The row was changed here, too; the local row was kept. From d",
        "  column  before   here    incoming",
        "  name    'radio'  'bell'  'ship'",
      ])
    let alone = ConflictRecord(
      id: 8, entry: 1, diff: "d", table: "things", key: [.init("id", .integer(1))], kind: .constraint,
      outcome: .omitted,
      base: nil, local: nil, incoming: [.init("id", .integer(1)), .init("name", .null)],
      reason: "NOT NULL constraint failed")
    #expect(
      alone.lines(style: plain) == [
        "#8  things, id = 1",
        "  A constraint of the table refuses the row; the change was not applied. From d",
        "  NOT NULL constraint failed",
        "  column  before  here    incoming",
        "  name    no row  no row  NULL",
      ])
  }

  @Test("Errors keep their code, file, place and exit code")
  func errors() {
    let changeset = ErrorReport(ChangesetError(.truncated, offset: 12, table: "t"))
    #expect((changeset.code, changeset.offset, changeset.status) == ("truncated", 12, .failed))
    let engine = ErrorReport(ReplicationError(.noSuchTable, "there is no table x"))
    #expect(engine.failure.json.text().contains(#""code":"no-such-table","message":"there is no table x","path":null"#))
    let id = #expect(throws: KSUIDError.self) { try KSUID(parsing: "x") }
    #expect(id.map { ErrorReport($0).status } == .usage)
  }
}
