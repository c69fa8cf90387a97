import Buckia
import BuckiaApply
import Foundation
import TestSupport
import Testing
@testable import SQLiteConnections

/// Two copies of a database in which both sides give the same integer key to different rows.
@Suite("Two rows with the same key")
struct CollidingKeysTests {
  /// Two people with a copy each, who send each other their changes since the last diff.
  private struct Couple {
    let folder: TemporaryFolder

    init(_ schema: String) throws {
      folder = try TemporaryFolder()
      for name in ["anna", "ben"] {
        try TestDatabases.run(schema, on: folder.file(name))
        try folder.makeFolder("to-\(name)")
        try remember(name)
      }
    }

    func path(_ name: String) -> String { folder.file(name) }

    func database(_ name: String) -> DatabaseManager {
      DatabaseManager(path(name), home: BuckiaHome(path: folder.file("home-\(name)")))
    }

    /// Keeps a copy as the base of the next diff.
    func remember(_ name: String) throws {
      if folder.has("\(name)-before") { try FileManager.default.removeItem(atPath: folder.file("\(name)-before")) }
      _ = try folder.copy(name, to: "\(name)-before")
    }

    /// Makes edits, and sends the changes since the last copy.
    func send(from sender: String, to receiver: String, _ edits: String = "", raw: Bool = false) throws {
      if !edits.isEmpty { try TestDatabases.run(edits, on: path(sender)) }
      _ = try database(sender).createDatabaseDiff(
        since: folder.file("\(sender)-before"), output: .folder(folder.file("to-\(receiver)")),
        options: DiffOptions(isRaw: raw))
      try remember(sender)
    }

    @discardableResult
    func apply(
      to receiver: String, _ policy: ConflictPolicies = .keepLocal, resolver: ConflictResolver? = nil
    ) throws -> ApplyReport {
      let report = try database(receiver).processInboundChanges(
        [folder.file("to-\(receiver)")], options: ApplyOptions(conflicts: policy), resolver: resolver)
      try remember(receiver)
      return report
    }

    func rows(_ query: String, of name: String) throws -> [String] { try TestDatabases.rows(query, on: path(name)) }

    /// The conflicts of a database, each as a line.
    func conflicts(of name: String) throws -> [String] {
      try database(name).conflicts().map { record in
        "\(record.table) \(record.key.compactMap(\.value).map { "\($0)" }.joined()) \(record.kind) \(record.outcome)"
      }
    }

    func reasons(of name: String) throws -> [String] { try database(name).conflicts().compactMap(\.reason) }
  }

  private static let phoneBook = """
    CREATE TABLE person(id INTEGER PRIMARY KEY, code INTEGER, birthday INTEGER);
    CREATE TABLE phone(id INTEGER PRIMARY KEY, person INTEGER REFERENCES person, number INTEGER);
    INSERT INTO person VALUES (1, 1, NULL), (2, 2, NULL), (3, 3, NULL); INSERT INTO phone VALUES (1, 1, 101);
    """
  private static let fromAnna = """
    INSERT INTO person VALUES (4, 41, NULL); INSERT INTO phone VALUES (2, 4, 411), (3, 4, 412), (4, 4, 413)
    """
  private static let fromBen = """
    INSERT INTO person VALUES (4, 42, NULL); INSERT INTO phone VALUES (2, 4, 421), (8, 4, 428)
    """

  /// The phone numbers of person 4, by the person's code.
  private static let numbers = """
    SELECT code, group_concat(number) FROM (SELECT * FROM phone ORDER BY number) AS phone JOIN person ON person.id = phone.person
    WHERE person.id = 4 GROUP BY code
    """

