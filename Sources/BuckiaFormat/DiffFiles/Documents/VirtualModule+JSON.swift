import BuckiaBytes
import SQLiteSchemas

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

  /// Reads the field. `SchemaRules` checks that the rest of the definition fits.
  ///
  /// - Parameter columns: How many columns the table has.
  init(_ value: JSONValue, at path: String, columns: Int) throws(DiffFileError) {
    var fields = try JSONFields(value, at: path, of: .schema)
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
      index.options = nil
      if let options = fields.take("options") { index.options = try FullTextOptions(options, at: "\(path).options") }
      self = .fullText(index)
    }
    try fields.finish()
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

  fileprivate init(_ value: JSONValue, at path: String) throws(DiffFileError) {
    var fields = try JSONFields(value, at: path, of: .schema)
    self.init()
    guard fields.remaining["tokenizer"] != nil else { throw fields.invalid("tokenizer", "is missing") }
    if let tokenizer = fields.take("tokenizer") {
      self.tokenizer = try FullTextTokenizer(tokenizer, at: "\(path).tokenizer")
    }
    prefixes = try fields.list("prefixes", limit: DiffFileLimits.constraints) { (value, path) throws(DiffFileError) in
      guard case .integer(let length) = value, let length = Int(exactly: length) else {
        throw JSONMember.schema.invalid(path, "is \(value.kind), not a number")
      }
      return length
    }
    detail = try fields.choice("detail", of: Detail.self)
    hasColumnSizes = try fields.bool("columnSizes")
    try fields.finish()
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

  fileprivate init(_ value: JSONValue, at path: String) throws(DiffFileError) {
    var fields = try JSONFields(value, at: path, of: .schema)
    self.init(try fields.choice("name", of: Kind.self), stems: try fields.bool("stems"))
    options = try fields.list("options", limit: Self.optionLimit) { (value, path) throws(DiffFileError) in
      var fields = try JSONFields(value, at: path, of: .schema)
      let option = Option(try fields.choice("name", of: OptionName.self), try fields.string("value"))
      try fields.finish()
      return option
    }
    try fields.finish()
  }
}
