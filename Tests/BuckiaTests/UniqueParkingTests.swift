import Buckia
import BuckiaBytes
import SQLiteConnections
import TestSupport
import Testing

/// Under the policy `latest`, a UNIQUE value belongs to the row that got it from the latest diff.
@Suite("Rows parked for a UNIQUE value") struct UniqueParkingTests {
  static let schema = """
    CREATE TABLE person(id INTEGER PRIMARY KEY, email TEXT UNIQUE, name TEXT);
    INSERT INTO person VALUES (1, 'a@x', 'Ann'), (2, 'b@x', 'Ben')
    """
  private static let people = "SELECT * FROM person ORDER BY id"

  @Test("Of two rows with one UNIQUE value the later diff's row stays, whichever arrives first; the other is parked")
  func laterRow() throws {
    for isLateFirst in [false, true] {
      var group = try Group(3, Self.schema)
      try group.edit(0, "INSERT INTO person VALUES (7, 'c@x', 'Cleo')")
      let early = try #require(try group.send(0).path)
      try group.edit(1, "INSERT INTO person VALUES (8, 'c@x', 'Carl')")
      let late = try #require(try group.send(1).path)
      let reports = [try group.apply(2, [isLateFirst ? late : early]), try group.apply(2)]
      #expect(reports.flatMap(\.diffs).reduce(0) { $0 + $1.conflicts } == (isLateFirst ? 1 : 2))
      try group.apply(0)
      try group.apply(1)
      for member in 0..<3 {
        #expect(try group.rows(member, Self.people) == ["1|a@x|Ann", "2|b@x|Ben", "8|c@x|Carl"])
        let records = try group.members[member].database.conflicts()
        #expect(records.allSatisfy { $0.kind == .constraint })
        let lost = try #require(records.first { $0.key.first?.value == .integer(7) })
        #expect((lost.local ?? lost.incoming)?.first { $0.column == "name" }?.value == .text("Cleo"))
      }
      // The value is free again, so the parked row returns.
      try group.edit(0, "DELETE FROM person WHERE id = 8")
      try group.settle()
      for member in 0..<3 {
        #expect(try group.rows(member, Self.people) == ["1|a@x|Ann", "2|b@x|Ben", "7|c@x|Cleo"])
      }
    }
  }

  @Test("A parked row returns with the changes that arrived meanwhile, and a DELETE removes it")
  func keptRow() throws {
    var group = try Group(3, Self.schema)
    try group.edit(0, "INSERT INTO person VALUES (7, 'c@x', 'Cleo'), (9, 'd@x', 'Dora')")
    try group.send(0)
    try group.apply(0, [])
    try group.edit(1, "INSERT INTO person VALUES (8, 'c@x', 'Carl'), (10, 'd@x', 'Dan')")
    try group.send(1)
    try group.apply(1, [])
    try group.apply(2)
    #expect(try group.rows(2, "SELECT name FROM person WHERE id > 2 ORDER BY id") == ["Carl", "Dan"])
    // Only the authors of these rows have them in their tables.
    try group.edit(0, "UPDATE person SET name = 'Cleopatra' WHERE id = 7; DELETE FROM person WHERE id = 9")
    try group.send(0)
    try group.apply(2)
    try group.edit(1, "UPDATE person SET email = 'carl@x' WHERE id = 8; DELETE FROM person WHERE id = 10")
    try group.send(1)
    try group.apply(2)
    let expected = ["7|c@x|Cleopatra", "8|carl@x|Carl"]
    #expect(try group.rows(2, "SELECT * FROM person WHERE id > 2 ORDER BY id") == expected)
    try group.settle()
    for member in 0..<3 {
      #expect(try group.rows(member, "SELECT * FROM person WHERE id > 2 ORDER BY id") == expected)
      #expect(try group.rows(member, "SELECT count(*) FROM buckia_clock_1_pending") == ["0"])
    }
  }

