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

  @Test func `a scope comes back from its document`() throws {
    let document = Self.scope.json
    #expect(try ShareScope(json: document) == Self.scope)
    #expect(try ShareScope(json: document).json == document)
  }

  @Test(arguments: [
    ("[]", "the scope is a list, not an object"),
    (#"{"tables":[]}"#, #""format" of the scope is missing"#),
    (#"{"format":2,"tables":[]}"#, "the scope has another format than 1; a newer Buckia may know it"),
    (#"{"format":1,"tables":[{"tabel":"x"}]}"#, #""table" of tables[0] is missing"#),
    (#"{"format":1,"tables":[{"table":"x","omits":["y"]}]}"#, #""omits" of tables[0] is not known here"#),
    (#"{"format":1,"tables":[{"table":"x","depth":0}]}"#, #""depth" of tables[0] is no number from 1 on"#),
    (
      #"{"format":1,"tables":[{"table":"x","parameters":{"a":true}}]}"#,
      #""parameters" of tables[0] has a value for "a" that no column can have"#
    ),
    (#"{"format":1,"tables":[],"public":true}"#, #""public" of the scope is not known here"#),
  ])
  func `a document that is wrong says where`(document: String, message: String) {
    let error = #expect(throws: (any Error).self) { try ShareScope(json: document) }
    #expect("\(error!)" == message)
  }
}
