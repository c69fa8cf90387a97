import Buckia

/// Prints the document that `--json` asks for where it is one long list: item by item, since it need not fit in memory.
struct JSONListWriter {
  private let name: String
  private let fields: [(name: String, value: JSONValue)]
  private let console: Console
  private var isEmpty = true

  /// - Parameters:
  ///   - name: The name of the list in the document.
  ///   - fields: What stands before it.
  init(_ name: String, after fields: [(name: String, value: JSONValue)] = [], on console: Console) {
    self.name = name
    self.fields = [("version", 1)] + fields
    self.console = console
  }

  /// Prints an item.
  mutating func add(_ item: JSONValue) throws {
    if isEmpty {
      let head = fields.map { "\n  \"\($0.name)\": \($0.value.prettyText(level: 1))," }.joined()
      try console.write("{\(head)\n  \"\(name)\": [")
    } else {
      try console.write(",")
    }
    try console.write("\n    \(item.prettyText(level: 2))")
    isEmpty = false
  }

  /// Prints the end of the document.
  func end() throws {
    guard !isEmpty else {
      let all = fields + [(name, .array([]))]
      return try console.document(.object(JSONObject(all.map { .init($0.name, $0.value) })))
    }
    try console.write("\n  ]\n}\n")
  }
}
