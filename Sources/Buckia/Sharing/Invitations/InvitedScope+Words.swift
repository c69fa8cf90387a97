import BuckiaFormat
import BuckiaSharing
import SQLiteChangesets
import SQLiteSchemas

extension InvitedScope {
  /// Says a scope in words.
  ///
  /// - Parameters:
  ///   - scope: The scope.
  ///   - tables: All tables that take part: those that are named, and those whose rows come along because others refer to them.
  ///   - parents: The tables whose rows come along because others refer to them, and the columns that these leave out.
  init(_ scope: ShareScope, tables: [TableName], parents: [TableName: [String]]) {
    self.init(
      name: scope.name,
      tables: tables.map { name in
        guard let shared = scope.tables.first(where: { $0.name == name }) else {
          return Table(
            name: name.text, rows: "rows that the others refer to", omittedColumns: parents[name] ?? [],
            rewrittenColumns: [])
        }
        return Table(
          name: name.text, rows: shared.words, omittedColumns: shared.omittedColumns,
          rewrittenColumns: shared.rewrittenColumns.keys.sorted())
      })
  }
}

extension SharedTable {
  /// Which rows they are, in words.
  fileprivate var words: String {
    var parts: [String] = []
    if let condition { parts.append("rows where \(condition)") }
    if !parents.isEmpty {
      var words = "rows that refer to shared rows of \(parents.map(\.text).joined(separator: " or "))"
      if let childCondition { words += " where \(childCondition)" }
      if let depth { words += ", up to \(depth) \(depth == 1 ? "step" : "steps") away" }
      parts.append(words)
    }
    let only = columns.map { ", of them the key and \($0.joined(separator: ", "))" } ?? ""
    guard !parts.isEmpty else { return "all rows\(only)" }
    let values = parameters.sorted { $0.key < $1.key }.map { "\($0.key) = \($0.value)" }
    let given = values.isEmpty ? "" : " (\(values.joined(separator: ", ")))"
    return parts.joined(separator: ", and ") + given + only
  }
}
