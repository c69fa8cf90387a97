import BuckiaApply
import BuckiaBytes
import BuckiaLedger
import SQLiteSchemas
import SQLiteChangesets
import SQLiteConnections
import TestSupport
import Testing

@Suite("Policies and answers for tables, columns and rows")
struct ConflictPolicyTests {
  private static let table = "CREATE TABLE note(id INTEGER PRIMARY KEY, title TEXT, text TEXT, stars INTEGER);"

  /// Applies changes to a row that both sides have, and returns the rows, the outcomes and the counts.
  private func apply(
    _ theirs: String, onto ours: String, from base: String = "INSERT INTO note VALUES(1, 'a', 'b', 3)",
    policies: ConflictPolicies = .keepLocal, table: String = ConflictPolicyTests.table,
    resolver: ApplySettings.Resolver? = nil
  ) throws -> (rows: [String], outcomes: [ConflictOutcome], counts: ApplyCounts) {
    let author = try SQLiteConnection(opening: ":memory:", as: .create)
    try author.execute(table + base)
    let session = try SQLiteSession(on: author)
    try session.attach()
    try author.execute(theirs)
    let receiver = try SQLiteConnection(opening: ":memory:", as: .create)
    try receiver.execute(table + base + ";" + ours)
    let incoming = try IncomingChanges(
      key: LedgerKey(sender: "", id: nil, digest: [1], isRaw: true), file: "test", definitions: nil,
      changeset: TemporaryBuffer(session.changeset()))
    let settings = ApplySettings(policies: policies, resolver: resolver, time: 2_000_000_000_000)
    let transaction = try SQLiteTransaction(on: receiver)
    let result = try Receiver.plan(incoming, on: receiver, settings: settings).apply(in: transaction)
    try transaction.commit()
    let rows = try TestDatabases.texts("SELECT * FROM note ORDER BY 1", on: receiver)
    return (rows, try ConflictRecord.all(on: receiver).map(\.outcome), result.counts)
  }

  @Test("Columns changed by one side merge; the policy decides on columns changed by both")
  func merges() throws {
    let theirs = "UPDATE note SET title = 'A', stars = 5"
    let ours = "UPDATE note SET title = 'mine', text = 'B'"
    let kept = try apply(theirs, onto: ours)
    #expect(kept.rows == ["1|mine|B|5"])
    #expect(kept.outcomes == [.merged])
    #expect(kept.counts.updated == 1 && kept.counts.conflicts == 1 && kept.counts.omitted == 0)
    let taken = try apply(theirs, onto: ours, policies: .takeIncoming)
    #expect(taken.rows == ["1|A|B|5"])
    #expect(taken.outcomes == [.tookIncoming])
    let nothingElse = try apply("UPDATE note SET title = 'A'", onto: ours)
    #expect(nothingElse.rows == ["1|mine|B|3"])
    #expect(nothingElse.outcomes == [.keptLocal])
    #expect(nothingElse.counts.omitted == 1)
  }

  @Test("Columns set alike by both sides are no conflict, nor are those set by one side only")
  func alike() throws {
    let theirs = "UPDATE note SET title = 'A', stars = 5"
    for policies in [ConflictPolicies.keepLocal, .takeIncoming, .abort] {
      let merged = try apply(theirs, onto: "UPDATE note SET title = 'A', text = 'B'", policies: policies)
      #expect(merged.rows == ["1|A|B|5"])
      #expect(merged.outcomes == [])
      #expect(merged.counts.updated == 1 && merged.counts.conflicts == 0 && merged.counts.unchanged == 0)
    }
    // A resolver is asked about everything that SQLite would ask about.
    #expect(try apply(theirs, onto: "UPDATE note SET title = 'A'") { _ in .keepLocal }.rows == ["1|A|b|3"])
  }

  @Test("A column policy takes precedence, whatever the case of the column's name")
  func columns() throws {
    let policies: ConflictPolicies = [.column("STARS", of: "Note"): .takeIncoming, .otherwise: .keepLocal]
    let theirs = "UPDATE note SET title = 'A', stars = 5"
    let ours = "UPDATE note SET title = 'mine', stars = 9"
    #expect(try apply(theirs, onto: ours, policies: policies).rows == ["1|mine|b|5"])
    #expect(try apply(theirs, onto: ours, policies: policies).outcomes == [.merged])
    let others: ConflictPolicies = [.column("stars", of: "other"): .takeIncoming]
    #expect(try apply(theirs, onto: ours, policies: others).rows == ["1|mine|b|9"])
  }

