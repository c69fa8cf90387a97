import BuckiaBytes
import SQLiteSchemas

/// `schema.json`: the definitions of the tables of a diff, as data.
///
/// Equal definitions have the same text, and its SHA-256 identifies them: a reader that knows the digest knows the
/// schema.
package enum SchemaDocument {
  static let format: Int64 = 1

  /// The content of the document.
  struct Content: Equatable, Sendable {
    var tables: [TableDefinition]
    /// The author's whole schema as SQL; nil if it does not travel.
    var author: AuthorSchema?
  }

  /// Writes definitions in their canonical form.
  ///
  /// - Parameters:
  ///   - tables: The definitions.
  ///   - author: The author's whole schema as SQL; nil to leave it out.
  /// - Throws: `DiffFileError` with code `badSchema`, `badName` or `tooLarge` for what ``parse(_:)`` would refuse.
  package static func bytes(
    _ tables: [TableDefinition], author: AuthorSchema? = nil
  ) throws(DiffFileError) -> [UInt8] {
    let bytes = canonicalBytes(tables, author)
    let content = try content(of: bytes)
    guard canonicalBytes(content.tables, content.author) == bytes else {
      throw JSONMember.schema.invalid("tables", "would not be read as written")
    }
    return bytes
  }

  private static func canonicalBytes(_ tables: [TableDefinition], _ author: AuthorSchema?) -> [UInt8] {
    var members: [(String, JSONValue)] = [("format", .integer(format)), ("tables", .array(tables.map(json)))]
    if let author { members += author.members }
    var document = JSONObject()
    for (name, value) in members { document.append(name, value) }
    return JSONValue.object(document).bytes()
  }

  /// Reads and checks definitions.
  ///
  /// - Throws: `DiffFileError` with code `badJSON`, `unsupportedFormat`, `badSchema`, `badName` or `tooLarge`.
  package static func parse(_ bytes: [UInt8]) throws(DiffFileError) -> [TableDefinition] {
    try content(of: bytes).tables
  }

  /// Reads and checks the whole document.
  ///
  /// - Throws: As ``parse(_:)``.
  static func content(of bytes: [UInt8]) throws(DiffFileError) -> Content {
    let document = JSONMember.schema
    guard bytes.count <= DiffFileLimits.schemaBytes else {
      throw DiffFileError(
        .tooLarge, "it has \(bytes.count) bytes; the limit is \(DiffFileLimits.schemaBytes)", member: document.name)
    }
    var fields = try MemberFields(document.parse(bytes), at: "", of: document)
    let format = try fields.integer("format", in: Int64.min...Int64.max)
    guard format == Self.format else {
      throw DiffFileError(
        .unsupportedFormat, "the table definitions have format \(format), made by a newer version",
        member: document.name)
    }
    let tables = try fields.list("tables", limit: DiffFileLimits.tables) { (value, path) throws(DiffFileError) in
      try table(value, at: path)
    }
    let author = try AuthorSchema(reading: &fields)
    try fields.finish()
    var names: Set<TableName> = []
    for table in tables where !names.insert(TableName(table.name)).inserted {
      throw document.invalid("tables", "defines \(EscapedText.quoted(table.name)) twice", table: table.name)
    }
    return Content(tables: tables, author: author)
  }

  // MARK: Writing

  /// A field that has its usual value is left out.
  private static func json(_ table: TableDefinition) -> JSONValue {
    object([
      ("name", .string(table.name)),
      ("withoutRowID", flag(table.isWithoutRowID)),
      ("strict", flag(table.isStrict)),
      ("autoIncrement", flag(table.isAutoIncrement)),
      ("columns", .array(table.columns.map(json))),
      (
        "generated",
        list(table.generated) { column in
          ["name": .string(column.name), "type": .string(column.declaredType), "stored": .bool(column.isStored)]
        }
      ),
      ("primaryKey", .numbers(table.primaryKey)),
      ("unique", list(table.unique, JSONValue.numbers)),
      ("foreignKeys", list(table.foreignKeys, json)),
      ("module", table.module?.json),
    ])
  }

  private static func json(_ column: ColumnDefinition) -> JSONValue {
    object([
      ("name", .string(column.name)),
      ("type", .string(column.declaredType)),
      ("notNull", flag(column.isNotNull)),
      ("default", column.defaultValue.map { .string($0.sql) }),
      ("collation", column.collation.utf8.elementsEqual(usualCollation.utf8) ? nil : .string(column.collation)),
    ])
  }

  private static func json(_ key: ForeignKey) -> JSONValue {
    func action(_ action: ForeignKey.Action) -> JSONValue? { action == .noAction ? nil : .string(action.rawValue) }
    return object([
      ("columns", .strings(key.columns)),
      ("parent", .string(key.parent)),
      ("parentColumns", .strings(key.parentColumns)),
      ("onUpdate", action(key.onUpdate)),
      ("onDelete", action(key.onDelete)),
    ])
  }

  private static let usualCollation = "BINARY"

  private static func object(_ members: [(String, JSONValue?)]) -> JSONValue {
    var object = JSONObject()
    for (name, value) in members { if let value { object.append(name, value) } }
    return .object(object)
  }

  private static func flag(_ flag: Bool) -> JSONValue? { flag ? .bool(true) : nil }

  private static func list<Element>(_ elements: [Element], _ json: (Element) -> JSONValue) -> JSONValue? {
    elements.isEmpty ? nil : .array(elements.map(json))
  }

  // MARK: Reading

  private static func table(_ value: JSONValue, at path: String) throws(DiffFileError) -> TableDefinition {
    let document = JSONMember.schema
    var fields = try MemberFields(value, at: path, of: document)
    let name = try fields.string("name")
    do throws(DiffFileError) {
      var table = TableDefinition(name: name, columns: [])
      table.isWithoutRowID = try fields.flag("withoutRowID")
      table.isStrict = try fields.flag("strict")
      table.isAutoIncrement = try fields.flag("autoIncrement")
      table.columns = try fields.objects("columns", limit: DiffFileLimits.columns, column)
      if fields.has("generated") {
        table.generated = try fields.objects("generated", limit: DiffFileLimits.columns, generated)
      }
      let count = table.columns.count
      table.primaryKey = try fields.ordinals("primaryKey", below: count)
      if fields.has("unique") {
        table.unique = try fields.list("unique", limit: DiffFileLimits.constraints) {
          (value, path) throws(DiffFileError) in
          try MemberFields.ordinals(value, at: path, below: count, of: document, repeats: true)
        }
      }
      if fields.has("foreignKeys") {
        table.foreignKeys = try fields.objects("foreignKeys", limit: DiffFileLimits.constraints, foreignKey)
      }
      table.module = try fields.object("module") { (fields: inout MemberFields) throws(DiffFileError) in
        try VirtualModule(reading: &fields, columns: count)
      }
      try fields.finish()
      try check(table)
      return table
    } catch {
      var named = error
      named.table = name
      throw named
    }
  }

  private static func column(reading fields: inout MemberFields) throws(DiffFileError) -> ColumnDefinition {
    var column = ColumnDefinition(name: try fields.string("name"))
    column.declaredType = try fields.string("type")
    column.isNotNull = try fields.flag("notNull")
    if let sql = try fields.optionalString("default") {
      // Only the canonical spelling is accepted: the text that is compared and hashed is also the one that is used.
      guard let literal = LiteralDefault(parsing: sql), literal.sql.utf8.elementsEqual(sql.utf8) else {
        throw fields.invalid("default", "is not one literal in its canonical spelling")
      }
      column.defaultValue = literal
    }
    column.collation = fields.has("collation") ? try fields.string("collation") : usualCollation
    return column
  }

  private static func generated(reading fields: inout MemberFields) throws(DiffFileError) -> GeneratedColumn {
    GeneratedColumn(
      name: try fields.string("name"), declaredType: try fields.string("type"),
      isStored: try fields.bool("stored"))
  }

  private static func foreignKey(reading fields: inout MemberFields) throws(DiffFileError) -> ForeignKey {
    ForeignKey(
      columns: try fields.strings("columns", limit: DiffFileLimits.columns),
      parent: try fields.string("parent"),
      parentColumns: try fields.strings("parentColumns", limit: DiffFileLimits.columns),
      onUpdate: fields.has("onUpdate") ? try fields.choice("onUpdate", of: ForeignKey.Action.self) : .noAction,
      onDelete: fields.has("onDelete") ? try fields.choice("onDelete", of: ForeignKey.Action.self) : .noAction)
  }
}

