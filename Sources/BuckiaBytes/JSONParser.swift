/// Reads one JSON document, strictly.
///
/// Two programs that read the same signed bytes must see the same thing, so everything that readers are known to
/// differ about is refused: duplicate names, numbers that are no integers, broken UTF-8, halves of surrogate pairs,
/// byte order marks and anything behind the document. Nesting is bounded, so hostile input cannot exhaust the stack, and so is
/// the number of values: a list of short lists takes thirty times as much memory as its text.
/// Follows [RFC 8259](https://www.rfc-editor.org/rfc/rfc8259) and, in what it refuses,
/// [RFC 7493](https://www.rfc-editor.org/rfc/rfc7493).
package struct JSONParser {
  /// Which numbers are read.
  package enum Numbers {
    /// Integers alone: nothing that is signed may be read in two ways.
    case integers
    /// Those with a fraction or an exponent, too: for what a person types.
    case all
  }

  private let bytes: [UInt8]
  private let numbers: Numbers
  private var position = 0
  private var count = 0

  private init(_ bytes: [UInt8], _ numbers: Numbers) {
    self.bytes = bytes
    self.numbers = numbers
  }

  /// Reads a document.
  ///
  /// - Parameters:
  ///   - bytes: The whole document, UTF-8.
  ///   - numbers: Which numbers are read.
  /// - Throws: `JSONError` with the offset of what is wrong.
  package static func parse(_ bytes: [UInt8], numbers: Numbers = .integers) throws(JSONError) -> JSONValue {
    if bytes.starts(with: [0xef, 0xbb, 0xbf]) { throw JSONError(.byteOrderMark, offset: 0) }
    try checkUTF8(bytes)
    var parser = JSONParser(bytes, numbers)
    let value = try parser.value(depth: 0)
    parser.skipSpace()
    guard parser.position == bytes.count else { throw JSONError(.trailingData, offset: parser.position) }
    return value
  }

  private static func checkUTF8(_ bytes: [UInt8]) throws(JSONError) {
    // Decoding repairs what is broken, so only valid input comes out as it went in.
    var repaired = String(decoding: bytes, as: UTF8.self)
    let firstDifference = repaired.withUTF8 { text -> Int? in
      bytes.withUnsafeBufferPointer { source in
        if text.count == source.count, text.elementsEqual(source) { return nil }
        return zip(text, source).enumerated().first { $0.element.0 != $0.element.1 }?.offset
          ?? min(text.count, source.count)
      }
    }
    if let firstDifference { throw JSONError(.notUTF8, offset: firstDifference) }
  }

  private mutating func skipSpace() {
    while position < bytes.count {
      switch bytes[position] {
      case 0x20, 0x09, 0x0a, 0x0d: position += 1
      default: return
      }
    }
  }

  private func peek() throws(JSONError) -> UInt8 {
    guard position < bytes.count else { throw JSONError(.truncated, offset: position) }
    return bytes[position]
  }

  private mutating func expect(_ byte: UInt8) throws(JSONError) {
    guard try peek() == byte else { throw JSONError(.unexpectedCharacter, offset: position) }
    position += 1
  }

  /// Steps over `byte` if it stands next, white space aside.
  private mutating func skip(_ byte: UInt8) throws(JSONError) -> Bool {
    skipSpace()
    guard try peek() == byte else { return false }
    position += 1
    return true
  }

  private mutating func value(depth: Int) throws(JSONError) -> JSONValue {
    skipSpace()
    count += 1
    guard count <= JSONValue.countLimit else { throw JSONError(.tooManyValues, offset: position) }
    switch try peek() {
    case UInt8(ascii: "{"): return .object(try object(depth: depth + 1))
    case UInt8(ascii: "["): return .array(try array(depth: depth + 1))
    case UInt8(ascii: "\""): return .string(try string())
    case UInt8(ascii: "t"): return try word("true", .bool(true))
    case UInt8(ascii: "f"): return try word("false", .bool(false))
    case UInt8(ascii: "n"): return try word("null", .null)
    case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"):
      if let real = try real() { return .real(real) }
      return .integer(try number())
    default: throw JSONError(.unexpectedCharacter, offset: position)
    }
  }

  private mutating func word(_ word: StaticString, _ value: JSONValue) throws(JSONError) -> JSONValue {
    for byte in word.description.utf8 { try expect(byte) }
    return value
  }

  private mutating func object(depth: Int) throws(JSONError) -> JSONObject {
    guard depth <= JSONValue.depthLimit else { throw JSONError(.tooDeep, offset: position) }
    position += 1
    var object = JSONObject()
    var names = SeenNames()
    if try skip(UInt8(ascii: "}")) { return object }
    repeat {
      skipSpace()
      let start = position
      let name = try string()
      guard names.insert(name, among: object) else { throw JSONError(.duplicateName, offset: start) }
      skipSpace()
      try expect(UInt8(ascii: ":"))
      object.append(name, try value(depth: depth))
    } while try skip(UInt8(ascii: ","))
    try expect(UInt8(ascii: "}"))
    return object
  }

  private mutating func array(depth: Int) throws(JSONError) -> [JSONValue] {
    guard depth <= JSONValue.depthLimit else { throw JSONError(.tooDeep, offset: position) }
    position += 1
    var values: [JSONValue] = []
    if try skip(UInt8(ascii: "]")) { return values }
    repeat { values.append(try value(depth: depth)) } while try skip(UInt8(ascii: ","))
    try expect(UInt8(ascii: "]"))
    return values
  }

  /// Reads a number with a fraction or an exponent; nil where another stands, or none may.
  private mutating func real() throws(JSONError) -> Double? {
    guard numbers == .all else { return nil }
    let marks = Array("+-.eE".utf8)
    let text = bytes[position...].prefix { (0x30...0x39).contains($0) || marks.contains($0) }
    guard text.contains(where: { [0x2e, 0x65, 0x45].contains($0) }) else { return nil }
    let digits = text.drop { $0 == UInt8(ascii: "-") }
    let isPlain =
      digits.first.map { (0x30...0x39).contains($0) } == true && text.last.map { (0x30...0x39).contains($0) } == true
    guard isPlain, let value = Double(String(decoding: text, as: UTF8.self)) else {
      throw JSONError(.unexpectedCharacter, offset: position)
    }
    guard value.isFinite else { throw JSONError(.outOfRange, offset: position) }
    position = text.endIndex
    return value
  }

  private mutating func number() throws(JSONError) -> Int64 {
    let start = position
    let isNegative = bytes[position] == UInt8(ascii: "-")
    if isNegative { position += 1 }
    let firstDigit = position
    var value: Int64 = 0
    while position < bytes.count, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(bytes[position]) {
      let digit = Int64(bytes[position] - UInt8(ascii: "0"))
      let (product, overflow) = value.multipliedReportingOverflow(by: 10)
      let (sum, overflow2) = product.subtractingReportingOverflow(digit)
      guard !overflow, !overflow2 else { throw JSONError(.outOfRange, offset: start) }
      // Counts downwards, since the smallest Int64 has no positive counterpart.
      value = sum
      position += 1
    }
    guard position > firstDigit else { throw JSONError(.unexpectedCharacter, offset: position) }
    let hasLeadingZero = bytes[firstDigit] == UInt8(ascii: "0") && position > firstDigit + 1
    let goesOn = position < bytes.count && [0x2e, 0x65, 0x45].contains(bytes[position])
    guard !hasLeadingZero, !goesOn, !(isNegative && value == 0) else {
      throw JSONError(.notAnInteger, offset: start)
    }
    if isNegative { return value }
    guard value != Int64.min else { throw JSONError(.outOfRange, offset: start) }
    return -value
  }

  private mutating func string() throws(JSONError) -> String {
    try expect(UInt8(ascii: "\""))
    var text: [UInt8] = []
    var start = position
    while true {
      let byte = try peek()
      switch byte {
      case UInt8(ascii: "\""):
        defer { position += 1 }
        if text.isEmpty { return String(decoding: bytes[start..<position], as: UTF8.self) }
        text.append(contentsOf: bytes[start..<position])
        return String(decoding: text, as: UTF8.self)
      case UInt8(ascii: "\\"):
        text.append(contentsOf: bytes[start..<position])
        try escape(into: &text)
        start = position
      case 0..<0x20: throw JSONError(.controlCharacter, offset: position)
      default: position += 1
      }
    }
  }

  private mutating func escape(into text: inout [UInt8]) throws(JSONError) {
    let start = position
    position += 1
    let letter = try peek()
    position += 1
    switch letter {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): text.append(letter)
    case UInt8(ascii: "b"): text.append(0x08)
    case UInt8(ascii: "f"): text.append(0x0c)
    case UInt8(ascii: "n"): text.append(0x0a)
    case UInt8(ascii: "r"): text.append(0x0d)
    case UInt8(ascii: "t"): text.append(0x09)
    case UInt8(ascii: "u"):
      var code = try fourHexDigits()
      if (0xd800..<0xdc00).contains(code) {
        guard position + 1 < bytes.count, bytes[position] == UInt8(ascii: "\\"),
          bytes[position + 1] == UInt8(ascii: "u")
        else { throw JSONError(.loneSurrogate, offset: start) }
        position += 2
        let low = try fourHexDigits()
        guard (0xdc00..<0xe000).contains(low) else { throw JSONError(.loneSurrogate, offset: start) }
        code = 0x10000 + (code - 0xd800) << 10 + (low - 0xdc00)
      }
      guard let scalar = Unicode.Scalar(code) else { throw JSONError(.loneSurrogate, offset: start) }
      text.append(contentsOf: UTF8.encode(scalar).map { Array($0) } ?? [])
    default: throw JSONError(.badEscape, offset: start)
    }
  }

  private mutating func fourHexDigits() throws(JSONError) -> UInt32 {
    var value: UInt32 = 0
    for _ in 0..<4 {
      guard let digit = HexText.value(of: try peek()) else { throw JSONError(.badEscape, offset: position) }
      value = value << 4 | UInt32(digit)
      position += 1
    }
    return value
  }
}