  @Test("An INSERT that finds a row with its key is also merged by column policies")
  func inserts() throws {
    let policies: ConflictPolicies = [.column("title", of: "note"): .takeIncoming]
    let merged = try apply(
      "INSERT INTO note VALUES(2, 'theirs', 't', 1)", onto: "INSERT INTO note VALUES(2, 'ours', 'o', 2)", from: "",
      policies: policies)
    #expect(merged.rows == ["2|theirs|o|2"])
    #expect(merged.outcomes == [.merged])
  }

  @Test("A table policy takes precedence, and decides about deleted rows")
  func tables() throws {
    let policies: ConflictPolicies = [.table("NOTE"): .takeIncoming, .otherwise: .abort]
    #expect(try apply("DELETE FROM note", onto: "UPDATE note SET text = 'B'", policies: policies).rows == [])
    let error = #expect(throws: ReplicationError.self) {
      try apply("DELETE FROM note", onto: "UPDATE note SET text = 'B'", policies: [.otherwise: .abort])
    }
    #expect(error?.code == .conflict)
  }

  @Test("A contested column with the policy abort refuses the diff; an uncontested one does not")
  func aborts() throws {
    let policies: ConflictPolicies = [.column("title", of: "note"): .abort]
    let error = #expect(throws: ReplicationError.self) {
      try apply("UPDATE note SET title = 'A'", onto: "UPDATE note SET title = 'mine'", policies: policies)
    }
    #expect(error?.message.contains("meets a conflict (data)") == true)
    let fine = try apply(
      "UPDATE note SET title = 'A', stars = 5", onto: "UPDATE note SET stars = 9", policies: policies)
    #expect(fine.rows == ["1|A|b|9"])
  }

  @Test("A resolver may answer with its own values, for an UPDATE, an INSERT and a DELETE")
  func values() throws {
    let answer: ConflictResolver = { conflict in
      .write(["title": .text("\(conflict.local.text("title") ?? "-") + \(conflict.incoming.text("title") ?? "-")")])
    }
    let updated = try apply(
      "UPDATE note SET title = 'A'", onto: "UPDATE note SET title = 'mine'", resolver: answer)
    #expect(updated.rows == ["1|mine + A|b|3"])
    #expect(updated.outcomes == [.resolved])
    #expect(updated.counts.updated == 1 && updated.counts.omitted == 0)
    let inserted = try apply(
      "INSERT INTO note VALUES(2, 'theirs', 't', 1)", onto: "INSERT INTO note VALUES(2, 'ours', 'o', 2)", from: "",
      resolver: answer)
    #expect(inserted.rows == ["2|ours + theirs|o|2"])
    let deleted = try apply("DELETE FROM note", onto: "UPDATE note SET title = 'mine'", resolver: answer)
    #expect(deleted.rows == ["1|mine + -|b|3"])
  }

  @Test("An answer with values restores a row that was deleted here")
  func missingRow() throws {
    let result = try apply(
      "UPDATE note SET title = 'A'", onto: "DELETE FROM note",
      resolver: { $0.kind == .notFound ? .write(["text": .text("again")]) : .useDefault })
    #expect(result.rows == ["1|A|again|NULL"])
    #expect(result.outcomes == [.resolved])
  }

  @Test("An answer with values can satisfy a constraint; if it violates one, the change is left out")
  func constraints() throws {
    let table = "CREATE TABLE note(id INTEGER PRIMARY KEY, title TEXT UNIQUE);"
    func apply(_ title: String) throws -> (rows: [String], outcomes: [ConflictOutcome], counts: ApplyCounts) {
      try self.apply(
        "INSERT INTO note VALUES(2, 'x')", onto: "INSERT INTO note VALUES(9, 'x')", from: "", table: table,
        resolver: { $0.kind == .constraint ? .write(["title": .text(title)]) : .useDefault })
    }
    let satisfied = try apply("x (2)")
    #expect(satisfied.rows == ["2|x (2)", "9|x"])
    #expect(satisfied.outcomes == [.resolved])
    let again = try apply("x")
    #expect(again.rows == ["9|x"])
    #expect(again.outcomes == [.omitted])
  }

  @Test("An answer with an unknown column, or another key, is refused with its name")
  func mistakes() throws {
    let theirs = "UPDATE note SET title = 'A'"
    let ours = "UPDATE note SET title = 'mine'"
    let unknown = #expect(throws: ReplicationError.self) {
      try apply(theirs, onto: ours, resolver: { _ in .write(["nothing": .null]) })
    }
    #expect(unknown?.column == "nothing")
    let key = #expect(throws: ReplicationError.self) {
      try apply(theirs, onto: ours, resolver: { _ in .write(["id": .integer(7)]) })
    }
    #expect(key?.column == "id")
    #expect(try apply(theirs, onto: ours, resolver: { _ in .write(["ID": .integer(1)]) }).rows == ["1|mine|b|3"])
  }
}
