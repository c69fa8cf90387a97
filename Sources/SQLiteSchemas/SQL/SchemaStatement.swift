import BuckiaBytes

/// One statement of a schema, as `sqlite_schema` holds it: what made a table, an index, a view or a trigger.
/// See <https://sqlite.org/schematab.html>.
package struct SchemaStatement: Hashable, Sendable {
  /// What a statement makes.
  package enum Kind: String, Sendable, CaseIterable {
    case table, index, view, trigger
  }

  /// What it makes.
  package let kind: Kind
  /// The name of what it makes.
  package let name: TableName
  /// The table or view that an index or a trigger belongs to; for others the same as `name`.
  package let table: TableName
  /// The statement, byte for byte.
  package let sql: String

  /// Makes a statement out of the columns of `sqlite_schema`, unchecked: see ``refusal``.
  package init(_ kind: Kind, name: String, table: String, sql: String) {
    self.kind = kind
    self.name = TableName(name)
    self.table = TableName(table)
    self.sql = sql
  }

  /// What tells the objects of a schema apart, whatever made them.
  package struct Identity: Hashable, Sendable {
    let kind: Kind
    let name: TableName
  }

  /// What it makes, whatever the statement.
  package var identity: Identity { Identity(kind: kind, name: name) }

  /// True if both make the same: their tokens are equal, whatever the white space and the comments between them.
  package func makesTheSame(as other: SchemaStatement) -> Bool {
    makesTheSame(as: other, whateverComments: true)
  }

  /// True if both differ in white space at most.
  package func equalsIgnoringWhiteSpace(_ other: SchemaStatement) -> Bool {
    makesTheSame(as: other, whateverComments: false)
  }

  private func makesTheSame(as other: SchemaStatement, whateverComments ignoresComments: Bool) -> Bool {
    guard kind == other.kind, name == other.name, table == other.table else { return false }
    if sql.utf8.elementsEqual(other.sql.utf8) { return true }
    let (tokens, others) = (SQLTokens(sql), SQLTokens(other.sql))
    guard tokens.isEqual(to: others) else { return false }
    return ignoresComments
      || (0...tokens.count).allSatisfy { tokens.comments(before: $0).elementsEqual(others.comments(before: $0)) }
  }

  /// What it makes, for people: `table notes`.
  package var subject: String { "\(kind.rawValue) \(name)" }

  /// Compares the bytes, as SQLite does: to Swift's strings composed and decomposed letters are equal.
  package static func == (first: SchemaStatement, second: SchemaStatement) -> Bool {
    first.kind == second.kind && first.sql.utf8.elementsEqual(second.sql.utf8)
      && first.name.text.utf8.elementsEqual(second.name.text.utf8)
      && first.table.text.utf8.elementsEqual(second.table.text.utf8)
  }

  /// Hashes what `==` compares.
  package func hash(into hasher: inout Hasher) {
    hasher.combine(kind)
    hasher.combine(name)
    hasher.combine(Array(sql.utf8))
  }

  /// The longest statement, in bytes: SQLite's own default limit (<https://sqlite.org/limits.html#max_sql_length>).
  package static let byteLimit = 1_000_000

  /// Why the statement may not be run here; nil when it is exactly what it claims to be.
  ///
  /// It must be one CREATE statement of its kind, in the form in which SQLite stores it: without a schema's name, TEMP, IF NOT
  /// EXISTS or AS SELECT, and with nothing behind it. Nothing in it may have a name that is reserved, call a function that has
  /// effects, or recurse. This looks at the text alone; what the statement does is checked where SQLite runs it.
  package var refusal: String? {
    if sql.utf8.count > Self.byteLimit { return "it has more than \(Self.byteLimit) bytes" }
    if let reason = name.refusal ?? table.refusal { return reason }
    let tokens = SQLTokens(sql)
    if let reason = Self.refusal(ofTokens: tokens) { return reason }
    guard tokens.isWord("create", at: 0) else { return "it is no CREATE statement" }
    return switch kind {
    case .table: tokens.isWord("virtual", at: 1) ? virtualTableRefusal(tokens) : tableRefusal(tokens)
    case .index: indexRefusal(tokens)
    case .view: viewRefusal(tokens)
    case .trigger: triggerRefusal(tokens)
    }
  }

  // MARK: Any statement

  /// Why no statement may hold some token.
  private static func refusal(ofTokens tokens: SQLTokens) -> String? {
    for index in tokens.tokens.indices {
      let token = tokens.tokens[index]
      switch token.kind {
      case .broken: return "it holds a quote without an end, or a byte that no SQL has"
      case .parameter: return "it holds a parameter"
      case .word, .name:
        // SQLite takes a byte order mark for white space, so it must not be part of a word.
        if token.kind == .word, tokens.bytes[token.range].starts(with: [0xef, 0xbb, 0xbf]) {
          return "it holds a byte order mark"
        }
        guard let name = tokens.name(at: index) else { continue }
        if let reason = refusal(ofName: ASCIIName.folded(name), at: index, in: tokens) { return reason }
      case .text, .blob, .number, .mark: continue
      }
    }
    return nil
  }

  private static func refusal(ofName name: String, at index: Int, in tokens: SQLTokens) -> String? {
    for prefix in ["sqlite_", "buckia_", "pragma_"] where name.utf8.starts(with: prefix.utf8) {
      return "it names \(EscapedText.quoted(name)), and names that begin with \(prefix) are reserved"
    }
    if name == "writable_schema" { return "it names writable_schema" }
    if SQLFunctions.withEffects.contains(name), tokens.isMark("(", at: index + 1) {
      return "it calls \(name)(), which has effects outside the database"
    }
    if name == "recursive", tokens.isWord("with", at: index - 1) { return "it recurses" }
    return nil
  }

  /// Where the statement goes on behind its name, which is expected at an index.
  private func next(afterNameAt index: Int, in tokens: SQLTokens) -> Int? {
    guard let found = tokens.name(at: index), found.utf8.elementsEqual(name.text.utf8),
      !tokens.isMark(".", at: index + 1)
    else { return nil }
    return index + 1
  }

  private var otherName: String { "it does not make \(EscapedText.quoted(name.text)), or not in this form" }

  /// True if a name that is not qualified stands at an index, and is the table's.
  private func namesTable(at index: Int, in tokens: SQLTokens) -> Bool {
    tokens.name(at: index).map { TableName($0) == table } == true && !tokens.isMark(".", at: index + 1)
  }

  // MARK: One kind each

  private func tableRefusal(_ tokens: SQLTokens) -> String? {
    guard tokens.isWord("table", at: 1), table == name, let open = next(afterNameAt: 2, in: tokens) else {
      return otherName
    }
    if tokens.contains(";") { return "it is more than one statement" }
    guard tokens.isMark("(", at: open) else { return "it has no list of columns" }
    var index = tokens.closing(open) + 1
    guard index <= tokens.count else { return "its parentheses do not match" }
    while index < tokens.count {
      if tokens.isWord("strict", at: index) {
        index += 1
      } else if tokens.isWord("without", at: index), tokens.isWord("rowid", at: index + 1) {
        index += 2
      } else {
        return "something stands behind the table's columns"
      }
      guard index < tokens.count else { break }
      guard tokens.isMark(",", at: index), index + 1 < tokens.count else {
        return "something stands behind the table's columns"
      }
      index += 1
    }
    return nil
  }

  private func virtualTableRefusal(_ tokens: SQLTokens) -> String? {
    guard tokens.isWord("table", at: 2), table == name, let using = next(afterNameAt: 3, in: tokens),
      tokens.isWord("using", at: using), let module = tokens.name(at: using + 1)
    else { return otherName }
    if tokens.contains(";") { return "it is more than one statement" }
    guard VirtualModule.knownNames.contains(ASCIIName.folded(module)) else {
      return "a table of the module \(EscapedText.quoted(module)) is not made here"
    }
    guard tokens.isMark("(", at: using + 2), tokens.closing(using + 2) == tokens.count - 1 else {
      return "something stands behind the module's arguments"
    }
    return nil
  }

  private func indexRefusal(_ tokens: SQLTokens) -> String? {
    let start = tokens.isWord("unique", at: 1) ? 2 : 1
    guard tokens.isWord("index", at: start), let on = next(afterNameAt: start + 1, in: tokens) else { return otherName }
    if tokens.contains(";") { return "it is more than one statement" }
    guard tokens.isWord("on", at: on), namesTable(at: on + 1, in: tokens), tokens.isMark("(", at: on + 2) else {
      return "it is not an index of \(EscapedText.quoted(table.text))"
    }
    let end = tokens.closing(on + 2) + 1
    guard end == tokens.count || tokens.isWord("where", at: end) && end + 1 < tokens.count else {
      return "something stands behind the index's columns"
    }
    return nil
  }

  private func viewRefusal(_ tokens: SQLTokens) -> String? {
    guard tokens.isWord("view", at: 1), table == name, var index = next(afterNameAt: 2, in: tokens) else {
      return otherName
    }
    if tokens.contains(";") { return "it is more than one statement" }
    if tokens.isMark("(", at: index) { index = tokens.closing(index) + 1 }
    guard tokens.isWord("as", at: index), tokens.isAnyWord(["select", "with", "values"], at: index + 1) else {
      return "it is not a view of a query"
    }
    return nil
  }

  private func triggerRefusal(_ tokens: SQLTokens) -> String? {
    guard tokens.isWord("trigger", at: 1), var index = next(afterNameAt: 2, in: tokens) else { return otherName }
    while index < tokens.count, !tokens.isWord("on", at: index) { index += 1 }
    guard namesTable(at: index + 1, in: tokens) else {
      return "it is not a trigger of \(EscapedText.quoted(table.text))"
    }
    // A semicolon inside parentheses is no part of any statement, and END must be the last word.
    guard !tokens.isMark(";", at: tokens.count - 1), let trigger = TriggerDefinition(parsing: sql) else {
      return "it is not one trigger"
    }
    for statement in trigger.statements {
      let parts = SQLTokens(statement.text)
      let keywords = ["insert", "replace", "update", "delete", "select", "with", "values"]
      guard parts.isAnyWord(keywords, at: 0) else { return "its body does more than read and write rows" }
    }
    return nil
  }
}

extension SQLTokens {
  /// The comments between a token and the one before it, without white space; those at the end for the count of tokens.
  fileprivate func comments(before index: Int) -> some Sequence<UInt8> {
    let start = index == 0 ? 0 : tokens[index - 1].range.upperBound
    let end = index == count ? bytes.count : tokens[index].range.lowerBound
    return bytes[start..<end].lazy.filter { !Self.whiteSpace.contains($0) }
  }

  private static var whiteSpace: [UInt8] { [0x20, 0x09, 0x0a, 0x0c, 0x0d] }
}
