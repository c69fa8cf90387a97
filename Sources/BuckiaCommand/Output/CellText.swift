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
    case .text(let text): return Self.quoted(text.escaped(limit: limit))
    case .blob(let bytes): return Self.shown(blob: bytes, from: 0, isFull: limit == .max)
    }
  }

  /// How many bytes of a long blob are shown, and how many of these stand before a difference.
  private static let shownBytes = 8
  private static let bytesBefore = 2

  private static func shown(blob bytes: [UInt8], from start: Int, isFull: Bool) -> String {
    if isFull || bytes.count <= shownBytes { return "x'\(HexText.lowercase(bytes))'" }
    let start = max(0, min(start, bytes.count - shownBytes))
    let end = start + shownBytes
    let part = HexText.lowercase(Array(bytes[start..<end]))
    return "x'\(start > 0 ? "…" : "")\(part)\(end < bytes.count ? "…" : "")' (\(ByteCount(bytes.count)))"
  }

  /// Versions of one value as a person reads them. Long ones are shortened around what differs.
  ///
  /// - Parameter limit: How many characters of a text are shown.
  static func shown(_ versions: [ChangesetValue], limit: Int) -> [String] {
    var texts = versions.compactMap { value -> String? in if case .text(let text) = value { text } else { nil } }
    let blobs = versions.compactMap { value -> [UInt8]? in if case .blob(let bytes) = value { bytes } else { nil } }
    guard limit < .max, texts.count > 1 || blobs.count > 1 else { return versions.map { $0.shown(limit: limit) } }
    texts = DifferingTexts.shortened(texts, to: limit)
    let difference = blobs.dropFirst().map { zip(blobs[0], $0).prefix { $0 == $1 }.count }.min() ?? 0
    return versions.map { version in
      switch version {
      case .text: quoted(texts.removeFirst().escaped(limit: limit))
      case .blob(let bytes): shown(blob: bytes, from: difference - bytesBefore, isFull: false)
      default: version.shown(limit: limit)
      }
    }
  }

  private static func quoted(_ escaped: String) -> String {
    "'\(escaped.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "''"))'"
  }
}
