/// One SQLite value, copied out of a changeset for people and resolvers.
///
/// The engine itself works on the bytes; here text is a `String`, so broken UTF-8 shows as U+FFFD.
public enum ChangesetValue: Equatable, Sendable {
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

extension ChangesetValue: ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral, ExpressibleByStringLiteral {
  /// An integer.
  public init(integerLiteral value: Int64) { self = .integer(value) }

  /// A floating-point number.
  public init(floatLiteral value: Double) { self = .real(value) }

  /// Text.
  public init(stringLiteral value: String) { self = .text(value) }
}
