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

  /// Reads and removes them from the document's fields; nil if they are absent.
  init?(reading fields: inout JSONFields) throws(DiffFileError) {
    guard fields.remaining["statements"] != nil else { return nil }
    let limit = Self.statementLimit
    let statements = try fields.objects("statements", limit: limit, SchemaStatement.init(reading:))
    let replaced = try fields.objects("replaced", limit: limit) { (fields: inout JSONFields) throws(DiffFileError) in
      let statement = try SchemaStatement(reading: &fields)
      var content: TableContent?
      if fields.remaining["rows"] != nil {
        guard statement.kind == .table else { throw fields.invalid("rows", "is for tables only") }
        content = TableContent(
          rows: try fields.integer("rows"), hash: try fields.bytes("hash", as: ContentHash.self).number)
      }
      return Replaced(statement, content: content)
    }
    self.init(statements: statements, replaced: replaced)
    if let refusal { throw fields.invalid("statements", "cannot be used: \(refusal)") }
  }
}

/// The hash of a table's content as bytes, the highest first.
private struct ContentHash: FixedBytes {
  static let byteCount = 8
  let bytes: [UInt8]

  init(checked bytes: [UInt8]) { self.bytes = bytes }
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

/// The field `module` of a table definition in `schema.json`.
extension VirtualModule {
  var json: JSONValue {
    switch self {
    case .spatial(let index): ["name": .string(name), "coordinates": .number(index.coordinates)]
    case .fullText(let index):
      [
        "name": .string(name), "unindexed": .numbers(index.unindexed),
        "options": index.options?.json ?? .null,
      ]
    }
  }

  /// Reads the field. `SchemaDocument` checks that the rest of the definition fits.
  ///
  /// - Parameter columns: The number of the table's columns.
  init(reading fields: inout JSONFields, columns: Int) throws(DiffFileError) {
    let name = try fields.string("name")
    if let kind = SpatialIndex.Kind(rawValue: name) {
      self = .spatial(
        SpatialIndex(kind: kind, coordinates: Int(try fields.integer("coordinates", in: 0...Int64(columns)))))
    } else {
      var index = FullTextIndex()
      guard Self.fullText(index).name.utf8.elementsEqual(name.utf8) else {
        throw fields.invalid("name", "is \(EscapedText.quoted(name)), which is not known")
      }
      index.unindexed = try fields.ordinals("unindexed", below: columns)
      guard fields.remaining["options"] != nil else { throw fields.invalid("options", "is missing") }
      index.options = try fields.object("options", FullTextOptions.init(reading:))
      self = .fullText(index)
    }
  }
}

extension FullTextOptions {
  fileprivate var json: JSONValue {
    [
      "tokenizer": tokenizer?.json ?? .null,
      "prefixes": .array(prefixes.map { .number($0) }),
      "detail": .string(detail.rawValue),
      "columnSizes": .bool(hasColumnSizes),
    ]
  }

  fileprivate init(reading fields: inout JSONFields) throws(DiffFileError) {
    self.init()
    guard fields.remaining["tokenizer"] != nil else { throw fields.invalid("tokenizer", "is missing") }
    if let tokenizer = try fields.object("tokenizer", FullTextTokenizer.init(reading:)) { self.tokenizer = tokenizer }
    prefixes = try fields.list("prefixes", limit: DiffFileLimits.constraints) { (value, path) throws(DiffFileError) in
      guard case .integer(let length) = value, let length = Int(exactly: length) else {
        throw JSONMember.schema.invalid(path, "is \(value.kind), not a number")
      }
      return length
    }
    detail = try fields.choice("detail", of: Detail.self)
    hasColumnSizes = try fields.bool("columnSizes")
  }
}

extension FullTextTokenizer {
  fileprivate var json: JSONValue {
    [
      "name": .string(kind.rawValue), "stems": .bool(stems),
      "options": .array(
        options.map { ["name": .string($0.name.rawValue), "value": .string($0.value)] }),
    ]
  }

  fileprivate init(reading fields: inout JSONFields) throws(DiffFileError) {
    self.init(try fields.choice("name", of: Kind.self), stems: try fields.bool("stems"))
    options = try fields.objects("options", limit: Self.optionLimit) {
      (fields: inout JSONFields) throws(DiffFileError) in
      Option(try fields.choice("name", of: OptionName.self), try fields.string("value"))
    }
  }
}
