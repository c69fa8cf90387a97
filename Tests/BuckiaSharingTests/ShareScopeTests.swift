import SQLiteChangesets
import Testing

@testable import BuckiaSharing

@Suite struct ShareScopeTests {
  static let scope = ShareScope(
    name: "album",
    tables: [
      SharedTable("album").where("id = :album", ["album": 7]),
      SharedTable("photo").children(of: "album", where: "draft = 0", depth: 2).omitting("note")
        .rewriting("owner", to: .null),
      SharedTable("place").columns("name", "country"),
    ],
    references: [SharedReference("tag", ["photo"], to: "photo", ["id"])], excludedTables: ["user"])

  @Test func `a scope is read back from its document`() throws {
    let document = Self.scope.json
    #expect(try ShareScope(json: document) == Self.scope)
    #expect(try ShareScope(json: document).json == document)
  }

  @Test(arguments: [
    ("[]", "the scope is a list, not an object"),
    (#"{"tables":[]}"#, #""format" of the scope is missing"#),
    (#"{"format":2,"tables":[]}"#, "the scope has another format than 1; a newer Buckia may know it"),
    (#"{"format":1,"tables":[{"tabel":"x"}]}"#, #""tables[0].table" of the scope is missing"#),
    (#"{"format":1,"tables":[{"table":"x","omits":["y"]}]}"#, #""tables[0].omits" of the scope is not a known field"#),
    (
      #"{"format":1,"tables":[{"table":"x","depth":0}]}"#,
      #""tables[0].depth" of the scope is 0, outside 1 to 9223372036854775807"#
    ),
    (
      #"{"format":1,"tables":[{"table":"x","parameters":{"a":true}}]}"#,
      #""tables[0].parameters" of the scope has a value for "a" that no column can have"#
    ),
    (#"{"format":1,"tables":[],"public":true}"#, #""public" of the scope is not a known field"#),
  ])
  func `a wrong document is an error that says where`(document: String, message: String) {
    let error = #expect(throws: (any Error).self) { try ShareScope(json: document) }
    #expect("\(error!)" == message)
  }
}
