import Buckia
import TestSupport
import Testing

/// Merges what another person has changed.
private func merge(_ theirs: String, into mine: String, since base: String, as merged: String) throws {
  let report = try DatabaseManager(mine).merge(theirs, since: base, into: merged)
  print(report.inserted, report.updated, report.deleted)
  for conflict in report.schemaConflicts { print(conflict) }
  if report.conflicts > 0 {
    for conflict in try DatabaseManager(merged).conflicts() { print(conflict.table, conflict.outcome) }
  }
}

@Suite("Samples about merging")
struct MergingSamples {
  @Test("A merge has the changes of both, and names what both have changed")
  func threeWay() throws {
    let files = try SampleFiles(ours: "UPDATE tags SET colour = 'red'; ALTER TABLE tags ADD COLUMN rank")
    let merged = files.folder.file("merged.sqlite")
    let printed = try Printed.lines {
      try merge(files.now, into: files.mine, since: files.before, as: merged)
    }
    #expect(printed == ["1 1 0", "tags keptLocal"])
    #expect(try TestDatabases.texts("SELECT title FROM notes ORDER BY id", on: merged) == ["Ship", "Radio", "Harbour"])
    #expect(try TestDatabases.texts("SELECT colour FROM tags", on: merged) == ["red"])
  }
}