  @Test("With keep-local, both sides keep their own person and phones, and those of the other side are conflicts")
  func keepLocal() throws {
    let couple = try Couple(Self.phoneBook)
    try couple.send(from: "anna", to: "ben", Self.fromAnna)
    try couple.send(from: "ben", to: "anna", Self.fromBen)
    for (name, code, others) in [("ben", "42", 3), ("anna", "41", 2)] {
      let report = try couple.apply(to: name)
      #expect(report.diffs.map(\.conflicts) == [1 + others] && report.diffs.map(\.omitted) == [1 + others])
      #expect(report.diffs.map(\.inserted) == [0])
      #expect(try couple.rows("SELECT code FROM person WHERE id = 4", of: name) == [code])
      #expect(
        try couple.rows("SELECT count(*) FROM phone WHERE number / 10 <> \(code) AND person = 4", of: name) == ["0"])
      let conflicts = try couple.conflicts(of: name)
      #expect(conflicts.contains("person 4 conflict keptLocal"))
      #expect(conflicts.filter { $0.hasPrefix("phone") && $0.hasSuffix("foreignKey keptLocal") }.count == others)
      let reason =
        "it refers to the row id = 4 of table \"person\", which was left out because another row with this key is here"
      #expect(try couple.reasons(of: name) == [String](repeating: reason, count: others))
    }
    try couple.send(from: "ben", to: "anna", "UPDATE person SET birthday = 1990 WHERE id = 4")
    #expect(try couple.apply(to: "anna").diffs.map(\.conflicts) == [1])
    #expect(try couple.rows("SELECT code, birthday FROM person WHERE id = 4", of: "anna") == ["41|NULL"])
    #expect(try couple.conflicts(of: "anna").last == "person 4 data keptLocal")
    #expect(try couple.reasons(of: "anna").last?.contains("its sender means another row") == true)
  }

  @Test("With take-incoming, phones of the replaced person are reported")
  func takeIncoming() throws {
    let couple = try Couple(Self.phoneBook)
    try couple.send(from: "ben", to: "anna", Self.fromBen)
    try TestDatabases.run(Self.fromAnna, on: couple.path("anna"))
    try couple.apply(to: "anna", .takeIncoming)
    #expect(try couple.rows("SELECT code FROM person WHERE id = 4", of: "anna") == ["42"])
    // Phone 2 has replaced Anna's own. Phones 3 and 4 still have the key of her person.
    #expect(
      try couple.rows("SELECT id, number FROM phone WHERE person = 4 ORDER BY id", of: "anna")
        == ["2|421", "3|412", "4|413", "8|428"])
    let conflicts = try couple.conflicts(of: "anna")
    #expect(
      conflicts == [
        "person 4 conflict tookIncoming", "phone 2 conflict tookIncoming",
        "phone 3 foreignKey reported", "phone 4 foreignKey reported",
      ])
    #expect(try couple.reasons(of: "anna").allSatisfy { $0.contains("the row id = 4 of table \"person\"") })
    // Ben may have taken Anna's person meanwhile. His row 4 may be either person, so its change is a conflict.
    try couple.send(from: "ben", to: "anna", "UPDATE person SET birthday = 1990 WHERE id = 4")
    #expect(try couple.apply(to: "anna", .takeIncoming).diffs.map(\.conflicts) == [1])
    try couple.send(from: "ben", to: "anna", "UPDATE person SET birthday = 1991 WHERE id = 4")
    #expect(try couple.apply(to: "anna", .takeIncoming).diffs.map(\.conflicts) == [0], "from now on they mean one")
    #expect(try couple.rows("SELECT birthday FROM person WHERE id = 4", of: "anna") == ["1991"])
  }

  @Test("A row refers to a replaced row, which is reported, and to a row that the diff deletes, which stays")
  func replacedAndGone() throws {
    let couple = try Couple(
      """
      CREATE TABLE person(id INTEGER PRIMARY KEY, code INTEGER); INSERT INTO person VALUES (1, 1);
      CREATE TABLE loan(id INTEGER PRIMARY KEY, giver REFERENCES person, taker REFERENCES person);
      """)
    try couple.send(from: "ben", to: "anna", "DELETE FROM person WHERE id = 1; INSERT INTO person VALUES (4, 42)")
    try TestDatabases.run(
      "INSERT INTO person VALUES (4, 41); INSERT INTO loan VALUES (1, 4, 1)", on: couple.path("anna"))
    let violations = Recorded<[Int]>([])
    try couple.apply(to: "anna", .takeIncoming) { conflict in
      if conflict.kind == .foreignKey { violations.value.append(conflict.violations) }
      return .takeIncoming
    }
    #expect(violations.value == [1])
    #expect(
      try couple.conflicts(of: "anna").filter { $0.contains("foreignKey") }.sorted()
        == ["loan 1 foreignKey reported", "person 1 foreignKey keptLocal"])
    let reasons = try couple.reasons(of: "anna").sorted()
    #expect(
      reasons == [
        "it refers to the row id = 4 of table \"person\", which is another row now: it was replaced",
        "the row id = 1 of table \"loan\" refers to it, so it stays",
      ])
  }

  @Test("With abort, nothing of the file is applied, and the reason says that another row has the key")
  func abort() throws {
    let couple = try Couple(Self.phoneBook)
    try couple.send(from: "ben", to: "anna", Self.fromBen)
    try TestDatabases.run(Self.fromAnna, on: couple.path("anna"))
    let report = try couple.apply(to: "anna", .abort)
    #expect(report.diffs.map(\.state) == [.rejected])
    #expect(report.diffs.first?.reason?.contains("another row with this key is here") == true)
    #expect(try couple.rows(Self.numbers, of: "anna").count == 1)
    // The file stays. A later file must not change Anna's person either.
    try couple.send(from: "ben", to: "anna", "UPDATE person SET birthday = 1990 WHERE id = 4")
    #expect(try couple.apply(to: "anna", .abort).diffs.map(\.state) == [.rejected, .rejected])
    #expect(try couple.apply(to: "anna").diffs.map(\.state) == [.applied, .applied])
    #expect(try couple.rows("SELECT code, birthday FROM person WHERE id = 4", of: "anna") == ["41|NULL"])
  }

  @Test("A resolver is asked about each row without its parent, and can write the row or give it another parent")
  func resolver() throws {
    let couple = try Couple(Self.phoneBook)
    try couple.send(from: "anna", to: "ben", Self.fromAnna)
    try TestDatabases.run("INSERT INTO person VALUES (4, 42, NULL)", on: couple.path("ben"))
    let asked = Recorded<[String]>([])
    try couple.apply(to: "ben") { conflict in
      guard conflict.kind == .foreignKey, conflict.operation == .insert else { return .useDefault }
      asked.value.append("\(conflict.table) \(conflict.incoming.integer("id") ?? 0) \(conflict.reason ?? "")")
      switch conflict.incoming.integer("id") {
      case 2: return .takeIncoming
      case 3: return .write(["person": .integer(1)])
      default: return .keepLocal
      }
    }
    #expect(asked.value.count == 3)
    #expect(asked.value.allSatisfy { $0.hasSuffix("because another row with this key is here") })
    #expect(try couple.rows("SELECT id, person FROM phone ORDER BY id", of: "ben") == ["1|1", "2|4", "3|1"])
    let conflicts = try couple.conflicts(of: "ben").filter { $0.hasPrefix("phone") }
    #expect(
      conflicts == [
        "phone 2 foreignKey tookIncoming", "phone 3 foreignKey resolved",
        "phone 4 foreignKey keptLocal",
      ])
  }

  // MARK: Contested keys

  /// Anna has left out Ben's person 4.
  private func contested() throws -> Couple {
    let couple = try Couple(Self.phoneBook)
    try TestDatabases.run(Self.fromAnna, on: couple.path("anna"))
    try couple.send(from: "ben", to: "anna", "INSERT INTO person VALUES (4, 42, NULL)")
    try couple.apply(to: "anna")
    return couple
  }

  @Test("Rows of a later diff do not refer to the local row with the contested key")
  func laterChildren() throws {
    let couple = try contested()
    try couple.send(from: "ben", to: "anna", "INSERT INTO phone VALUES (20, 4, 428), (21, 1, 102)")
    #expect(try couple.apply(to: "anna").diffs.map(\.conflicts) == [1])
    #expect(try couple.rows("SELECT id FROM phone WHERE id > 19", of: "anna") == ["21"])
    #expect(try couple.reasons(of: "anna").last?.contains("id = 4 of table \"person\" of its sender") == true)
  }

  @Test("Columns that only the author has changed are not merged into another row; take-incoming records a conflict")
  func notMerged() throws {
    let couple = try contested()
    for birthday in [1_990, 1_991] {
      try couple.send(from: "ben", to: "anna", "UPDATE person SET birthday = \(birthday) WHERE id = 4")
      #expect(try couple.apply(to: "anna").diffs.map(\.updated) == [0])
    }
    try couple.send(from: "ben", to: "anna", "UPDATE person SET birthday = 1992 WHERE id = 4")
    let taken = try couple.apply(to: "anna", .takeIncoming).diffs
    #expect(taken.map(\.updated) == [1] && taken.map(\.conflicts) == [1])
    #expect(try couple.rows("SELECT count(*) FROM buckia_contested_key", of: "anna") == ["0"])
  }

  @Test("The sender's DELETE keeps the local row, is a conflict, and ends the contest", arguments: [false, true])
  func deleted(raw: Bool) throws {
    let couple = try contested()
    try couple.send(from: "ben", to: "anna", "DELETE FROM person WHERE id = 4", raw: raw)
    #expect(try couple.apply(to: "anna").diffs.map(\.conflicts) == [1])
    #expect(try couple.rows("SELECT code FROM person WHERE id = 4", of: "anna") == ["41"])
    #expect(try couple.rows("SELECT count(*) FROM buckia_contested_key", of: "anna") == ["0"])
  }

  @Test("After the local row is deleted, the sender's next INSERT is applied, and its key is not contested")
  func freed() throws {
    let couple = try contested()
    try TestDatabases.run("DELETE FROM phone; DELETE FROM person WHERE id = 4", on: couple.path("anna"))
    try couple.send(from: "ben", to: "anna", "DELETE FROM person WHERE id = 4")
    try TestDatabases.run("INSERT INTO person VALUES (4, 43, NULL)", on: couple.path("ben"))
    try couple.send(from: "ben", to: "anna")
    try couple.send(from: "ben", to: "anna", "UPDATE person SET birthday = 5 WHERE id = 4")
    #expect(try couple.apply(to: "anna").diffs.map(\.conflicts) == [0, 0, 0])
    #expect(try couple.rows("SELECT code, birthday FROM person WHERE id = 4", of: "anna") == ["43|5"])
    #expect(try couple.rows("SELECT count(*) FROM buckia_contested_key", of: "anna") == ["0"])
  }

  @Test("Rows that refer to a row that the same diff has replaced are applied", arguments: [1, 40])
  func childrenOfTaken(count: Int) throws {
    let couple = try contested()
    let rows = { (code: Int) in (10..<(10 + count)).map { "(\($0), \(code), NULL)" }.joined(separator: ", ") }
    try TestDatabases.run("INSERT INTO person VALUES \(rows(41))", on: couple.path("anna"))
    try couple.send(
      from: "ben", to: "anna",
      "INSERT INTO person VALUES \(rows(42)); INSERT INTO phone SELECT id, id, 420 FROM person WHERE id >= 10")
    let report = try couple.apply(to: "anna", [.table("person"): .takeIncoming, .otherwise: .keepLocal])
    #expect(report.diffs.map(\.conflicts) == [count])
    #expect(try couple.rows("SELECT count(*) FROM phone WHERE id >= 10", of: "anna") == ["\(count)"])
    // In the next diff, Ben's keys may mean Anna's rows, which he may have taken.
    try couple.send(from: "ben", to: "anna", "INSERT INTO phone SELECT id + 100, id, 421 FROM person WHERE id >= 10")
    #expect(try couple.apply(to: "anna").diffs.map(\.conflicts) == [count])
  }

  @Test("Later changes of a left-out row in the same changeset do not change the local row")
  func laterSection() throws {
    let couple = try Couple(Self.phoneBook)
    try TestDatabases.run("INSERT INTO person VALUES (4, 41, NULL)", on: couple.path("anna"))
    let edits = ["INSERT INTO person VALUES (4, 42, NULL)", "UPDATE person SET birthday = 1990 WHERE id = 4"]
    for edit in edits { try couple.send(from: "ben", to: "anna", edit, raw: true) }
    let inbound = URL(fileURLWithPath: couple.folder.file("to-anna"))
    let files = try FileManager.default.contentsOfDirectory(atPath: inbound.path).sorted()
    try #require(files.count == 2)
    // SQLite reads two concatenated changesets as one.
    let both = try files.map { try Data(contentsOf: inbound.appendingPathComponent($0)) }
    try FileManager.default.removeItem(at: inbound.appendingPathComponent(files[1]))
    try (both[0] + both[1]).write(to: inbound.appendingPathComponent(files[0]))
    #expect(try couple.apply(to: "anna").diffs.map(\.conflicts) == [2])
    #expect(try couple.rows("SELECT code, birthday FROM person WHERE id = 4", of: "anna") == ["41|NULL"])
  }

  @Test("Equal rows of both sides are one row, and rows that refer to it are applied")
  func equalRows() throws {
    let couple = try Couple(Self.phoneBook)
    try TestDatabases.run("INSERT INTO person VALUES (4, 41, NULL)", on: couple.path("ben"))
    try couple.send(from: "anna", to: "ben", Self.fromAnna)
    #expect(try couple.apply(to: "ben").diffs.map(\.conflicts) == [0])
    #expect(try couple.rows("SELECT count(*) FROM phone WHERE person = 4", of: "ben") == ["3"])
    #expect(try couple.rows("SELECT count(*) FROM buckia_contested_key", of: "ben") == ["0"])
  }
}

