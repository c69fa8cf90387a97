import SQLiteChangesets

/// An SQL statement with the values of its parameters.
struct Statement: Equatable, Sendable, CustomStringConvertible {
  let sql: String
  var values: [ChangesetValue]

  /// The statement, and its values behind it.
  var description: String {
    values.isEmpty ? sql : "\(sql)  ← \(values.map(Self.shown).joined(separator: ", "))"
  }

  private static func shown(_ value: ChangesetValue) -> String {
    let text = "\(value)"
    return text.utf8.count <= 60 ? text : "\(text.prefix(40))… (\(text.utf8.count) bytes)"
  }
}
