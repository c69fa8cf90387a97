import Buckia

/// Prints the document that `--json` asks for where it is one long list: item by item, since it need not fit in memory.
struct JSONListWriter {
  private let name: String
  private let console: Console
  private var isEmpty = true

  /// - Parameter name: The name of the list in the document.
  init(_ name: String, on console: Console) {
    self.name = name
    self.console = console
  }

  /// Prints an item.
  mutating func add(_ item: JSONValue) throws {
    try console.write(isEmpty ? "{\n  \"version\": 1,\n  \"\(name)\": [" : ",")
    try console.write("\n    \(item.prettyText(level: 2))")
    isEmpty = false
  }

  /// Prints the end of the document.
  func end() throws {
    guard !isEmpty else {
      return try console.document(.object(JSONObject([.init("version", 1), .init(name, .array([]))])))
    }
    try console.write("\n  ]\n}\n")
  }
}
