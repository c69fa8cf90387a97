import SQLiteConnections
import Testing

@testable import SQLiteChangesets

@Suite("Walking over checked changes")
struct ChangeWalkTests {
  @Test("A walk has the reader's positions, in changesets and patchsets of any tables", arguments: 0..<UInt64(20))
  func likeTheReader(_ seed: UInt64) throws {
    let made = try RandomDatabase(seed: seed).changes(60)
    for bytes in [made.changeset, made.patchset] {
      try bytes.withRawSpan { span in
        let summary = try ChangesetSummary.of(bytes)
        var walked: [Range<Int>] = []
        for section in summary.sections {
          var walk = ChangeWalk(section.changes, of: summary.tables[section.table].table)
          while let change = walk.next(in: span) {
            #expect(change.operation.rawValue == span.byte(at: change.start))
            walked.append(change.start..<walk.position)
          }
        }
        var reader = ChangesetReader()
        var read: [Range<Int>] = []
        while let change = try reader.next(in: span) { read.append(change.range) }
        #expect(walked == read, "seed \(seed)")
      }
    }
  }

  @Test("A summary counts the descents of keys, and lists the kinds of their values")
  func keys() throws {
    let bytes =
      changeset("a", .delete([5, 1]), .delete([6, 1]), .insert([1, 1]), .insert([1.5, 1]), .insert([1, 1]))
      + changeset("b", key: [1, 1], .insert([1, "x"]), .insert([1, "w"]), .insert([2, nil]))
      + changeset("A", .insert([0, 1]), .insert(["x", 1]))
    let summary = try ChangesetSummary.of(bytes)
    #expect(summary.tables.map(\.descents) == [2, 1])
    #expect(summary.tables.map(\.keyKinds) == [[[.integer, .real, .text]], [[.integer], [.text, .null]]])
    #expect(summary.sections.map(\.table) == [0, 1, 0])
  }

  @Test("The number of alternations between tables is limited")
  func tooManySections() throws {
    let one = changeset("a", key: [1], .insert([nil])) + changeset("b", key: [1], .insert([nil]))
    var bytes: [UInt8] = []
    for _ in 0...(ChangesetLimits.sections / 2) { bytes += one }
    let error = changesetError { _ = try ChangesetSummary.of(bytes) }
    #expect(error?.code == .tooManySections)
  }
}
