import ArgumentParser
import Buckia

/// The answer to a conflict as it is typed: `local`, `incoming`, or a JSON object of columns and their values.
struct TypedAnswer: ExpressibleByArgument {
  let answer: ConflictAnswer

  init?(argument: String) {
    if let version = ConflictVersion(rawValue: argument) {
      answer = .version(version)
      return
    }
    guard let document = try? JSONParser.parse(Array(argument.utf8), numbers: .all), case .object(let object) = document
    else { return nil }
    var values: [String: ChangesetValue] = [:]
    for member in object.members {
      guard let value = ChangesetValue(json: member.value) else { return nil }
      values[member.name] = value
    }
    guard !values.isEmpty else { return nil }
    answer = .values(values)
  }
}

extension ChangesetValue {
  /// Takes a value as `--json` has it (``ChangesetValue/json``); nil for anything else.
  init?(json: JSONValue) {
    switch json {
    case .null: self = .null
    case .integer(let number): self = .integer(number)
    case .real(let number): self = .real(number)
    case .string(let text): self = .text(text)
    case .bool, .array: return nil
    case .object(let object):
      guard object.members.count == 1, let member = object.members.first, case .string(let text) = member.value else {
        return nil
      }
      switch member.name {
      case "int":
        guard let number = Int64(text) else { return nil }
        self = .integer(number)
      case "real":
        guard let number = ["Infinity": Double.infinity, "-Infinity": -Double.infinity][text] ?? Double(text) else {
          return nil
        }
        self = .real(number)
      case "blob":
        guard let bytes = HexText.bytes(text) else { return nil }
        self = .blob(bytes)
      default: return nil
      }
    }
  }
}
