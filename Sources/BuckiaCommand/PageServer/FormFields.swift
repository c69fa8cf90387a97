/// The fields of a form or of the query of an address, in their order: `name=value&…`, see
/// [the URL standard](https://url.spec.whatwg.org/#application/x-www-form-urlencoded).
package struct FormFields: Equatable, Sendable {
  /// A field.
  package struct Field: Equatable, Sendable {
    package let name: String
    package let value: String
  }

  /// The fields.
  package private(set) var fields: [Field] = []

  /// No fields.
  package init() {}

  /// Fields of one's own.
  package init(_ fields: [(name: String, value: String)]) {
    self.fields = fields.map { Field(name: $0.name, value: $0.value) }
  }

  /// Reads fields.
  ///
  /// - Returns: nil where a percent sign does not begin a byte, or the bytes are not UTF-8.
  package init?(parsing bytes: some Collection<UInt8>) {
    for pair in bytes.split(separator: UInt8(ascii: "&")) {
      let parts = pair.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
      guard let name = Self.decoded(parts[0]), let value = parts.count > 1 ? Self.decoded(parts[1]) : "" else {
        return nil
      }
      fields.append(Field(name: name, value: value))
    }
  }

  /// The value of the first field of a name; nil where there is none.
  package subscript(name: String) -> String? {
    fields.first { $0.name.utf8.elementsEqual(name.utf8) }?.value
  }

  /// The fields as they stand in an address: ASCII that no attribute of a page has to escape but for `&`.
  package var encoded: String {
    fields.map { "\(Self.encoded($0.name))=\(Self.encoded($0.value))" }.joined(separator: "&")
  }

  private static func decoded(_ bytes: some Collection<UInt8>) -> String? {
    var text: [UInt8] = []
    var rest = Array(bytes)[...]
    while let byte = rest.popFirst() {
      switch byte {
      case UInt8(ascii: "+"): text.append(UInt8(ascii: " "))
      case UInt8(ascii: "%"):
        guard let high = digit(rest.popFirst()), let low = digit(rest.popFirst()) else { return nil }
        text.append(high << 4 | low)
      default: text.append(byte)
      }
    }
    let decoded = String(decoding: text, as: UTF8.self)
    return decoded.utf8.elementsEqual(text) ? decoded : nil
  }

  private static func digit(_ byte: UInt8?) -> UInt8? {
    switch byte {
    case let byte? where (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte): byte - UInt8(ascii: "0")
    case let byte? where (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(byte): byte - UInt8(ascii: "a") + 10
    case let byte? where (UInt8(ascii: "A")...UInt8(ascii: "F")).contains(byte): byte - UInt8(ascii: "A") + 10
    default: nil
    }
  }

  private static func encoded(_ text: String) -> String {
    let digits = Array("0123456789ABCDEF".utf8)
    var encoded: [UInt8] = []
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"),
        UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"):
        encoded.append(byte)
      default: encoded += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
      }
    }
    return String(decoding: encoded, as: UTF8.self)
  }
}
