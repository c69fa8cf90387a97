import BuckiaBytes

extension ChangesetValue {
  /// The value as JSON: integers a double holds exactly are plain, greater ones, infinities and blobs are objects that
  /// name their kind, so nothing is lost on the way through other languages.
  package var json: JSONValue {
    switch self {
    case .null: .null
    case .integer(let number) where (-(1 << 53)...(1 << 53)).contains(number): .integer(number)
    case .integer(let number): ["int": .string(String(number))]
    case .real(let number) where number.isFinite: .real(number)
    case .real(let number): ["real": .string(number.isNaN ? "NaN" : number < 0 ? "-Infinity" : "Infinity")]
    case .text(let text): .string(text)
    case .blob(let bytes): ["blob": .string(HexText.lowercase(bytes))]
    }
  }

  /// Takes a value as ``json`` has it; nil for anything else.
  package init?(json: JSONValue) {
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