extension CollidingKeysTests {
  /// A schema, Anna's changes, Ben's own rows, and the rows that Ben must have afterwards.
  struct Shape: Sendable, CustomTestStringConvertible {
    let name: String
    let schema: String
    let sent: String
    let own: String
    let query: String
    let rows: [String]
    let conflicts: Int
    var testDescription: String { name }
  }

  static let shapes = [
    Shape(
      name: "the child's table comes first",
      schema:
        "CREATE TABLE a_child(id INTEGER PRIMARY KEY, p REFERENCES z_parent); CREATE TABLE z_parent(id INTEGER PRIMARY KEY, v);",
      sent: "INSERT INTO z_parent VALUES (4, 'anna'), (5, 'anna'); INSERT INTO a_child VALUES (1, 4), (2, 5)",
      own: "INSERT INTO z_parent VALUES (4, 'ben')", query: "SELECT id, p FROM a_child", rows: ["2|5"], conflicts: 2),
    Shape(
      name: "a tree, its leaves first",
      schema: "CREATE TABLE t(id INTEGER PRIMARY KEY, parent REFERENCES t, v);",
      sent: "INSERT INTO t VALUES (9, NULL, 'anna'), (8, 9, 'anna'), (1, 8, 'anna'), (2, 1, 'anna'), (3, NULL, 'anna')",
      own: "INSERT INTO t VALUES (9, NULL, 'ben')", query: "SELECT id FROM t ORDER BY id", rows: ["3", "9"],
      conflicts: 4),
    Shape(
      name: "tables that refer to each other",
      schema: """
        CREATE TABLE a(id INTEGER PRIMARY KEY, b REFERENCES b, v); CREATE TABLE b(id INTEGER PRIMARY KEY, a REFERENCES a);
        """,
      sent: "INSERT INTO a VALUES (4, 6, 'anna'), (5, 7, 'anna'); INSERT INTO b VALUES (6, 5), (7, 4), (8, NULL)",
      own: "INSERT INTO a VALUES (4, NULL, 'ben')",
      query: "SELECT (SELECT group_concat(id) FROM a) = '4', (SELECT group_concat(id) FROM b) = '8'", rows: ["1|1"],
      conflicts: 4),
    Shape(
      name: "grandchildren",
      schema: """
        CREATE TABLE p(id INTEGER PRIMARY KEY, v); CREATE TABLE c(id INTEGER PRIMARY KEY, p REFERENCES p);
        CREATE TABLE g(id INTEGER PRIMARY KEY, c REFERENCES c);
        """,
      sent: "INSERT INTO p VALUES (4, 'anna'); INSERT INTO c VALUES (1, 4); INSERT INTO g VALUES (1, 1), (2, NULL)",
      own: "INSERT INTO p VALUES (4, 'ben')", query: "SELECT id FROM g", rows: ["2"], conflicts: 3),
    Shape(
      name: "a link that both sides made of different rows",
      schema: """
        CREATE TABLE p(id INTEGER PRIMARY KEY, v); CREATE TABLE q(id INTEGER PRIMARY KEY);
        CREATE TABLE link(p REFERENCES p, q REFERENCES q, PRIMARY KEY (p, q)) WITHOUT ROWID; INSERT INTO q VALUES (1), (2);
        """,
      sent: "INSERT INTO p VALUES (4, 'anna'); INSERT INTO link VALUES (4, 1), (4, 2)",
      own: "INSERT INTO p VALUES (4, 'ben'); INSERT INTO link VALUES (4, 1)", query: "SELECT p, q FROM link",
      rows: ["4|1"], conflicts: 3),
    Shape(
      name: "an UPDATE that sets the reference",
      schema: """
        CREATE TABLE p(id INTEGER PRIMARY KEY, v); CREATE TABLE c(id INTEGER PRIMARY KEY, p REFERENCES p, w);
        INSERT INTO p VALUES (1, 'both'); INSERT INTO c VALUES (1, 1, 0), (2, 1, 0);
        """,
      sent: "INSERT INTO p VALUES (4, 'anna'); UPDATE c SET p = 4, w = 5 WHERE id = 1; UPDATE c SET w = 6 WHERE id = 2",
      own: "INSERT INTO p VALUES (4, 'ben')", query: "SELECT id, p, w FROM c", rows: ["1|1|0", "2|1|6"], conflicts: 2),
    Shape(
      name: "two columns, of which an UPDATE sets one",
      schema: """
        CREATE TABLE p(a INTEGER, b TEXT, v, PRIMARY KEY (a, b));
        CREATE TABLE c(id INTEGER PRIMARY KEY, a, b, FOREIGN KEY (a, b) REFERENCES p);
        INSERT INTO p VALUES (1, 'x', 0); INSERT INTO c VALUES (1, 1, 'x'), (2, 1, 'x');
        """,
      sent:
        "INSERT INTO p VALUES (1, 'y', 'anna'), (1, 'z', 'anna'); UPDATE c SET b = 'y' WHERE id = 1; UPDATE c SET b = 'z' WHERE id = 2",
      own: "INSERT INTO p VALUES (1, 'y', 'ben')", query: "SELECT id FROM c WHERE b = 'z'", rows: ["2"], conflicts: 2),
    Shape(
      name: "a UNIQUE column, compared as the parent does",
      schema: """
        CREATE TABLE p(id INTEGER PRIMARY KEY, name TEXT COLLATE NOCASE UNIQUE);
        CREATE TABLE c(id INTEGER PRIMARY KEY, name TEXT REFERENCES p(name));
        """,
      sent: "INSERT INTO p VALUES (4, 'anna'); INSERT INTO c VALUES (1, 'ANNA')",
      own: "INSERT INTO p VALUES (4, 'ben')",
      query: "SELECT count(*) FROM c", rows: ["0"], conflicts: 2),
    Shape(
      name: "a parent that a constraint refuses",
      schema: """
        CREATE TABLE p(id INTEGER PRIMARY KEY, u UNIQUE); CREATE TABLE c(id INTEGER PRIMARY KEY, p REFERENCES p);
        """,
      sent: "INSERT INTO p VALUES (4, 1), (5, 2); INSERT INTO c VALUES (1, 4), (2, 5)",
      own: "INSERT INTO p VALUES (9, 1)",
      query: "SELECT id, p FROM c", rows: ["2|5"], conflicts: 2),
    Shape(
      name: "nothing refers to it",
      schema: "CREATE TABLE p(id INTEGER PRIMARY KEY, v); CREATE TABLE c(id INTEGER PRIMARY KEY, p);",
      sent: "INSERT INTO p VALUES (4, 'anna'); INSERT INTO c VALUES (1, 4)", own: "INSERT INTO p VALUES (4, 'ben')",
      query: "SELECT id, p FROM c", rows: ["1|4"], conflicts: 1),
  ]

