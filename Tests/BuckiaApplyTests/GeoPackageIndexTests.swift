@testable import BuckiaApply
@testable import BuckiaLedger
import SQLiteConnections
import TestSupport
import Testing

/// Spatial indexes of GeoPackages, whose triggers call functions that SQLite does not have.
@Suite struct GeoPackageIndexTests {
  /// The trigger sets of the versions of the standard: OGC 12-128, Annex F.3.
  enum Version: String, CaseIterable {
    case v10 = "1.0"
    case v12 = "1.2"
    case v14 = "1.4"
  }

  private static let bounds = "ST_MinX(NEW.geom), ST_MaxX(NEW.geom), ST_MinY(NEW.geom), ST_MaxY(NEW.geom)"
  private static let isShape = "(NEW.geom NOTNULL AND NOT ST_IsEmpty(NEW.geom))"
  private static let wasShape = "(OLD.geom NOTNULL AND NOT ST_IsEmpty(OLD.geom))"
  private static let isNone = "(NEW.geom ISNULL OR ST_IsEmpty(NEW.geom))"
  private static let wasNone = "(OLD.geom ISNULL OR ST_IsEmpty(OLD.geom))"

  private static func triggers(_ version: Version) -> String {
    func trigger(_ name: String, _ event: String, when condition: String, _ body: String) -> String {
      "CREATE TRIGGER \"rtree_sites_geom_\(name)\" AFTER \(event) ON \"sites\" WHEN \(condition) BEGIN \(body); END;"
    }
    let replace = "INSERT OR REPLACE INTO \"rtree_sites_geom\" VALUES (NEW.fid, \(bounds))"
    let deleteOld = "DELETE FROM \"rtree_sites_geom\" WHERE id = OLD.fid"
    var all = [
      trigger("insert", "INSERT", when: isShape, replace),
      trigger("update2", "UPDATE OF geom", when: "OLD.fid = NEW.fid AND \(isNone)", deleteOld),
      trigger(
        "update4", "UPDATE", when: "OLD.fid != NEW.fid AND \(isNone)",
        "DELETE FROM \"rtree_sites_geom\" WHERE id IN (OLD.fid, NEW.fid)"),
      trigger("delete", "DELETE", when: "OLD.geom NOT NULL", deleteOld),
    ]
    if version == .v14 {
      all += [
        trigger("update5", "UPDATE", when: "OLD.fid != NEW.fid AND \(isShape)", "\(deleteOld); \(replace)"),
        trigger(
          "update6", "UPDATE OF geom", when: "OLD.fid = NEW.fid AND \(isShape) AND \(wasShape)",
          """
          UPDATE "rtree_sites_geom" SET minx = ST_MinX(NEW.geom), maxx = ST_MaxX(NEW.geom), miny = ST_MinY(NEW.geom),
            maxy = ST_MaxY(NEW.geom) WHERE id = NEW.fid
          """),
        trigger(
          "update7", "UPDATE OF geom", when: "OLD.fid = NEW.fid AND \(isShape) AND \(wasNone)",
          "INSERT INTO \"rtree_sites_geom\" VALUES (NEW.fid, \(bounds))"),
      ]
    } else {
      let event = version == .v10 ? "UPDATE OF geom" : "UPDATE"
      all += [
        trigger("update1", "UPDATE OF geom", when: "OLD.fid = NEW.fid AND \(isShape)", replace),
        trigger("update3", event, when: "OLD.fid != NEW.fid AND \(isShape)", "\(deleteOld); \(replace)"),
      ]
    }
    return all.joined(separator: "\n")
  }

  private static func blob(_ x: Double, _ y: Double, hasEnvelope: Bool = true) -> String {
    GeometryBlob.literal(GeometryBlob.point(x, y, hasEnvelope: hasEnvelope))
  }

  private static let schema = """
    CREATE TABLE "sites"("fid" INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, "geom" POINT, "name" TEXT UNIQUE);
    CREATE TABLE gpkg_ogr_contents(table_name TEXT NOT NULL PRIMARY KEY, feature_count INTEGER DEFAULT NULL);
    INSERT INTO gpkg_ogr_contents VALUES ('sites', 0);
    CREATE TRIGGER "trigger_insert_feature_count_sites" AFTER INSERT ON "sites" BEGIN
      UPDATE gpkg_ogr_contents SET feature_count = feature_count + 1 WHERE lower(table_name) = lower('sites');
    END;
    CREATE VIRTUAL TABLE "rtree_sites_geom" USING rtree(id, minx, maxx, miny, maxy);
    """

