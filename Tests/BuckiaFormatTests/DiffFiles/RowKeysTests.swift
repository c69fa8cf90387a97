import BuckiaBytes
import Testing

@testable import BuckiaFormat

@Suite("Keys in annotations")
struct RowKeysTests {
  private let replicas = [0, 1].compactMap { ReplicaID([UInt8](repeating: $0, count: 16)) }

  private func parsed(_ keys: String) throws -> Annotations {
    try Annotations(parsing: Array(#"{"format":1,"origins":[],"runs":[],"keys":\#(keys)}"#.utf8))
  }

  @Test func `keys are written and read unchanged`() throws {
    let keys = RowKeys(
      replicas: replicas,
      runs: [
        RowKeys.Run(count: 2),
        RowKeys.Run(
          count: 3, names: [RowKeys.Names(replica: 1), RowKeys.Names(replica: 0, keys: [7, -1, .max])]),
      ],
      references: [RowKeys.Reference(table: "photo", key: .min, replica: 1, name: 5)],
      links: [RowKeys.Link(table: "comment", columns: ["photo"], parent: "photo", parentColumns: [])])
    let annotations = Annotations(origins: [], runs: [], keys: keys)
    #expect(try Annotations(parsing: annotations.bytes()) == annotations)
    #expect(keys.changeCount == 5)
  }

  @Test(arguments: [
    #"{}"#,
    #"{"replicas":["00"]}"#,
    #"{"replicas":["00000000000000000000000000000000","00000000000000000000000000000000"]}"#,
    #"{"replicas":[],"other":1}"#,
    #"{"replicas":[],"runs":[{"count":0}]}"#,
    #"{"replicas":[],"runs":[{"count":1,"names":[{"replica":0}]}]}"#,
    #"{"replicas":["00000000000000000000000000000000"],"runs":[{"count":1,"names":[{"replica":1}]}]}"#,
    #"{"replicas":["00000000000000000000000000000000"],"runs":[{"count":2,"names":[{"replica":0,"keys":[1]}]}]}"#,
    #"{"replicas":["00000000000000000000000000000000"],"runs":[{"count":1,"names":[{"replica":0,"keys":["1"]}]}]}"#,
    #"{"replicas":["00000000000000000000000000000000"],"runs":[{"count":1,"names":[{"replica":0,"keys":[true]}]}]}"#,
    #"{"replicas":["00000000000000000000000000000000"],"runs":[{"count":1,"names":[{"replica":0},{"replica":0}]}]}"#,
    #"{"replicas":[],"references":[{"table":"t","key":1,"replica":0,"name":1}]}"#,
    #"{"replicas":["00000000000000000000000000000000"],"references":[{"table":"t","key":"9223372036854775808","replica":0,"name":1}]}"#,
    #"{"replicas":[],"links":[{"table":"t","columns":["a"],"parent":"p"}]}"#,
  ])
  func `keys that violate a rule are refused`(keys: String) {
    #expect(throws: DiffFileError.self) { try parsed(keys) }
  }

  @Test func `only keys that JSON cannot represent exactly are text`() throws {
    let start = #"{"replicas":["00000000000000000000000000000000"],"runs":[{"count":1,"names":[{"replica":0,"keys":["#
    #expect(try parsed(start + #""9223372036854775807"]}]}]}"#).keys?.runs.first?.names.first?.keys == [.max])
    #expect(throws: DiffFileError.self) { try parsed(start + #""-007"]}]}]}"#) }
    #expect(throws: DiffFileError.self) { try parsed(start + "9223372036854775807]}]}]}") }
  }
}
