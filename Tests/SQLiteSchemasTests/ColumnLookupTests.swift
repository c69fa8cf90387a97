import SQLiteSchemas
import Testing

@Suite struct ColumnLookupTests {
  @Test("Columns are found by name as SQLite does it, few or many", arguments: [0, 14, 2_000])
  func places(others: Int) {
    let names = ["Ab", "\u{e9}", "e\u{301}", "K", "\u{212a}"] + (0..<others).map { "c\($0)" }
    var places = ColumnLookup(names.map { ColumnDefinition(name: $0) })
    for (place, name) in names.enumerated() { #expect(places[name] == place) }
    #expect(places["aB"] == 0 && places["k"] == 3)
    #expect(places["\u{c9}"] == nil && places["new"] == nil)
    for _ in 0..<20 { places.append("New") }
    #expect(places["new"] == names.count)
  }
}