  @Test("References follow from a row that gives way to the other row, even if the referring row then gives way")
  func referencesFollow() throws {
    var group = try Group(
      2,
      """
      CREATE TABLE customer(id INTEGER PRIMARY KEY, email TEXT UNIQUE);
      CREATE TABLE purchase(id INTEGER PRIMARY KEY, customer INTEGER NOT NULL REFERENCES customer(id), number,
        UNIQUE(customer, number));
      CREATE TABLE line(purchase INTEGER REFERENCES purchase(id), number INTEGER, product TEXT,
        PRIMARY KEY(purchase, number)) WITHOUT ROWID;
      CREATE TABLE remark(id INTEGER PRIMARY KEY, purchase INTEGER, number INTEGER,
        FOREIGN KEY(purchase, number) REFERENCES line(purchase, number))
      """)
    try group.edit(
      0,
      """
      INSERT INTO customer VALUES (1, 'a@x'); INSERT INTO purchase VALUES (1, 1, 7);
      INSERT INTO line VALUES (1, 1, 'tea'), (1, 2, 'milk'); INSERT INTO remark VALUES (1, 1, 2)
      """)
    try group.send(0)
    try group.edit(
      1,
      "INSERT INTO customer VALUES (2, 'a@x'); INSERT INTO purchase VALUES (2, 2, 7); INSERT INTO line VALUES (2, 1, 'jam')"
    )
    try group.send(1)
    for member in 0..<2 {
      try group.apply(member)
      #expect(try group.rows(member, "SELECT * FROM pragma_foreign_key_check").isEmpty)
    }
    #expect(try group.rows(0, "SELECT * FROM purchase") == ["2|2|7"])
    #expect(try group.rows(0, "SELECT * FROM line ORDER BY number") == ["2|1|jam", "2|2|milk"])
    #expect(try group.rows(0, "SELECT * FROM remark") == ["1|2|2"])
  }

