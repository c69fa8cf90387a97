import BuckiaBytes

/// A parsed CREATE VIRTUAL TABLE statement. See <https://sqlite.org/lang_createvtab.html>.
package struct VirtualTableDefinition: Sendable {
  /// The name of the module, as written.
  package let module: String
  /// The arguments of the module, as written.
  package let arguments: [String]

  /// Parses a statement.
  ///
  /// - Parameter sql: The statement from `sqlite_schema`.
  /// - Returns: nil when the text is not a CREATE VIRTUAL TABLE statement.
  package init?(parsing sql: String) {
    let tokens = SQLTokens(sql)
    var index = 0
    for keyword in ["create", "virtual", "table"] {
      guard tokens.isWord(keyword, at: index) else { return nil }
      index += 1
    }
    if tokens.isWord("if", at: index), tokens.isWord("not", at: index + 1) { index += 3 }
    guard tokens.name(at: index) != nil else { return nil }
    index += 1
    if tokens.isMark(".", at: index) { index += 2 }
    guard tokens.isWord("using", at: index), let module = tokens.name(at: index + 1) else { return nil }
    self.module = module
    index += 2
    guard tokens.isMark("(", at: index) else {
      arguments = []
      return
    }
    let end = tokens.closing(index)
    var arguments: [String] = []
    var start = index + 1
    var place = start
    while place < end {
      if tokens.isMark("(", at: place) { place = tokens.closing(place) }
      if tokens.isMark(",", at: place) {
        arguments.append(tokens.text(of: start..<place))
        start = place + 1
      }
      place += 1
    }
    if start < end { arguments.append(tokens.text(of: start..<end)) }
    self.arguments = arguments
  }

  /// The unquoted value of an argument of the form `name = value`, as full-text tables have them; nil when there is none.
  /// See <https://sqlite.org/fts3.html#fts4_options>.
  ///
  /// - Parameter name: The name in lower case.
  package func option(_ name: String) -> String? {
    arguments.lazy.compactMap(FullTextArgument.init).first { $0.name == name }?.value
  }
}
