import Buckia
import SQLiteConnections

/// The options of a call: the members of a JSON object, named as the options of the command.
struct CallOptions {
  private let function: String
  private let members: JSONObject

  /// Reads options.
  ///
  /// - Parameters:
  ///   - text: The JSON; nil for none.
  ///   - function: The name of the function.
  ///   - known: The names of the function's options.
  /// - Throws: `SQLiteFunctionFailure` for anything else.
  init(_ text: String?, of function: String, known: [String]) throws {
    self.function = function
    guard let text else {
      members = JSONObject()
      return
    }
    let document: JSONValue
    do throws(JSONError) {
      document = try JSONParser.parse(Array(text.utf8))
    } catch {
      throw SQLiteFunctionFailure("the options of \(function) are not JSON: \(error)")
    }
    guard case .object(let object) = document else {
      throw SQLiteFunctionFailure("the options of \(function) must be a JSON object, such as {\"\(known[0])\": …}")
    }
    members = object
    for member in members.members where !known.contains(member.name) {
      throw SQLiteFunctionFailure(
        "\(function) has no option \"\(member.name)\"; its options are \(known.joined(separator: ", "))")
    }
  }

  /// The Boolean value; nil if absent.
  func flag(_ name: String) throws -> Bool? {
    switch members[name] {
    case nil, .null: nil
    case .bool(let flag): flag
    default: throw refusal(of: name, "true or false")
    }
  }

  /// The text; nil if absent.
  ///
  /// - Throws: `SQLiteFunctionFailure` for anything else, and for text that contains a NUL, which would end a path.
  func text(_ name: String) throws -> String? {
    switch members[name] {
    case nil, .null: nil
    case .string(let text) where !text.utf8.contains(0): text
    default: throw refusal(of: name, "text")
    }
  }

  /// The list of texts; nil if absent.
  func texts(_ name: String) throws -> [String]? {
    switch members[name] {
    case nil, .null: nil
    case .array(let values):
      try values.map { value in
        guard case .string(let text) = value else { throw refusal(of: name, "a list of texts") }
        return text
      }
    default: throw refusal(of: name, "a list of texts")
    }
  }

  /// The choice; nil if absent.
  func choice<Choice: RawRepresentable & CaseIterable>(
    _ name: String, _ type: Choice.Type = Choice.self
  ) throws -> Choice? where Choice.RawValue == String {
    try text(name).map { try choice(of: $0, for: name) }
  }

  /// The choices by name; empty if absent.
  func choices<Choice: RawRepresentable & CaseIterable>(
    _ name: String, _ type: Choice.Type = Choice.self
  ) throws -> [(name: String, choice: Choice)] where Choice.RawValue == String {
    switch members[name] {
    case nil, .null: return []
    case .object(let object):
      return try object.members.map { member in
        guard case .string(let word) = member.value else { throw refusal(of: name, "an object of texts") }
        return (member.name, try choice(of: word, for: name))
      }
    default: throw refusal(of: name, "an object of texts")
    }
  }

  private func choice<Choice: RawRepresentable & CaseIterable>(
    of word: String, for name: String
  ) throws -> Choice where Choice.RawValue == String {
    guard let choice = Choice(rawValue: word) else {
      throw refusal(of: name, "one of \(Choice.allCases.map(\.rawValue).joined(separator: ", "))")
    }
    return choice
  }

  /// The home folder that is named, or the standard one.
  func home() throws -> BuckiaHome { try text("home").map { BuckiaHome(path: $0) } ?? .standard }

  private func refusal(of name: String, _ expected: String) -> SQLiteFunctionFailure {
    SQLiteFunctionFailure("the option \"\(name)\" of \(function) must be \(expected)")
  }
}

extension SQLiteArguments {
  /// A file or folder that is named, or the bytes of a file; nil for NULL.
  ///
  /// - Throws: `SQLiteFunctionFailure` for a number, and for a path that contains a NUL.
  func source(at index: Int, of function: String) throws -> InboundSource? {
    switch storageClass(at: index) {
    case .null: return nil
    case .blob: return try blobSource(at: index)
    case .text: return try path(at: index, of: function).map { .path($0) }
    case .integer, .real: throw SQLiteFunctionFailure("\(function) takes a path, or the bytes of a file as a blob")
    }
  }

  /// The bytes of a file; nil for NULL.
  ///
  /// - Throws: `SQLiteFunctionFailure` for anything else.
  func bytes(at index: Int, of function: String) throws -> InboundSource? {
    switch storageClass(at: index) {
    case .null: return nil
    case .blob: return try blobSource(at: index)
    case .text, .integer, .real:
      throw SQLiteFunctionFailure("\(function) takes the bytes of a file as a blob, such as readfile('…') in the shell")
    }
  }

  /// A path; nil for NULL.
  ///
  /// - Throws: `SQLiteFunctionFailure` for anything else, and for a path that contains a NUL.
  func path(at index: Int, of function: String) throws -> String? {
    guard storageClass(at: index) != .null else { return nil }
    guard storageClass(at: index) == .text, let path = text(at: index), !path.utf8.contains(0) else {
      throw SQLiteFunctionFailure("\(function) takes a path as text")
    }
    return path
  }

  private func blobSource(at index: Int) throws -> InboundSource {
    try .spooled(SpooledInput(PositionedInput(TemporaryBuffer(blob(at: index) ?? [])), named: "blob"))
  }
}