  @Test(
    "Rows that refer to a left-out row are left out, whatever the order and the kind of reference", arguments: shapes,
    [false, true])
  func shape(_ shape: Shape, raw: Bool) throws {
    let couple = try Couple(shape.schema)
    try couple.send(from: "anna", to: "ben", shape.sent, raw: raw)
    try TestDatabases.run(shape.own, on: couple.path("ben"))
    let report = try couple.apply(to: "ben")
    #expect(report.diffs.map(\.conflicts) == [shape.conflicts])
    #expect(try couple.rows(shape.query, of: "ben") == shape.rows)
    #expect(try couple.database("ben").conflicts().count == shape.conflicts)
    #expect(try couple.rows("SELECT * FROM pragma_foreign_key_check", of: "ben").isEmpty)
  }

  @Test("Under take-incoming, a row waits if a constraint refuses the row that it refers to")
  func constraint() throws {
    let couple = try Couple(
      "CREATE TABLE p(id INTEGER PRIMARY KEY, u UNIQUE); CREATE TABLE c(id INTEGER PRIMARY KEY, p REFERENCES p);")
    try couple.send(from: "anna", to: "ben", "INSERT INTO p VALUES (4, 1); INSERT INTO c VALUES (1, 4)")
    try TestDatabases.run("INSERT INTO p VALUES (9, 1)", on: couple.path("ben"))
    try couple.apply(to: "ben", .takeIncoming)
    #expect(try couple.conflicts(of: "ben") == ["p 4 constraint omitted", "c 1 foreignKey omitted"])
    #expect(
      try couple.reasons(of: "ben").dropFirst() == [
        "it refers to the row id = 4 of table \"p\", which is not there; it waits for that"
      ])
  }

  @Test(
    "Files before and after one with a collision are applied once, and a dry run reports the same",
    arguments: [true, false])
  func amongOthers(isOwnTransaction: Bool) throws {
    let couple = try Couple(Self.phoneBook)
    for person in 10..<14 { try couple.send(from: "anna", to: "ben", "INSERT INTO person VALUES (\(person), 0, 0)") }
    try couple.send(from: "anna", to: "ben", Self.fromAnna)
    for person in 20..<24 { try couple.send(from: "anna", to: "ben", "INSERT INTO person VALUES (\(person), 0, 0)") }
    try TestDatabases.run("INSERT INTO person VALUES (4, 42, NULL)", on: couple.path("ben"))
    let inbound = couple.folder.file("to-ben")
    let rehearsal = try couple.database("ben").processInboundChanges([inbound], options: ApplyOptions(isDryRun: true))
    #expect(try couple.rows("SELECT count(*) FROM person", of: "ben") == ["4"])
    var options = ApplyOptions()
    options.changedRowLimit = 100
    let report: ApplyReport
    if isOwnTransaction {
      let connection = try SQLiteConnection(opening: couple.path("ben"), as: .readWrite)
      try connection.execute("PRAGMA foreign_keys = ON; BEGIN; INSERT INTO person VALUES (50, 0, 0)")
      report = try DatabaseManager.borrowing(connection.handle.pointer) {
        try $0.processInboundChanges([inbound], options: options)
      }
      try connection.execute("COMMIT")
    } else {
      report = try couple.database("ben").processInboundChanges([inbound], options: options)
    }
    #expect(report.diffs.map(\.conflicts) == [0, 0, 0, 0, 4, 0, 0, 0, 0])
    #expect(rehearsal.diffs.map(\.conflicts) == report.diffs.map(\.conflicts))
    #expect(report.changedRows.map(\.table) == ["person"] && report.changedRows.first?.keys?.count == 8)
    #expect(try couple.rows("SELECT count(*) FROM phone WHERE person = 4", of: "ben") == ["0"])
    #expect(try couple.conflicts(of: "ben").count == 4)
  }

  @Test("A chain of 20,000 rows is left out with the row at its end")
  func longChain() throws {
    let couple = try Couple("CREATE TABLE t(id INTEGER PRIMARY KEY, parent REFERENCES t, v);")
    try couple.send(
      from: "anna", to: "ben",
      """
      WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
      INSERT INTO t SELECT i, nullif(i + 1, 20001), 'anna' FROM n
      """)
    try TestDatabases.run("INSERT INTO t VALUES (20000, NULL, 'ben')", on: couple.path("ben"))
    #expect(try couple.apply(to: "ben").diffs.map(\.conflicts) == [20_000])
    #expect(try couple.rows("SELECT count(*) FROM t", of: "ben") == ["1"])
  }
}
