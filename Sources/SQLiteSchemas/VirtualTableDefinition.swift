/// A CREATE VIRTUAL TABLE statement, taken apart. See <https://sqlite.org/lang_createvtab.html>.
public struct VirtualTableDefinition: Sendable {
  /// The name of the module, as it is written.
  public let module: String
  /// The module's arguments, each as it is written.
  public let arguments: [String]

  /// Takes a statement apart.
  ///
  /// - Parameter sql: The statement as `sqlite_schema` keeps it.
  /// - Returns: nil when it is anything else.
  public init?(parsing sql: String) {
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

  /// The value of an argument of the form `name = value`, without its quotes; nil when there is none.
  ///
  /// Full-text tables take their options so: <https://sqlite.org/fts5.html#fts5_table_creation_and_initialization>.
  ///
  /// - Parameter name: In lower case.
  public func option(_ name: String) -> String? {
    for argument in arguments {
      let tokens = SQLTokens(argument)
      guard tokens.isWord(name, at: 0), tokens.isMark("=", at: 1) else { continue }
      if tokens.count == 3, let value = tokens.name(at: 2) { return value }
      return tokens.text(of: 2..<max(2, tokens.count))
    }
    return nil
  }
}