  private static let rows = """
    INSERT INTO sites VALUES (1, \(blob(1, 10)), 'one'), (2, \(blob(2, 20, hasEnvelope: false)), 'two'), (3, NULL, 'three'),
      (4, \(GeometryBlob.literal(GeometryBlob.emptyPoint())), 'four'), (5, x'00', 'garbage'), (6, \(blob(6, 60)), 'six');
    """

  private static let edits = [
    "INSERT INTO sites VALUES (7, \(blob(7.1, 70.5)), 'seven'), (8, NULL, 'eight'), (9, 'text', 'nine')",
    "UPDATE sites SET geom = \(blob(11, 110, hasEnvelope: false)) WHERE fid = 1; UPDATE sites SET name = 'zwei' WHERE fid = 2",
    "UPDATE sites SET geom = \(blob(3, 30)) WHERE fid = 3; UPDATE sites SET geom = \(blob(4, 40)) WHERE fid = 4",
    "UPDATE sites SET geom = NULL WHERE fid = 1; UPDATE sites SET geom = x'4750' WHERE fid = 2",
    "DELETE FROM sites WHERE fid IN (1, 3, 5)",
    "UPDATE sites SET fid = 20, geom = \(blob(1, 2)) WHERE fid = 2; UPDATE sites SET fid = 2 WHERE fid = 6",
    """
    UPDATE sites SET name = 'x' WHERE fid = 1; UPDATE sites SET name = 'one' WHERE fid = 2;
    UPDATE sites SET name = 'two', geom = \(blob(9, 9)) WHERE fid = 1
    """,
  ]

  /// The author's connection has the functions, as applications that write GeoPackages do.
  private func author(_ scenario: IndexScenario, _ version: Version, _ edit: String) throws -> IndexScenario.Author {
    let connection = try SQLiteConnection(opening: ":memory:", as: .create)
    var functions = SQLiteFunctions(on: connection)
    try GeoPackageFunctions.add(GeoPackageFunctions.names, to: &functions)
    try connection.execute("\(scenario.base) \(Self.triggers(version)) \(Self.rows)")
    let session = try SQLiteSession(on: connection)
    for table in scenario.tables { try session.attach(table) }
    try connection.execute(edit)
    let changes = try session.changeset()
    return IndexScenario.Author(connection: connection, changes: changes)
  }

  /// The receiver's connection has none of them when changes are applied.
  private func receiver(_ version: Version) throws -> SQLiteConnection {
    let connection = try SQLiteConnection(opening: ":memory:", as: .create)
    var functions = SQLiteFunctions(on: connection)
    try GeoPackageFunctions.add(GeoPackageFunctions.names, to: &functions)
    try connection.execute("\(Self.schema) \(Self.triggers(version)) \(Self.rows)")
    return connection
  }

  private let scenario = IndexScenario(base: Self.schema, tables: ["sites", "gpkg_ogr_contents"])

