import Buckia
import BuckiaLedger
import SQLiteConnections
import TestSupport
import Testing

/// A difference between sender and receiver is repaired by their next files: the receiver requests rows, and gets them
/// again.
@Suite struct ResentRowsTests {
  private static let schema = """
    CREATE TABLE album(id INTEGER PRIMARY KEY, name TEXT);
    CREATE TABLE photo(id INTEGER PRIMARY KEY, album INTEGER REFERENCES album(id), title TEXT) WITHOUT ROWID;
    """
  private static let rows = """
    INSERT INTO album VALUES (1,'summer'),(2,'winter');
    WITH r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r WHERE x < 1000) INSERT INTO photo SELECT x, 1, 't' || x FROM r;
    """
  private static let album = ShareScope(name: "album") {
    SharedTable("album").where("id = 1")
    SharedTable("photo").children(of: "album")
  }

  private let folder: TemporaryFolder
  private let anna: SharingPerson
  private let ben: SharingPerson

  /// Both have shared with each other.
  init() throws {
    folder = try TemporaryFolder()
    anna = try SharingPerson("anna", in: folder, Self.schema + Self.rows)
    ben = try SharingPerson("ben", in: folder, Self.schema)
    try anna.share(Self.album, with: ben)
    try ben.receive()
    try ben.share(Self.album, with: anna)
    try anna.receive()
    try anna.run("UPDATE album SET name = 'warm' WHERE id = 1")
    try anna.share(Self.album, with: ben)
    try ben.receive()
  }

  /// Anna's share report, and the differences that Ben finds.
  private func fromAnna() throws -> (ShareReport, [[String]]) {
    let report = try anna.share(Self.album, with: ben)
    return (report, try ben.receive().differences)
  }

  private func fromBen() throws -> ShareReport {
    let report = try ben.share(Self.album, with: anna)
    #expect(try anna.receive().differences == [])
    return report
  }

  private func expectAgreement() throws {
    for person in [anna, ben] {
      #expect(try person.alteredStates() == [])
      #expect(try person.rows("SELECT table_name FROM buckia_state WHERE difference IS NOT NULL") == [])
      #expect(try person.rows("SELECT table_name FROM buckia_request") == [])
    }
    #expect(try anna.rows("SELECT * FROM photo WHERE album = 1") == ben.rows("SELECT * FROM photo"))
  }

  @Test(arguments: [
    "DELETE FROM buckia_provenance_2 WHERE k0 = 7", "UPDATE buckia_provenance_2 SET hash = hash / 2 WHERE k0 = 7",
  ])
  func `the receiver requests the rows of a bucket, and gets no others`(_ damage: String) throws {
    try ben.run(damage)
    try anna.run("UPDATE photo SET title = 'new' WHERE id IN (8, 9); DELETE FROM photo WHERE id = 7")
    #expect(try fromAnna().1 == [["photo", "1"]])
    let request = try fromBen()
    #expect(request.id != nil)
    #expect(request.tables == [])
    // The rows are not requested twice.
    #expect(try ben.share(Self.album, with: anna).id == nil)
    try anna.run("INSERT INTO photo VALUES (2000,1,'at the same time')")
    let (mending, differences) = try fromAnna()
    #expect(!mending.isSnapshot)
    let inserted = try #require(mending.tables.first { $0.name == "photo" }).inserted
    #expect((1..<30).contains(inserted))
    #expect(differences == [])
    try expectAgreement()
    #expect(try fromAnna().0.id == nil)
    try anna.run("UPDATE photo SET title = title || '!'")
    #expect(try fromAnna().1 == [])
    try expectAgreement()
  }

  @Test func `an altered baseline is repaired, too`() throws {
    try anna.run("UPDATE buckia_baseline_2 SET title = 'z' WHERE id = 7; DELETE FROM buckia_baseline_2 WHERE id = 8")
    try anna.run("UPDATE photo SET title = title || '!' WHERE id = 9")
    #expect(try fromAnna().1.map(\.first) == ["photo"])
    _ = try fromBen()
    #expect(try fromAnna().1 == [])
    try expectAgreement()
  }

