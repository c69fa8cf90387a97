import BuckiaBytes
import SQLiteSchemas

/// The members `statements` and `replaced` of `schema.json`.
extension AuthorSchema {
  /// As the document has them.
  var members: [(String, JSONValue)] {
    [
      ("statements", .array(statements.map { .object($0.json) })),
      (
        "replaced",
        .array(
          replaced.map { entry in
            var fields = entry.statement.json
            if let content = entry.content {
              fields.append("rows", .integer(content.rows))
              fields.append("hash", .string(ContentHash(content.hash).description))
            }
            return .object(fields)
          })
      ),
    ]
  }

  /// Takes them out of the document's fields; nil where they are not there.
  init?(reading fields: inout JSONFields) throws(DiffFileError) {
    let document = fields.document
    guard fields.remaining["statements"] != nil else { return nil }
    let limit = Self.statementLimit
    let statements = try fields.list("statements", limit: limit) { (value, path) throws(DiffFileError) in
      var fields = try JSONFields(value, at: path, of: document)
      let statement = try SchemaStatement(reading: &fields)
      try fields.finish()
      return statement
    }
    let replaced = try fields.list("replaced", limit: limit) { (value, path) throws(DiffFileError) in
      var fields = try JSONFields(value, at: path, of: document)
      let statement = try SchemaStatement(reading: &fields)
      var content: TableContent?
      if fields.remaining["rows"] != nil {
        guard statement.kind == .table else { throw fields.invalid("rows", "is for tables only") }
        content = TableContent(
          rows: try fields.integer("rows"), hash: try fields.bytes("hash", as: ContentHash.self).number)
      }
      try fields.finish()
      return Replaced(statement, content: content)
    }
    self.init(statements: statements, replaced: replaced)
    if let refusal { throw document.invalid("statements", "cannot be used: \(refusal)") }
  }
}

/// The hash of a table's content as bytes, the highest first.
private struct ContentHash: FixedBytes {
  static let byteCount = 8
  let bytes: [UInt8]

  init?(_ bytes: [UInt8]) {
    guard bytes.count == Self.byteCount else { return nil }
    self.bytes = bytes
  }

  init(_ number: UInt64) { bytes = (0..<8).map { UInt8(truncatingIfNeeded: number >> (56 - 8 * $0)) } }

  var number: UInt64 { bytes.reduce(0) { $0 << 8 | UInt64($1) } }
}

extension SchemaStatement {
  fileprivate var json: JSONObject {
    var fields = JSONObject()
    fields.append("kind", .string(kind.rawValue))
    fields.append("name", .string(name.text))
    fields.append("table", .string(table.text))
    fields.append("sql", .string(sql))
    return fields
  }

  fileprivate init(reading fields: inout JSONFields) throws(DiffFileError) {
    self.init(
      try fields.choice("kind", of: Kind.self), name: try fields.string("name"), table: try fields.string("table"),
      sql: try fields.string("sql"))
    for name in [name, table] where name.text.utf8.count > DiffFileLimits.nameBytes {
      throw fields.invalid("name", "has more than \(DiffFileLimits.nameBytes) bytes")
    }
  }
}
