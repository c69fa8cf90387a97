import BuckiaBytes

/// What an invitation offers, in words: which rows and columns of which tables.
public struct InvitedScope: Equatable, Sendable {
  /// One table.
  public struct Table: Equatable, Sendable {
    /// The table's name.
    public let name: String
    /// Which of its rows, such as `all rows` or `rows where topic = 7`.
    public let rows: String
    /// The columns that are left out.
    public let omittedColumns: [String]
    /// The columns that are given another value.
    public let rewrittenColumns: [String]

    /// Describes a table.
    package init(name: String, rows: String, omittedColumns: [String], rewrittenColumns: [String]) {
      self.name = name
      self.rows = rows
      self.omittedColumns = omittedColumns
      self.rewrittenColumns = rewrittenColumns
    }
  }

  /// What the author calls it; nil for no name. To be escaped where it is shown, as all of it.
  public let name: String?
  /// The tables.
  public let tables: [Table]

  /// Describes a scope.
  package init(name: String?, tables: [Table]) {
    self.name = name
    self.tables = tables
  }

  /// The most tables, and the most columns of one of either kind.
  static let countLimit = 500

  var json: JSONValue {
    [
      "name": .text(name),
      "tables": .array(
        tables.map { table in
          [
            "table": .string(table.name), "rows": .string(table.rows),
            "omits": .array(table.omittedColumns.map { .string($0) }),
            "rewrites": .array(table.rewrittenColumns.map { .string($0) }),
          ]
        }),
    ]
  }

  init(_ value: JSONValue) throws(IdentityError) {
    var fields = try DocumentFields(value, of: "the scope", .invalidInvitation)
    name = try fields.optionalString("name")
    var tables: [Table] = []
    for value in try fields.list("tables", limit: Self.countLimit) {
      var table = try DocumentFields(value, of: "the scope", .invalidInvitation)
      tables.append(
        Table(
          name: try table.string("table"), rows: try table.string("rows"),
          omittedColumns: try table.strings("omits", limit: Self.countLimit),
          rewrittenColumns: try table.strings("rewrites", limit: Self.countLimit)))
      try table.finish()
    }
    try fields.finish()
    guard !tables.isEmpty else { throw fields.invalid("tables", "is empty") }
    self.tables = tables
  }
}