  @Test func `rows that are sent again keep local edits, and rows that have left the scope are removed`() throws {
    try ben.run("UPDATE photo SET title = 'of ben' WHERE id = 9")
    try ben.run("DELETE FROM buckia_provenance_2 WHERE k0 = 7")
    try anna.run("UPDATE photo SET title = 'of anna' WHERE id = 7")
    #expect(try fromAnna().1 == [["photo", "1"]])
    try ben.share(Self.album, with: anna)
    #expect(try anna.receive().differences == [])
    // All rows but one have left the scope meanwhile.
    try anna.run("UPDATE photo SET album = 2 WHERE id <> 9")
    #expect(try fromAnna().1 == [])
    #expect(try anna.alteredStates() == [])
    #expect(try ben.alteredStates() == [])
    #expect(try ben.rows("SELECT * FROM buckia_state WHERE difference IS NOT NULL") == [])
    #expect(try ben.rows("SELECT title FROM photo WHERE id = 9") == ["of ben"])
    #expect(try anna.rows("SELECT title FROM photo WHERE id = 9") == ["of ben"])
  }

  @Test func `if the differing buckets are unknown, the whole table is sent again`() throws {
    try ben.run("DELETE FROM buckia_provenance_2 WHERE k0 < 500")
    try anna.run("UPDATE photo SET title = title || '!'")
    #expect(try fromAnna().1 == [["photo", "an unknown number"]])
    _ = try fromBen()
    let (mending, differences) = try fromAnna()
    #expect(mending.tables.map(\.inserted) == [1000])
    #expect(differences == [])
    try expectAgreement()
  }

  @Test func `a request for unshared rows is ignored`() throws {
    try ben.run(
      "UPDATE buckia_state SET difference = x'00', table_name = 'secret' WHERE table_name = 'photo' AND sender = ''")
    try anna.run("CREATE TABLE secret(id INTEGER PRIMARY KEY)")
    #expect(try fromBen().id != nil)
    #expect(try anna.rows("SELECT * FROM buckia_request") == [])
    #expect(try anna.share(Self.album, with: ben).id == nil)
  }

  @Test(arguments: 0..<6) func `random differences are repaired by two more files of each side`(_ seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    print("to repeat: seed \(seed)")
    for step in 0..<4 {
      let id = Int.random(in: 1...1000, using: &random)
      let baseline = try anna.rows(
        "SELECT 'buckia_baseline_' || baseline FROM buckia_baseline WHERE table_name = 'photo'")[0]
      let provenance = try ben.rows(
        "SELECT 'buckia_provenance_' || provenance FROM buckia_provenance WHERE table_name = 'photo'")[0]
      switch Int.random(in: 0..<4, using: &random) {
      case 0: try ben.run("DELETE FROM \(provenance) WHERE k0 = \(id)")
      case 1: try ben.run("UPDATE \(provenance) SET hash = \(id) WHERE k0 BETWEEN \(id) AND \(id + 5)")
      case 2: try anna.run("DELETE FROM \(baseline) WHERE id BETWEEN \(id) AND \(id + 3)")
      default: try anna.run("UPDATE \(baseline) SET title = 'z' WHERE id = \(id)")
      }
      try anna.run("UPDATE photo SET title = 't\(step)' WHERE id BETWEEN \(id) AND \(id + 9)")
      try ben.run("UPDATE photo SET title = 'b\(step)' WHERE id = \(Int.random(in: 1...1000, using: &random))")
      _ = try fromAnna()
      for _ in 0..<2 {
        try ben.share(Self.album, with: anna)
        try anna.receive()
        _ = try fromAnna()
      }
      #expect(try ben.rows("SELECT table_name FROM buckia_state WHERE difference IS NOT NULL") == [], "seed \(seed)")
    }
  }
}
