import ArgumentParser
import BuckiaSync
import Yams

/// A part of a settings file, which knows where it stands in it and which of its entries have been read.
final class SettingsNode {
  private let node: Node
  private let file: String
  private let name: String
  private let environment: [String: String]
  private var read: Set<String> = []

  private init(_ node: Node, _ file: String, _ name: String, _ environment: [String: String]) {
    self.node = node
    self.file = file
    self.name = name
    self.environment = environment
  }

  /// Reads a file.
  ///
  /// - Parameters:
  ///   - text: Its text.
  ///   - file: Its path, for errors.
  ///   - environment: The variables that `${NAME}` stands for.
  /// - Throws: `StorageError` with `invalidSetting`.
  convenience init(_ text: String, file: String, environment: [String: String]) throws {
    let node: Node?
    do { node = try Yams.compose(yaml: text) } catch let error as YamlError {
      throw StorageError(.invalidSetting, "\(file): it is no YAML that can be read: \(Self.place(of: error))")
    }
    guard let node, node.mapping != nil else {
      throw StorageError(.invalidSetting, "\(file): there are no settings in it, such as `user: anna`")
    }
    self.init(node, file, "", environment)
  }

  /// Where a file is wrong, without a word of what is in it.
  private static func place(of error: YamlError) -> String {
    switch error {
    case .scanner(_, let problem, let mark, _), .parser(_, let problem, let mark, _),
      .composer(_, let problem, let mark, _):
      "line \(mark.line): \(problem)"
    case .duplicatedKeysInMapping(_, let context): "line \(context.mark.line): a setting stands there twice"
    default: "it is damaged"
    }
  }

  /// An error about this part.
  func error(_ message: String) -> StorageError {
    let line = node.mark.map { ", line \($0.line)" } ?? ""
    return StorageError(.invalidSetting, "\(file)\(line): \(name.isEmpty ? "" : "`\(name)`: ")\(message)")
  }

  /// The entry of a name; nil if there is none, or it is empty.
  subscript(key: String) -> SettingsNode? {
    read.insert(key)
    guard let found = node.mapping?.first(where: { $0.key.scalar?.string == key })?.value else { return nil }
    if found.scalar?.string.isEmpty == true || found == Node("null", Tag(.null)) { return nil }
    return SettingsNode(found, file, name.isEmpty ? key : "\(name).\(key)", environment)
  }

  /// The entry of a name, which has to be there.
  func required(_ key: String) throws -> SettingsNode {
    guard let found = self[key] else { throw error("`\(key)` is missing") }
    return found
  }

  /// Makes sure that nothing stands here that has not been read: a typing error must not pass for a wish.
  func requireNothingElse() throws {
    guard let mapping = node.mapping else { throw error("it has settings of its own, each in a line below") }
    for (key, _) in mapping where !read.contains(key.scalar?.string ?? "") {
      let line = key.mark.map { ", line \($0.line)" } ?? ""
      throw StorageError(
        .invalidSetting,
        "\(file)\(line): there is no setting `\((name.isEmpty ? "" : "\(name).") + (key.scalar?.string ?? "").escaped(limit: 40))`; known are \(read.sorted().joined(separator: ", "))"
      )
    }
  }

  // MARK: Values

  /// Text, in which `${NAME}` stands for a variable of the environment.
  func text() throws -> String {
    guard let text = node.scalar?.string else { throw error("one value is wanted") }
    var result = ""
    var rest = text[...]
    while let start = rest.range(of: "${") {
      guard let end = rest[start.upperBound...].firstIndex(of: "}") else { throw error("a `${` has no `}`") }
      let variable = String(rest[start.upperBound..<end])
      guard let value = environment[variable], !value.isEmpty else {
        throw error("the environment has no variable \(variable.escaped(limit: 40)), which it names")
      }
      result += rest[..<start.lowerBound] + value
      rest = rest[rest.index(after: end)...]
    }
    return result + rest
  }

  /// True if the text stands in the file itself and not in the environment.
  var isLiteral: Bool { node.scalar?.string.contains("${") == false }

  /// `true` or `false`.
  func flag() throws -> Bool {
    switch try text() {
    case "true", "yes", "on": true
    case "false", "no", "off": false
    default: throw error("it is `true` or `false`")
    }
  }

  /// A number of at least 1.
  func count() throws -> Int64 {
    guard let number = Int64(try text()), number > 0 else { throw error("a number of at least 1 is wanted") }
    return number
  }

  /// A number of bytes: in MiB, or with a unit.
  func size() throws -> Int64 {
    guard let size = MemorySize(argument: try text()) else {
      throw error("a size is wanted, in MiB or with a unit: 64, 512M, 2G")
    }
    return Int64(size.bytes)
  }

  /// A number of seconds.
  func seconds() throws -> Double {
    guard let number = Double(try text()), number > 0, number.isFinite else {
      throw error("a number of seconds is wanted")
    }
    return number
  }

  /// One of some words.
  func choice<Value>(_ values: [String: Value]) throws -> Value {
    guard let value = values[try text()] else {
      throw error("it is one of \(values.keys.sorted().joined(separator: ", "))")
    }
    return value
  }

  /// One of the words that the values of a type have.
  func choice<Value: CaseIterable & RawRepresentable>(_ type: Value.Type) throws -> Value
  where Value.RawValue == String {
    try choice(Dictionary(uniqueKeysWithValues: type.allCases.map { ($0.rawValue, $0) }))
  }

  /// The parts of a list.
  func list() throws -> [SettingsNode] {
    guard let sequence = node.sequence else { throw error("a list is wanted") }
    return sequence.enumerated().map { SettingsNode($1, file, "\(name)[\($0)]", environment) }
  }

  /// The value, or the values of a list, that an option of the command line takes in the same form.
  func arguments<Value: ExpressibleByArgument>(_ type: Value.Type, _ form: String) throws -> [Value] {
    try (node.scalar == nil ? list() : [self]).map { node in
      guard let value = Value(argument: try node.text()) else { throw node.error("it is \(form)") }
      return value
    }
  }

  /// The values of a list.
  func texts() throws -> [String] { try list().map { try $0.text() } }
}
