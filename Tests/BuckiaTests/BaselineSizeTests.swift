import Buckia
import TestSupport
import Testing

/// How much space a share takes in the sender's database, as `Schemas/scope.md` states.
@Suite struct BaselineSizeTests {
  private static let columns = "name TEXT, town TEXT, price REAL, note TEXT, changed INTEGER"
  private static let tables = [
    "item(id INTEGER PRIMARY KEY, \(columns))", "item(id TEXT PRIMARY KEY, \(columns))",
    "item(id TEXT PRIMARY KEY, \(columns)) WITHOUT ROWID",
  ]
  /// The pages of Buckia's own tables, most of which are empty here.
  private static let ledgerBytes = 532 << 10

  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  /// Shares 20,000 rows of about 200 bytes.
  ///
  /// - Returns: The bytes of the table and the index of its key, the growth of the database with the first share, and
  ///   its growth with a second share, of one row.
  private func sizes(
    of table: String, omitting columns: [String] = [], with people: Int = 1
  ) throws -> (rows: Int64, first: Int64, next: Int64) {
    let path = folder.file("anna.sqlite")
    try TestDatabases.run(
      """
      CREATE TABLE \(table);
      WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
      INSERT INTO item SELECT printf('1%09d', i), printf('item number %08d', i), printf('town %015d', i % 97), i * 1.25,
        printf('%0130d', i * 104729), 1700000000 + i FROM n
      """, on: path)
    let rows = try TestDatabases.size(of: path)
    var shared = SharedTable("item")
    shared.omittedColumns = columns
    var options = ShareOptions()
    options.isUnencrypted = true
    let recipients = (0..<people).map { ShareRecipient("person-\($0)") }
    func share() throws {
      try DatabaseManager(path, home: BuckiaHome(path: folder.file("home"))).share(
        ShareScope(name: "items", tables: [shared]), to: recipients, output: .folder(folder.file("outbox")),
        options: options)
    }
    try share()
    let first = try TestDatabases.size(of: path)
    try TestDatabases.run("UPDATE item SET changed = 0 WHERE id = '1000000077'", on: path)
    try share()
    return try (rows, first - rows, TestDatabases.size(of: path) - first)
  }

  @Test(
    "A baseline takes at most 4 percent more space than its rows, and a second share adds little", arguments: tables)
  func once(table: String) throws {
    let sizes = try sizes(of: table)
    #expect(sizes.first <= sizes.rows * 104 / 100 + Int64(Self.ledgerBytes), "\(sizes)")
    #expect(sizes.next <= 64 << 10, "\(sizes)")
  }

  @Test("Omitted columns take no space in the baseline")
  func omitted() throws {
    let sizes = try sizes(of: Self.tables[0], omitting: ["note"])
    #expect(sizes.first <= sizes.rows * 45 / 100 + Int64(Self.ledgerBytes), "\(sizes)")
  }

  @Test("A hundred recipients of one share take hardly more space than one")
  func people() throws {
    let sizes = try sizes(of: Self.tables[0], with: 100)
    #expect(sizes.first <= sizes.rows * 104 / 100 + Int64(Self.ledgerBytes) + 100 * 512, "\(sizes)")
  }
}
