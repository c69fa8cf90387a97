import Foundation
import SQLiteConnections

/// Two people change their copies of one database; one sends, the other applies.
struct SampleScenario {
  let folder: URL
  let workspace: Workspace

  func perform() throws {
    print("\n== Anna and Ben share the database of a recording app ==\n")
    try workspace.run(script: folder.appendingPathComponent("schema.sql"), on: "before.sqlite")
    try workspace.run(script: folder.appendingPathComponent("rows.sql"), on: "before.sqlite")
    let before = URL(fileURLWithPath: workspace.path("before.sqlite"))
    for (person, script) in [("anna.sqlite", "anna.sql"), ("ben.sqlite", "ben.sql")] {
      try workspace.copy(before, to: person)
      try workspace.run(script: folder.appendingPathComponent(script), on: person)
    }
    print(
      """
      Both had the same \(try rowCount("before.sqlite")) rows: before.sqlite. Since then Anna recorded, renamed and deleted, in
      a newer version of the app that has one more table and one more column. Ben changed his copy, too.

      Anna ships what changed:
      """)
    try workspace.makeFolder("outbox")
    try workspace.type("diff", "before.sqlite", "anna.sqlite", "-o", "outbox")
    guard let file = try workspace.files(in: "outbox").first else { throw DemoError("no diff file was written") }

    print("\nThe file travels as any file does. Ben finds it in his inbound folder and looks at it:")
    try workspace.makeFolder("inbound")
    try workspace.copy(URL(fileURLWithPath: workspace.path("outbox/\(file)")), to: "inbound/\(file)")
    try workspace.type("verify", "inbound")
    try workspace.type("show", "inbound/\(file)", "--limit", "1")

    print("\nHe applies it to his database:")
    try workspace.type("apply", "ben.sqlite", "inbound")

    print("\nWhere both changed the same row, his stayed, and hers is kept beside it:")
    try workspace.type("conflicts", "ben.sqlite")

    print("\nThe ledger makes sure that no file is applied twice:")
    try workspace.type("log", "ben.sqlite")
    try workspace.type("apply", "ben.sqlite", "outbox/\(file)")

    print("\nChecked with plain SQL, row by row, against Anna's database:")
    try check()
  }

  private func pad(_ text: String, _ width: Int) -> String {
    text.padding(toLength: max(width, text.count), withPad: " ", startingAt: 0)
  }

  private func rowCount(_ database: String) throws -> String {
    let connection = try SQLiteConnection(opening: workspace.path(database), as: .readOnly)
    var tables: [String] = []
    let list = "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table'"
    try connection.forEachRow(of: list) { row in
      if let name = row.text(at: 0), !name.hasPrefix("sqlite_") { tables.append(name) }
    }
    var count: Int64 = 0
    for table in tables { count += try connection.integer("SELECT count(*) FROM \"\(table)\"") ?? 0 }
    return count.formatted(.number.locale(Locale(identifier: "en_US")))
  }

  /// Ben may only lack the rows that both changed. All that he has and Anna lacks must be his own changes.
  private func check() throws {
    let ben = workspace.path("ben.sqlite")
    print("  \(pad("table", 16))only Ben has  only Anna has")
    for difference in try TableComparison.differences(between: ben, and: workspace.path("anna.sqlite")) {
      let (benHas, annaHas) = (difference.onlyInFirst, difference.onlyInSecond)
      print("  \(pad(difference.table, 16))\(pad("\(benHas) rows", 14))\(annaHas) rows")
      guard annaHas <= 4 else { throw DemoError("Ben lacks rows of Anna's") }
    }
    let connection = try SQLiteConnection(opening: ben, as: .readOnly)
    print(
      "  That is what Ben did himself: new recordings, new prices, a plan, a recording he threw away, and his bell.")
    let integrity = try connection.text("PRAGMA integrity_check") ?? "no answer"
    let orphans = try connection.integer("SELECT count(*) FROM pragma_foreign_key_check") ?? -1
    print("  SQLite's integrity check says \(integrity); \(orphans) rows refer to one that is not there.")
    guard integrity == "ok", orphans == 0 else { throw DemoError("Ben's database is damaged") }
  }
}
