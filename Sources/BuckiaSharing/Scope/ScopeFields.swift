import BuckiaBytes
import SQLiteSchemas
import SQLiteChangesets

/// The members of an object in a scope's document. Each is taken once, and none may be left: a misspelled name would share more
/// than was meant.
struct ScopeFields {
  private let path: String
  private var members: [JSONObject.Member]

  init(_ value: JSONValue, at path: String) throws {
    self.path = path
    guard case .object(let object) = value else {
      throw ReplicationError.invalidScope("\(path) is \(value.kind), not an object")
    }
    members = object.members
  }

  private func invalid(_ name: String, _ problem: String) -> ReplicationError {
    .invalidScope("\"\(name)\" of \(path) \(problem)")
  }

  private mutating func take(_ name: String) -> JSONValue? {
    guard let place = members.firstIndex(where: { $0.name.utf8.elementsEqual(name.utf8) }) else { return nil }
    return members.remove(at: place).value
  }

  mutating func required(_ name: String) throws -> JSONValue {
    guard let value = take(name) else { throw invalid(name, "is missing") }
    return value
  }

  mutating func optionalText(_ name: String) throws -> String? {
    guard let value = take(name) else { return nil }
    guard case .string(let text) = value else { throw invalid(name, "is \(value.kind), not text") }
    return text
  }

  mutating func text(_ name: String) throws -> String {
    guard let text = try optionalText(name) else { throw invalid(name, "is missing") }
    return text
  }

  mutating func optionalCount(_ name: String) throws -> Int? {
    guard let value = take(name) else { return nil }
    guard case .integer(let number) = value, number >= 1 else { throw invalid(name, "is no number from 1 on") }
    return Int(clamping: number)
  }

  /// A list; empty where there is none.
  mutating func list(_ name: String) throws -> [JSONValue] {
    guard let value = take(name) else { return [] }
    guard case .array(let values) = value else { throw invalid(name, "is \(value.kind), not a list") }
    return values
  }

  mutating func texts(_ name: String) throws -> [String] {
    try list(name).map { value in
      guard case .string(let text) = value else { throw invalid(name, "has \(value.kind) in it, not text") }
      return text
    }
  }

  mutating func optionalTexts(_ name: String) throws -> [String]? {
    members.contains { $0.name == name } ? try texts(name) : nil
  }

  /// Values of columns or parameters, by name.
  mutating func values(_ name: String) throws -> [String: ChangesetValue] {
    guard let value = take(name) else { return [:] }
    guard case .object(let object) = value else { throw invalid(name, "is \(value.kind), not an object") }
    var values: [String: ChangesetValue] = [:]
    for member in object.members {
      guard let value = ChangesetValue(json: member.value) else {
        throw invalid(name, "has a value for \"\(member.name)\" that no column can have")
      }
      values[member.name] = value
    }
    return values
  }

  func finish() throws {
    if let member = members.first { throw invalid(member.name, "is not known here") }
  }
}
