import ArgumentParser
import Buckia

/// The answer to a conflict as it is typed: `local`, `incoming`, or a JSON object of columns and their values.
struct TypedAnswer {
  let answer: ConflictAnswer

  /// - Throws: `ValidationError` that says what is wrong with the argument.
  init(parsing argument: String) throws {
    if let version = ConflictVersion(rawValue: argument) {
      answer = .version(version)
      return
    }
    let document: JSONValue
    do {
      document = try JSONParser.parse(Array(argument.utf8), numbers: .all)
    } catch {
      throw ValidationError("It is neither local nor incoming, nor JSON: \(error).")
    }
    guard case .object(let object) = document, !object.members.isEmpty else {
      throw ValidationError("It is JSON, but no object of columns and their values.")
    }
    var values: [String: ChangesetValue] = [:]
    for member in object.members {
      guard let value = ChangesetValue(json: member.value) else {
        throw ValidationError("The value of \(member.name.escaped) is none that a column can have.")
      }
      values[member.name] = value
    }
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
