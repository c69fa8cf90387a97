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
