import Foundation
import Testing

@Suite("buckia ksuid")
struct KSUIDCommandTests {
  @Test("show prints when an id was made")
  func shows() throws {
    try Transcript(
      """
      $ buckia ksuid show 0ujtsYcgvSTl8PAuAdqWYSMnLOv
      0ujtsYcgvSTl8PAuAdqWYSMnLOv  2017-10-10 04:00:47 UTC
        b5a1cd34b5f99d1154fb6853345c9735
      $ buckia ksuid show 0ujtsYcgvSTl8PAuAdqWYSMnLO
      ? 64
      2> buckia: "0ujtsYcgvSTl8PAuAdqWYSMnLO" is not an id: an id has 27 characters
      $ buckia ksuid show aWgEPTl1tmebfsQzFP4bxwgy80W --json
      ? 64
      2> buckia: …
      {
        "version": 1,
        "error": {
          "code": "aboveMaximum",
      …
      """
    ).play(on: Workbench())
  }

  @Test("new prints as many ids as requested, each greater than the one before")
  func makes() throws {
    let bench = try Workbench()
    let ids = try bench.buckia(["ksuid", "new", "-n", "200"]).output.split(separator: "\n")
    #expect(ids.count == 200)
    #expect(zip(ids, ids.dropFirst()).allSatisfy { $0.utf8.lexicographicallyPrecedes($1.utf8) })
    let shown = try bench.buckia(
      ["ksuid", "show", "-", "--json"], input: Data(ids.joined(separator: "\n").utf8))
    #expect((try shown.json["ids"] as? [[String: Any]])?.compactMap { $0["id"] as? String } == ids.map(String.init))
  }

  @Test("--quiet prints nothing")
  func quiet() throws {
    let outcome = try Workbench().buckia(["ksuid", "new", "--quiet"])
    #expect((outcome.status, outcome.output, outcome.diagnostics) == (0, "", ""))
  }
}
