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

  /// True if it has no members.
  package var isEmpty: Bool { members.isEmpty }

  /// Adds a member at the end.
  package mutating func append(_ name: String, _ value: JSONValue) { members.append(Member(name, value)) }

  /// The value of the member of that name, byte for byte, or nil.
  package subscript(name: String) -> JSONValue? {
    members.first { $0.name.utf8.elementsEqual(name.utf8) }?.value
  }

  /// The text of the member of that name; nil where there is none, or it is something else.
  package func text(_ name: String) -> String? {
    if case .string(let text)? = self[name] { text } else { nil }
  }

  /// Removes a member and returns its value; null counts as absent.
  ///
  /// Names are compared as bytes: to Swift `primaryKey` is the same with a Kelvin sign for its K, to others it is not.
  package mutating func take(_ name: String) -> JSONValue? {
    guard let index = members.firstIndex(where: { $0.name.utf8.elementsEqual(name.utf8) }) else { return nil }
    let value = members.remove(at: index).value
    return value == .null ? nil : value
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

  /// The document in its canonical form: no white space, members in their order, only what must be escaped escaped.
  ///
  /// This is the form of every document of a diff file. A `real` that is no number is written as
  /// `{"real":"Infinity"}`, `{"real":"-Infinity"}` or `{"real":"NaN"}`.
  package func text() -> String { String(decoding: bytes(), as: UTF8.self) }

  /// The canonical form as UTF-8.
  package func bytes() -> [UInt8] {
    var writer = JSONWriter(indents: false, escapesUnsafe: false)
    writer.append(self, level: 0)
    return writer.bytes
  }

  /// The document on one line, to be printed: characters that a terminal would act upon are escaped.
  package func lineText() -> String { printed(indents: false) }

  /// The document to be printed for people: indented by two spaces; lists and objects of plain values that fit 80
  /// columns stand on one line. Characters that a terminal would act upon are escaped.
  ///
  /// - Parameter level: How deep the document stands in another; its first line is not indented.
  package func prettyText(level: Int = 0) -> String { printed(indents: true, level: level) }

  private func printed(indents: Bool, level: Int = 0) -> String {
    var writer = JSONWriter(indents: indents, escapesUnsafe: true)
    writer.append(self, level: level)
    return String(decoding: writer.bytes, as: UTF8.self)
  }
}

private struct JSONWriter {
  static let lineWidth = 80

  let indents: Bool
  let escapesUnsafe: Bool
  var bytes: [UInt8] = []

  mutating func append(_ value: JSONValue, level: Int) {
    switch value {
    case .null: write("null")
    case .bool(let flag): write(flag ? "true" : "false")
    case .integer(let number): write(String(number))
    case .real(let number) where number.isFinite: write(number.description)
    case .real(let number):
      let name = number.isNaN ? "NaN" : number > 0 ? "Infinity" : "-Infinity"
      append(["real": .string(name)], level: level)
    case .string(let text): append(text)
    case .array(let values):
      appendItems(values.map { (nil, $0) }, of: value, marks: ("[", "]"), level: level)
    case .object(let object):
      appendItems(object.members.map { ($0.name, $0.value) }, of: value, marks: ("{", "}"), level: level)
    }
  }

  private mutating func appendItems(
    _ items: [(name: String?, value: JSONValue)], of whole: JSONValue, marks: (String, String), level: Int
  ) {
    let isPlain = items.allSatisfy(\.value.isScalar)
    let breaks = indents && !items.isEmpty && !(isPlain && fits(items, level: level))
    write(marks.0)
    for (index, item) in items.enumerated() {
      if index > 0 { write(indents && !breaks ? ", " : ",") }
      if breaks { newLine(level + 1) }
      if let name = item.name {
        append(name)
        write(indents ? ": " : ":")
      }
      append(item.value, level: level + 1)
    }
    if breaks { newLine(level) }
    write(marks.1)
  }

  private func fits(_ items: [(name: String?, value: JSONValue)], level: Int) -> Bool {
    guard items.count < Self.lineWidth else { return false }
    var line = JSONWriter(indents: false, escapesUnsafe: escapesUnsafe)
    for item in items where line.bytes.count < Self.lineWidth {
      line.append(item.name ?? "")
      line.append(item.value, level: 0)
    }
    return line.bytes.count + 2 * items.count + 2 * level < Self.lineWidth
  }

  private mutating func newLine(_ level: Int) {
    bytes.append(0x0a)
    bytes.append(contentsOf: repeatElement(0x20, count: 2 * level))
  }

  private mutating func write(_ text: String) { bytes.append(contentsOf: text.utf8) }

  private mutating func append(_ text: String) {
    bytes.append(UInt8(ascii: "\""))
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"": write("\\\"")
      case "\\": write("\\\\")
      case "\u{08}": write("\\b")
      case "\t": write("\\t")
      case "\n": write("\\n")
      case "\u{0c}": write("\\f")
      case "\r": write("\\r")
      case _ where scalar.value < 0x20 || (escapesUnsafe && !EscapedText.isHarmless(scalar)):
        for unit in scalar.utf16 { write("\\u" + HexText.lowercase([UInt8(unit >> 8), UInt8(unit & 0xff)])) }
      default: bytes.append(contentsOf: scalar.utf8)
      }
    }
    bytes.append(UInt8(ascii: "\""))
  }
}

extension JSONValue {
  fileprivate var isScalar: Bool {
    switch self {
    case .array(let values): values.isEmpty
    case .object(let object): object.isEmpty
    default: true
    }
  }
}

extension JSONValue {
  /// A list of texts.
  package static func strings(_ texts: some Sequence<String>) -> JSONValue { .array(texts.map { .string($0) }) }

  /// The texts in a document that is a list of them.
  ///
  /// - Throws: `JSONError` when it is no document.
  package static func strings(in document: String) throws -> [String] {
    guard case .array(let values) = try JSONParser.parse(Array(document.utf8)) else { return [] }
    return values.compactMap { if case .string(let text) = $0 { text } else { nil } }
  }
}