/// The rules for a table definition, which are checked before a table is created from it.
extension SchemaDocument {
  private static func check(_ table: TableDefinition) throws(DiffFileError) {
    let document = JSONMember.schema
    let shown = EscapedText.quoted(table.name)
    try checkName(table.name, "table name")
    if let refusal = TableName(table.name).refusal {
      throw DiffFileError(
        .badName, "the table \(shown) cannot be part of a diff: \(refusal)", member: document.name, table: table.name)
    }
    let columnNames = try checkColumns(of: table)
    guard !table.isWithoutRowID || !table.primaryKey.isEmpty else {
      throw document.invalid("primaryKey", "is empty, though \(shown) is WITHOUT ROWID")
    }
    if table.isAutoIncrement {
      let isInteger =
        table.primaryKey.count == 1
        && ASCIIName.matches(table.columns[table.primaryKey[0]].declaredType, "INTEGER")
      guard isInteger, !table.isWithoutRowID else {
        throw document.invalid("autoIncrement", "stands without one INTEGER key column in \(shown)")
      }
    }
    if let contradiction = table.moduleContradiction {
      throw document.invalid("module", "does not fit \(shown): \(contradiction)")
    }
    guard table.unique.allSatisfy({ !$0.isEmpty }) else {
      throw document.invalid("unique", "holds an empty constraint in \(shown)")
    }
    for key in table.foreignKeys {
      try checkName(key.parent, "foreign key's table")
      guard TableName(key.parent).refusal == nil else {
        throw document.invalid("foreignKeys", "refers to \(EscapedText.quoted(key.parent)), which no diff may name")
      }
      guard !key.columns.isEmpty, key.columns.allSatisfy({ columnNames.contains(folded($0)) }) else {
        throw document.invalid("foreignKeys", "names columns that \(shown) does not have")
      }
      guard key.parentColumns.isEmpty || key.parentColumns.count == key.columns.count else {
        throw document.invalid("foreignKeys", "pairs different numbers of columns in \(shown)")
      }
      for column in key.parentColumns { try checkName(column, "foreign key's column") }
    }
  }