/// The names that an object has so far, compared as bytes: Swift's strings would take two spellings of one accented letter
/// for the same.
private struct SeenNames {
  /// Up to how many members looking through them all is quicker than a table.
  private static let few = 24
  private var table: Set<[UInt8]> = []

  /// Adds a name; false when the object has it.
  mutating func insert(_ name: String, among object: JSONObject) -> Bool {
    if object.members.count < Self.few { return object[name] == nil }
    if table.isEmpty { table = Set(object.members.map { Array($0.name.utf8) }) }
    return table.insert(Array(name.utf8)).inserted
  }
}

/// Why bytes are not a JSON document that we read.
package struct JSONError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The reasons that are told apart.
  package enum Code: String, Sendable {
    /// The bytes are no UTF-8.
    case notUTF8
    /// The document opens with a byte order mark.
    case byteOrderMark
    /// The document ends inside a value.
    case truncated
    /// A character stands where the grammar of RFC 8259 allows none like it.
    case unexpectedCharacter
    /// A control character stands unescaped in text.
    case controlCharacter
    /// An escape sequence that does not exist.
    case badEscape
    /// An escaped surrogate without its other half.
    case loneSurrogate
    /// Two members of an object have the same name, escapes decoded.
    case duplicateName
    /// Values are nested more than ``JSONValue/depthLimit`` deep.
    case tooDeep
    /// There are more than ``JSONValue/countLimit`` values.
    case tooManyValues
    /// A number has a fraction or an exponent, a leading zero, or is minus zero.
    case notAnInteger
    /// A number does not fit 64 bits.
    case outOfRange
    /// Something follows the document.
    case trailingData
  }

  /// What is wrong.
  package let code: Code
  /// Where, in bytes from 0.
  package let offset: Int

  /// Makes an error.
  package init(_ code: Code, offset: Int) {
    self.code = code
    self.offset = offset
  }

  /// What is wrong and where, for people.
  package var description: String { "\(what) (at byte \(offset))" }

  /// What is wrong, without the place.
  package var what: String {
    switch code {
    case .notUTF8: "the text is not UTF-8"
    case .byteOrderMark: "the text begins with a byte order mark"
    case .truncated: "the text ends inside a value"
    case .unexpectedCharacter: "a character does not belong there"
    case .controlCharacter: "a control character stands unescaped in a string"
    case .badEscape: "an escape sequence is unknown"
    case .loneSurrogate: "half of a surrogate pair is missing"
    case .duplicateName: "an object has two members of one name"
    case .tooDeep: "values are nested more than \(JSONValue.depthLimit) deep"
    case .tooManyValues: "there are more than \(JSONValue.countLimit) values"
    case .notAnInteger: "a number is not a plain integer"
    case .outOfRange: "a number does not fit 64 bits"
    case .trailingData: "something follows the document"
    }
  }
}
