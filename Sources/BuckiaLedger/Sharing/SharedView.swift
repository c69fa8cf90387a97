import SQLiteConnections
import SQLiteSchemas

/// The view `buckia_shared`: the rows that are shared, and those that others have shared, by table and key.
///
/// Each share has tables of its own, and so has each table with received rows, which is why the view is replaced when
/// tables are added or dropped. It must be updated together with them: SQLite renames no table of the app while a view
/// is broken.
enum SharedView {
  /// The number of key columns in the view.
  private static let keyColumns = 4
  /// The most terms of a compound SELECT; SQLite's limit is 500 (<https://sqlite.org/limits.html>).
  private static let termLimit = 400

  private static let keys = (0..<keyColumns).map { $0 == 0 ? "key" : "key\($0 + 1)" }
  private static let columns =
    ["table_name"] + keys + ["direction", "stream", "people", "diff", "sequence", "acknowledged_by", "acknowledged"]

  /// Creates the view again.
  ///
  /// - Throws: `SQLiteError`.
  static func refresh(on connection: borrowing SQLiteConnection) throws {
    var terms: [String] = []
    let baselines = try connection.rows(
      of: "SELECT baseline, share, table_name FROM main.buckia_baseline ORDER BY baseline"
    ) {
      ($0.integer(at: 0), $0.integer(at: 1), $0.text(at: 2) ?? "")
    }
    for (baseline, share, table) in baselines {
      let query = "SELECT name FROM pragma_table_info(?1, 'main') WHERE pk ORDER BY pk"
      let key = try connection.rows(of: query, "buckia_baseline_\(baseline)") {
        "r.\(SQLText.identifier($0.text(at: 0) ?? ""))"
      }
      if !key.isEmpty { terms.append(sent(baseline, of: share, table, key)) }
    }
    try connection.forEachRow(of: "SELECT store, min(table_name) FROM main.buckia_provenance GROUP BY store") { row in
      let store = row.integer(at: 0)
      var key: [String] = []
      let query =
        "SELECT name FROM pragma_table_info(?1, 'main') WHERE name GLOB 'k[0-9]*' OR name = 'block' ORDER BY cid"
      try connection.forEachRow(of: query, binding: ["buckia_provenance_\(store)"]) { key.append($0.text(at: 0) ?? "") }
      if !key.isEmpty { terms.append(received(store, row.text(at: 1) ?? "", key)) }
    }
    try connection.execute("DROP VIEW IF EXISTS main.buckia_shared; \(creation(of: terms))")
  }

  private static func creation(of terms: [String]) -> String {
    let none = "SELECT \(columns.map { "NULL AS \($0)" }.joined(separator: ", ")) WHERE 0"
    let groups = stride(from: 0, to: terms.count, by: termLimit).map { start in
      let group = terms[start..<min(terms.count, start + termLimit)].joined(separator: "\nUNION ALL ")
      return terms.count > termLimit ? "SELECT * FROM (\(group))" : group
    }
    let body = groups.isEmpty ? none : groups.joined(separator: "\nUNION ALL ")
    return "CREATE VIEW main.buckia_shared(\(columns.joined(separator: ", "))) AS \(body);"
  }

  private static func term(_ table: String, _ key: [String], _ others: [String]) -> String {
    let places = (0..<keyColumns).map { $0 < key.count ? key[$0] : "NULL" }
    return "SELECT \(([SQLText.literal(table)] + places + others).joined(separator: ", "))"
  }

  private static func sent(_ baseline: Int64, of share: Int64, _ table: String, _ key: [String]) -> String {
    let others = [
      "'sent'", "lower(hex(s.stream))", "s.audience", "s.diff", "s.sequence", "a.sender", "a.through >= s.sequence",
    ]
    return """
      \(term(table, key, others)) FROM buckia_share AS s JOIN buckia_baseline_\(baseline) AS r \
      LEFT JOIN buckia_acknowledgement AS a ON a.share = \(share) WHERE s.share = \(share)
      """
  }

  private static func received(_ store: Int64, _ table: String, _ key: [String]) -> String {
    func newest(_ column: String) -> String {
      """
      (SELECT \(column) FROM buckia_stream AS p JOIN buckia_ledger AS l ON l.entry = p.entry WHERE p.stream = v.stream \
      AND p.sender = v.sender AND l.state IN ('applied', 'held') ORDER BY p.sequence DESC LIMIT 1)
      """
    }
    let others = [
      "'received'", "lower(hex(v.stream))", "v.sender", newest("l.diff"), newest("p.sequence"), "NULL", "NULL",
    ]
    let rows = "buckia_provenance_\(store) AS r CROSS JOIN buckia_provenance AS v"
    guard key == ["block"] else {
      return "\(term(table, key.map { "r.\($0)" }, others)) FROM \(rows) WHERE v.provenance = r.provenance"
    }
    // Each bit of the block that is set is a row.
    let digit = "substr(hex(substr(r.present, 1 + (d.i >> 3), 1)), CASE WHEN d.i & 4 THEN 1 ELSE 2 END, 1)"
    let numbers =
      "(WITH RECURSIVE d(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM d WHERE i < \(ProvenanceEntry.blockWidth - 1)) SELECT i FROM d)"
    return """
      \(term(table, ["(r.block << \(ProvenanceEntry.blockBits)) | d.i"], others)) FROM \(rows) JOIN \(numbers) AS d \
      WHERE v.provenance = r.provenance AND (instr('0123456789ABCDEF', \(digit)) - 1) >> (d.i & 3) & 1
      """
  }
}
