import Testing
@testable import Buckia
@testable import BuckiaCommand

@Suite("Advice about the command line")
struct AdviceTests {
  @Test("Remarks say which option is about them, and the others are the library's sentences")
  func remarks() {
    let advice: [Remark.Code: String] = [
      .noPrimaryKey: ", and `diff --keyless content` compares by what is in them",
      .triggers: " with `apply --triggers on`",
      .attachmentsNotUnpacked: "; `tar --zstd -xf` does it",
      .sentBefore: "; `diff --again` does it",
      .stateDiffers: "; `share --resync` does that at the sender",
      .stateAltered: "; `share --resync` does that at the sender",
      .noOldValues: "; `diff` makes files that have them",
      .rowsWithoutParent: "; `resolve --set` and `resolve --delete` do it where the row is a recorded conflict",
    ]
    for code in Remark.Code.allCases {
      let remark = Remark(code, "1", "2", "3", "4", "5")
      #expect(remark.shown == remark.description + (advice[code] ?? ""))
    }
  }

  @Test("What a raw changeset cannot carry is said with the option to leave out")
  func raw() {
    let codes = SkipReason.Code.allCases.filter { SkipReason($0).shown.contains("leave out --raw") }
    #expect(codes == [.newTableNeedsDefinition, .columnsNeedDefinition, .omittedColumnsNeedDefinition])
  }

  @Test("A database that is missing and a file that is there are met with what helps")
  func errors() throws {
    try Transcript(
      """
      $ buckia log none.db
      ? 1
      2> buckia: none.db: there is no such database; check the path; `buckia init` makes a new one
      $ mkdir folder
      $ buckia log folder
      ? 1
      2> buckia: folder: this is a folder, where a database was expected
      """
    ).play(on: Workbench())
  }

  @Test("Documents have the codes of remarks beside their sentences")
  func document() throws {
    let bench = try Workbench()
    try bench.buckia(["init", "a.db"])
    try Transcript("$ sql a.db CREATE TABLE a(x)").play(on: bench)
    let document = try bench.buckia(["doctor", "a.db", "--json"]).json
    let remarks = try #require(document["remarks"] as? [[String: Any]])
    #expect(remarks.map { $0["code"] as? String } == ["noPrimaryKey"])
    #expect(remarks.map { $0["arguments"] as? [String] } == [["a"]])
    let warnings = try #require(document["warnings"] as? [String])
    #expect(warnings.count == 1 && warnings[0].hasSuffix("`diff --keyless content` compares by what is in them"))
  }
}