  @Test("An unsent UNIQUE value is later than all incoming ones")
  func unsentRow() throws {
    var group = try Group(2, Self.schema)
    try group.edit(1, "INSERT INTO person VALUES (8, 'c@x', 'Carl'); UPDATE person SET email = 'n@x' WHERE id = 2")
    try group.send(1)
    try group.edit(0, "INSERT INTO person VALUES (7, 'c@x', 'Cleo'); UPDATE person SET email = 'n@x' WHERE id = 1")
    try group.apply(0)
    let expected = ["1|n@x|Ann", "7|c@x|Cleo"]
    #expect(try group.rows(0, Self.people) == expected)
    let report = try group.send(0)
    // The rows that gave way are not sent as deleted.
    #expect(report.tables.map { [$0.inserted, $0.updated, $0.deleted] } == [[1, 1, 0]])
    try group.settle()
    for member in 0..<2 { #expect(try group.rows(member, Self.people) == expected) }
  }

  @Test("Rows whose UNIQUE values are swapped here all stay when other changes arrive")
  func swappedHere() throws {
    var group = try Group(2, Self.schema)
    try group.edit(
      0,
      "UPDATE person SET email = NULL WHERE id = 1; UPDATE person SET email = 'a@x' WHERE id = 2; "
        + "UPDATE person SET email = 'b@x' WHERE id = 1")
    try group.edit(1, "UPDATE person SET name = 'Anna' WHERE id = 1; INSERT INTO person VALUES (3, 'c@x', 'Cleo')")
    try group.send(1)
    try group.apply(0)
    #expect(try group.rows(0, Self.people) == ["1|b@x|Anna", "2|a@x|Ben", "3|c@x|Cleo"])
    try group.settle()
    #expect(try group.content(0) == group.content(1))
  }

  @Test("A parked row returns once the value was freed here and the change sent, even without more files")
  func freedHere() throws {
    var group = try Group(2, Self.schema)
    try group.edit(0, "INSERT INTO person VALUES (7, 'c@x', 'Cleo')")
    try group.send(0)
    try group.apply(0, [])
    try group.edit(1, "INSERT INTO person VALUES (8, 'c@x', 'Carl')")
    try group.send(1)
    try group.apply(0)
    try group.apply(1)
    try group.edit(0, "DELETE FROM person WHERE id = 8")
    // The value is not free until the deletion is sent.
    try group.apply(0, [])
    #expect(try group.rows(0, "SELECT * FROM person WHERE id > 2").isEmpty)
    try group.send(0)
    let report = try group.apply(0, [])
    #expect(report.warnings.map(\.code).contains(.rowsReturned))
    #expect(try group.rows(0, "SELECT * FROM person WHERE id > 2") == ["7|c@x|Cleo"])
    try group.settle()
    #expect(try group.content(0) == group.content(1))
  }

  @Test("Undoing the diff that parked a row brings the row back")
  func undo() throws {
    var group = try Group(2, Self.schema)
    try group.edit(0, "INSERT INTO person VALUES (7, 'c@x', 'Cleo')")
    try group.send(0)
    try group.apply(0, [])
    try group.edit(1, "INSERT INTO person VALUES (8, 'c@x', 'Carl')")
    let late = try #require(try group.send(1).id)
    try group.apply(0)
    #expect(try group.rows(0, "SELECT name FROM person WHERE id > 2") == ["Carl"])
    try group.members[0].database.undo([.diff(late.description)])
    #expect(try group.rows(0, "SELECT name FROM person WHERE id > 2") == ["Cleo"])
    try group.settle()
    #expect(try group.content(0) == group.content(1))
  }

  @Test("A full-text index that triggers keep follows rows that are parked, return, or were edited here")
  func fullText() throws {
    var group = try Group(
      2,
      """
      CREATE TABLE person(id INTEGER PRIMARY KEY, email TEXT UNIQUE, name TEXT);
      CREATE VIRTUAL TABLE names USING fts5(name, content = 'person', content_rowid = 'id');
      CREATE TRIGGER person_ai AFTER INSERT ON person BEGIN
        INSERT INTO names(rowid, name) VALUES (new.id, new.name); END;
      CREATE TRIGGER person_ad AFTER DELETE ON person BEGIN
        INSERT INTO names(names, rowid, name) VALUES ('delete', old.id, old.name); END;
      CREATE TRIGGER person_au AFTER UPDATE ON person BEGIN
        INSERT INTO names(names, rowid, name) VALUES ('delete', old.id, old.name);
        INSERT INTO names(rowid, name) VALUES (new.id, new.name); END;
      INSERT INTO person VALUES (1, 'a@x', 'Ann'), (2, 'b@x', 'Ben')
      """)
    func check(_ words: [String: Int]) throws {
      for (word, count) in words {
        #expect(try group.rows(0, "SELECT count(*) FROM names WHERE names MATCH '\(word)'") == ["\(count)"], "\(word)")
      }
      try TestDatabases.run(
        "INSERT INTO names(names, rank) VALUES ('integrity-check', 1)", on: group.members[0].database.path)
    }
    try group.edit(0, "INSERT INTO person VALUES (7, 'c@x', 'Cleo')")
    try group.send(0)
    try group.apply(0, [])
    try group.edit(1, "INSERT INTO person VALUES (8, 'c@x', 'Carl'); UPDATE person SET name = 'Anna' WHERE id = 1")
    try group.send(1)
    try group.edit(0, "UPDATE person SET name = 'Anabel' WHERE id = 1; UPDATE person SET name = 'Bea' WHERE id = 2")
    try group.apply(0)
    try check(["Anabel": 1, "Anna": 0, "Bea": 1, "Carl": 1, "Cleo": 0])
    try group.edit(1, "DELETE FROM person WHERE id = 8")
    try group.send(1)
    try group.apply(0)
    try check(["Carl": 0, "Cleo": 1, "Anabel": 1])
  }

  @Test("A row that was deleted here before another row got its UNIQUE value is sent as deleted")
  func snapshotWithoutClocks() throws {
    var group = try Group(2, Self.schema)
    group.options.conflicts = .keepLocal
    try group.edit(0, "DELETE FROM person WHERE id = 1")
    try group.edit(1, "UPDATE person SET email = 'ann@x' WHERE id = 1; INSERT INTO person VALUES (3, 'a@x', 'Ada')")
    try group.send(1)
    try group.apply(0)
    let report = try group.send(0)
    #expect(report.tables.first?.deleted == 1)
  }
}
