import BuckiaBytes

/// One SQLite value, copied out of a changeset for people and resolvers.
///
/// The engine itself works on the bytes; here text is a `String`, so broken UTF-8 shows as U+FFFD.
public enum ChangesetValue: Hashable, Sendable {
  case null
  case integer(Int64)
  case real(Double)
  case text(String)
  case blob([UInt8])

  /// Copies a value; nil where there is none.
  public init?(_ slice: ValueSlice, in bytes: RawSpan) {
    switch slice.kind {
    case .undefined: return nil
    case .null: self = .null
    case .integer: self = .integer(slice.integer(in: bytes))
    case .real: self = .real(slice.real(in: bytes))
    case .text: self = .text(String(decoding: bytes.array(slice.payloadRange), as: UTF8.self))
    case .blob: self = .blob(bytes.array(slice.payloadRange))
    }
  }

  /// Takes apart a record: encoded values one after the other, nil where one is undefined.
  ///
  /// - Throws: `ChangesetError` when the bytes are anything else.
  package static func record(_ bytes: [UInt8]) throws(ChangesetError) -> [ChangesetValue?] {
    try bytes.withRawSpan { (span) throws(ChangesetError) in
      var values: [ChangesetValue?] = []
      var position = 0
      while position < span.byteCount {
        values.append(ChangesetValue(try ValueSlice(reading: span, at: &position), in: span))
      }
      return values
    }
  }
}

extension ChangesetValue: CustomStringConvertible {
  /// The value as an SQL literal: `NULL`, `7`, `0.5`, `'text'`, `x'00ff'`. Text stands as it is, control characters included.
  public var description: String {
    switch self {
    case .null: "NULL"
    case .integer(let number): String(number)
    case .real(let number) where number.isFinite: String(number)
    // What SQLite reads as an infinity. There is no literal for what is no number; SQLite stores NULL.
    case .real(let number): number.isNaN ? "NULL" : number < 0 ? "-9e999" : "9e999"
    case .text(let text):
      "'\(text.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "''"))'"
    case .blob(let bytes): "x'\(HexText.lowercase(bytes))'"
    }
  }
}

extension ChangesetValue: ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral, ExpressibleByStringLiteral {
  /// An integer.
  public init(integerLiteral value: Int64) { self = .integer(value) }

  /// A floating-point number.
  public init(floatLiteral value: Double) { self = .real(value) }

  /// Text.
  public init(stringLiteral value: String) { self = .text(value) }
}

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

/// Integers and text are what they are; NULL, reals and blobs stand under their kind, so that each stays what it is.
extension ChangesetValue: Codable {
  private enum Key: String, CodingKey {
    case null, real, blob
  }

  /// Reads what ``encode(to:)`` has written.
  public init(from decoder: any Decoder) throws {
    if let container = try? decoder.container(keyedBy: Key.self) {
      if container.contains(.null) {
        self = .null
      } else if let text = try container.decodeIfPresent(String.self, forKey: .real), let number = Double(text) {
        self = .real(number)
      } else if let bytes = HexText.bytes(try container.decode(String.self, forKey: .blob)) {
        self = .blob(bytes)
      } else {
        throw DecodingError.dataCorruptedError(
          forKey: .blob, in: container, debugDescription: "it is no hexadecimal text")
      }
      return
    }
    let container = try decoder.singleValueContainer()
    if let number = try? container.decode(Int64.self) {
      self = .integer(number)
    } else {
      self = .text(try container.decode(String.self))
    }
  }

  /// Writes the value.
  public func encode(to encoder: any Encoder) throws {
    switch self {
    case .real(let number):
      var container = encoder.container(keyedBy: Key.self)
      try container.encode("\(number)", forKey: .real)
    case .blob(let bytes):
      var container = encoder.container(keyedBy: Key.self)
      try container.encode(HexText.lowercase(bytes), forKey: .blob)
    case .null:
      var container = encoder.container(keyedBy: Key.self)
      try container.encode(true, forKey: .null)
    case .integer(let number):
      var container = encoder.singleValueContainer()
      try container.encode(number)
    case .text(let text):
      var container = encoder.singleValueContainer()
      try container.encode(text)
    }
  }
}
