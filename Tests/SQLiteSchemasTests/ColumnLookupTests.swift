import SQLiteSchemas
import Testing

@Suite struct ColumnLookupTests {
  @Test("Columns are found by name as SQLite finds them, few or many", arguments: [0, 14, 2_000])
  func lookup(others: Int) {
    let names = ["Ab", "\u{e9}", "e\u{301}", "K", "\u{212a}"] + (0..<others).map { "c\($0)" }
    var columns = ColumnLookup(names.map { ColumnDefinition(name: $0) })
    for (index, name) in names.enumerated() { #expect(columns[name] == index) }
    #expect(columns["aB"] == 0 && columns["k"] == 3)
    #expect(columns["\u{c9}"] == nil && columns["new"] == nil)
    for _ in 0..<20 { columns.append("New") }
    #expect(columns["new"] == names.count)
  }
}