  @Test(
    "Spatial indexes of each version return the same results as in the author's database", arguments: Version.allCases,
    edits)
  func asTheAuthor(_ version: Version, _ edit: String) throws {
    // In the first version no trigger fires when only the key changes, so the author's index is wrong. A changed key is
    // recorded as DELETE and INSERT, so the receiver's index is right.
    let author = try author(scenario, version == .v10 ? .v12 : version, edit)
    let receiver = try receiver(version)
    let result = try IndexScenario.apply(author.changes, to: receiver)
    #expect(result.warnings == [])
    #expect(result.counts.conflicts == 0)
    let answers = try IndexScenario.answers(of: receiver)
    #expect(try answers == IndexScenario.answers(of: author.connection))
    #expect(answers["rtree_sites_geom"]?.isEmpty == false)
    #expect(
      try receiver.integer("SELECT feature_count FROM gpkg_ogr_contents")
        == author.connection.integer("SELECT feature_count FROM gpkg_ogr_contents"))
    try IndexScenario.expectNothingLeft(on: receiver)
    // The triggers still need the functions, so a write without them fails.
    #expect(throws: SQLiteError.self) {
      try receiver.execute("DELETE FROM sites; INSERT INTO sites VALUES (1, x'', '')")
    }
  }

  @Test("After a conflict the index contains the row that was kept", arguments: Version.allCases)
  func conflicts(_ version: Version) throws {
    for (policy, expected) in [(ConflictPolicy.keepLocal, "5.0"), (.takeIncoming, "11.0")] {
      let author = try author(
        scenario, version,
        "UPDATE sites SET geom = \(Self.blob(11, 110)) WHERE fid = 1; INSERT INTO sites VALUES (7, \(Self.blob(11, 1)), '7')"
      )
      let receiver = try receiver(version)
      do {
        var functions = SQLiteFunctions(on: receiver)
        try GeoPackageFunctions.add(GeoPackageFunctions.names, to: &functions)
        try receiver.execute("UPDATE sites SET geom = \(Self.blob(5, 50)) WHERE fid = 1")
        try receiver.execute("INSERT INTO sites VALUES (7, \(Self.blob(5, 1)), 'seven')")
      }
      let result = try IndexScenario.apply(
        author.changes, to: receiver,
        settings: ApplySettings(policies: ConflictPolicies(policy), time: 2_000_000_000_000))
      // The number of features is another conflict.
      #expect(result.counts.conflicts >= 2)
      #expect(result.warnings == [])
      let found = try TestDatabases.texts(
        "SELECT minx FROM rtree_sites_geom WHERE id IN (1, 7) ORDER BY id", on: receiver)
      #expect(found == [expected, expected])
      _ = try IndexScenario.answers(of: receiver)
      try IndexScenario.expectNothingLeft(on: receiver)
    }
  }

  @Test("Functions that the application has defined are called, and stay")
  func applicationsFunctions() throws {
    let author = try author(scenario, .v14, "INSERT INTO sites VALUES (7, \(Self.blob(7, 70)), 'seven')")
    let receiver = try receiver(.v14)
    var functions = SQLiteFunctions(on: receiver)
    for name in ["ST_MinX", "st_maxx", "ST_MinY", "ST_MaxY"] {
      try functions.add(name, argumentCount: 1) { _ in .real(42) }
    }
    let result = try IndexScenario.apply(author.changes, to: receiver)
    #expect(result.warnings == [])
    #expect(
      try TestDatabases.texts("SELECT * FROM rtree_sites_geom WHERE id = 7", on: receiver) == ["7|42.0|42.0|42.0|42.0"])
    #expect(try receiver.integer("SELECT ST_MinX(NULL)") == 42)
    // The function that was missing has been removed.
    #expect(try receiver.integer("SELECT 1 FROM pragma_function_list WHERE name = 'st_isempty'") == nil)
  }

  @Test("Functions that cannot be removed while a statement runs are reported, and used by the next diff")
  func runningStatement() throws {
    let author = try author(scenario, .v12, "INSERT INTO sites VALUES (7, \(Self.blob(7, 70)), 'seven')")
    let next = try self.author(scenario, .v12, "INSERT INTO sites VALUES (8, \(Self.blob(8, 80)), 'eight')")
    let receiver = try receiver(.v12)
    let statement = try receiver.prepare("SELECT fid FROM sites")
    _ = try statement.step()
    let result = try IndexScenario.apply(author.changes, to: receiver)
    #expect(result.warnings.count == 1)
    #expect(result.warnings.first?.description.contains("st_minx") == true)
    #expect(try receiver.integer("SELECT count(*) FROM temp.sqlite_schema WHERE type = 'trigger'") == 0)
    // Only the function that tells triggers to keep the index is left; it returns 0.
    #expect(
      try receiver.integer("SELECT buckia_keeps_index(0) + buckia_keeps_index() + buckia_keeps_index(-1, 1)") == 0)
    statement.reset()
    _ = try IndexScenario.apply(next.changes, to: receiver)
    #expect(
      try TestDatabases.texts("SELECT id, minx FROM rtree_sites_geom WHERE id > 6", on: receiver) == ["7|7.0", "8|8.0"])
  }
}
