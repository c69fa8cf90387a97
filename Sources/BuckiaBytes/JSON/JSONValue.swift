/// A JSON document as data: objects keep the order of their members, numbers are integers.
///
/// One type serves the manifest, the schema and what the command line prints. Documents that are read hold no
/// ``real(_:)``: the parser refuses fractions and exponents, so that two readers never round differently.
///
/// ```swift
/// let report: JSONValue = ["version": 1, "tables": ["notes", "tags"]]
/// print(report.text())            // {"version":1,"tables":["notes","tags"]}
/// ```
package enum JSONValue: Equatable, Sendable {
  /// `null`
  case null
  /// `true` or `false`
  case bool(Bool)
  /// A number without fraction or exponent.
  case integer(Int64)
  /// A floating-point number. Only written, never read.
  case real(Double)
  /// Text.
  case string(String)
  /// An ordered list.
  case array([JSONValue])
  /// Members in the order they were written.
  case object(JSONObject)
}

/// The members of a JSON object, in order.
package struct JSONObject: Equatable, Sendable {
  /// One member.
  package struct Member: Equatable, Sendable {
    /// The name, escapes decoded.
    package var name: String
    /// The value.
    package var value: JSONValue

    /// Makes a member.
    package init(_ name: String, _ value: JSONValue) {
      self.name = name
      self.value = value
    }
  }

  /// The members in order. Their names must differ.
  package var members: [Member]

  /// Makes an object.
  package init(_ members: [Member] = []) { self.members = members }

  /// Whether it has no members.
  package var isEmpty: Bool { members.isEmpty }

  /// Adds a member at the end.
  package mutating func append(_ name: String, _ value: JSONValue) { members.append(Member(name, value)) }

  /// The value of the member of that name, byte for byte, or nil.
  package subscript(name: String) -> JSONValue? {
    members.first { $0.name.utf8.elementsEqual(name.utf8) }?.value
  }
}

extension JSONValue: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral,
  ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
  /// Text.
  package init(stringLiteral value: String) { self = .string(value) }
  /// A number.
  package init(integerLiteral value: Int64) { self = .integer(value) }
  /// A truth value.
  package init(booleanLiteral value: Bool) { self = .bool(value) }
  /// A list.
  package init(arrayLiteral elements: JSONValue...) { self = .array(elements) }
  /// An object; the order of the literal is kept.
  package init(dictionaryLiteral elements: (String, JSONValue)...) {
    self = .object(JSONObject(elements.map { JSONObject.Member($0.0, $0.1) }))
  }
}

extension JSONValue {
  /// How many objects and arrays may stand inside one another in a document that is read.
  static let depthLimit = 16
  /// How many values a document that is read may hold. A schema of 16 MiB as our writer makes it has fewer.
  package static let countLimit = 1_500_000

  /// A number, from any integer that fits 64 bits; others become text.
  package static func number(_ value: some BinaryInteger) -> JSONValue {
    Int64(exactly: value).map { .integer($0) } ?? .string(String(value))
  }

  /// A list of numbers.
  package static func numbers(_ values: [Int]) -> JSONValue { .array(values.map { .number($0) }) }

  /// The text, or `null`.
  package static func text(_ value: String?) -> JSONValue { value.map { .string($0) } ?? .null }

  /// What kind of value it is, in words of an error message.
  package var kind: String {
    switch self {
    case .null: "null"
    case .bool: "a truth value"
    case .integer, .real: "a number"
    case .string: "text"
    case .array: "a list"
    case .object: "an object"
    }
  }
}
