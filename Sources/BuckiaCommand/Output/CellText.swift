import Buckia

extension ChangesetValue {
  /// The value as JSON: integers a double holds exactly are plain, greater ones, infinities and blobs are objects that
  /// name their kind, so nothing is lost on the way through other languages.
  var json: JSONValue {
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

  /// The value as a person reads it, much as SQL writes it, at most `limit` characters of it.
  func shown(limit: Int = 40) -> String {
    switch self {
    case .null: return "NULL"
    case .integer(let number): return String(number)
    case .real(let number): return number.isFinite ? String(number) : number < 0 ? "-Infinity" : "Infinity"
    case .text(let text):
      let quoted = text.escaped(limit: limit).split(separator: "'", omittingEmptySubsequences: false)
      return "'\(quoted.joined(separator: "''"))'"
    case .blob(let bytes):
      let head = HexText.lowercase(Array(bytes.prefix(8)))
      return bytes.count <= 8 ? "x'\(head)'" : "x'\(head)…' (\(ByteCount(bytes.count)))"
    }
  }
}
