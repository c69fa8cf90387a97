import ArgumentParser
import Buckia

/// The answer to a conflict as a person types it: `local`, `incoming` (or `ours`, `theirs`, as merges call them), `both`, `same`, or
/// a JSON object of columns and their values.
struct TypedAnswer {
  let answer: ConflictAnswer

  private static let words: [String: ConflictAnswer] = [
    "local": .local, "incoming": .incoming, "both": .both, "same": .same, "ours": .local, "theirs": .incoming,
  ]

  /// - Throws: `ValidationError` that says what is wrong with the argument.
  init(parsing argument: String) throws {
    if let answer = Self.words[argument] {
      self.answer = answer
      return
    }
    let document: JSONValue
    do {
      document = try JSONParser.parse(Array(argument.utf8), numbers: .all)
    } catch {
      throw ValidationError("It is none of local, incoming, both and same, nor JSON: \(error).")
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

  /// The answer of `--set`: values of columns, each as `COLUMN=VALUE`, where the value is JSON or else text.
  ///
  /// - Throws: `ValidationError` that says what is wrong with an argument.
  init(setting arguments: [String]) throws {
    var values: [String: ChangesetValue] = [:]
    for argument in arguments {
      guard let place = argument.firstIndex(of: "="), place > argument.startIndex else {
        throw ValidationError("--set needs a column and its value: \(argument.escaped) is not COLUMN=VALUE.")
      }
      let column = String(argument[..<place])
      let text = String(argument[argument.index(after: place)...])
      guard values.updateValue(Self.value(text), forKey: column) == nil else {
        throw ValidationError("--set has two values for \(column.escaped).")
      }
    }
    answer = .values(values)
  }

  /// A value as it was typed: what is no JSON is text.
  private static func value(_ text: String) -> ChangesetValue {
    do {
      return try ChangesetValue(json: JSONParser.parse(Array(text.utf8), numbers: .all)) ?? .text(text)
    } catch {
      return .text(text)
    }
  }
}