  /// A name as SQLite compares it: byte for byte, ASCII letters in either case.
  private static func folded(_ name: String) -> [UInt8] { name.utf8.map { ASCIIName.folded($0) } }

  private static func checkColumns(of table: TableDefinition) throws(DiffFileError) -> Set<[UInt8]> {
    let document = JSONMember.schema
    let shown = EscapedText.quoted(table.name)
    guard !table.columns.isEmpty else { throw document.invalid("columns", "is empty in \(shown)") }
    guard table.columns.count + table.generated.count <= DiffFileLimits.columns else {
      throw document.invalid("columns", "has more than \(DiffFileLimits.columns) entries in \(shown)")
    }
    let pairs =
      table.columns.map { ($0.name, $0.declaredType) } + table.generated.map { ($0.name, $0.declaredType) }
    var names: Set<[UInt8]> = []
    for (name, type) in pairs {
      try checkName(name, "column name")
      guard names.insert(folded(name)).inserted else {
        throw document.invalid("columns", "names \(EscapedText.quoted(name)) twice in \(shown)")
      }
      // Any text is allowed: `ColumnDefinition.safeType` decides which part of it is used in CREATE TABLE.
      try checkName(type, "declared type")
    }
    for column in table.columns { try checkName(column.collation, "collation") }
    // In a table with a primary key such a column hides the rowid, which is not needed there.
    if table.isKeyedByRowID, names.contains(folded(TableDefinition.rowIDColumn)) {
      throw document.invalid(
        "columns", "holds \"\(TableDefinition.rowIDColumn)\" in \(shown), whose rows are found by that name")
    }
    return names
  }

  private static func checkName(_ name: String, _ what: String) throws(DiffFileError) {
    guard name.utf8.count <= DiffFileLimits.nameBytes, !name.utf8.contains(0) else {
      throw JSONMember.schema.invalid(
        "tables", "holds a \(what) with a NUL or more than \(DiffFileLimits.nameBytes) bytes")
    }
  }
}
