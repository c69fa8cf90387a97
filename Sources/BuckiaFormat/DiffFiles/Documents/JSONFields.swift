import BuckiaBytes
import SQLiteSchemas

/// Reads the members of an object one by one; the others are in ``remaining``.
struct JSONFields {
  let document: JSONMember
  let path: String
  private(set) var remaining: JSONObject

  init(_ value: JSONValue, at path: String, of document: JSONMember) throws(DiffFileError) {
    guard case .object(let object) = value else { throw document.invalid(path, "is \(value.kind), not an object") }
    self.document = document
    self.path = path
    remaining = object
  }

  func invalid(_ name: String, _ problem: String) -> DiffFileError { document.invalid(field(name), problem) }

  private func field(_ name: String) -> String { path.isEmpty ? name : "\(path).\(name)" }

  /// Removes a member and returns its value; null counts as absent.
  mutating func take(_ name: String) -> JSONValue? { remaining.take(name) }

  mutating func required(_ name: String) throws(DiffFileError) -> JSONValue {
    guard let value = take(name) else { throw invalid(name, "is missing") }
    return value
  }

  mutating func string(_ name: String) throws(DiffFileError) -> String {
    let value = try required(name)
    guard case .string(let text) = value else { throw invalid(name, "is \(value.kind), not text") }
    return text
  }

  mutating func optionalString(_ name: String) throws(DiffFileError) -> String? {
    has(name) ? try string(name) : nil
  }

  mutating func bool(_ name: String) throws(DiffFileError) -> Bool {
    let value = try required(name)
    guard case .bool(let flag) = value else { throw invalid(name, "is \(value.kind), not true or false") }
    return flag
  }

  /// True if there is such a member; null counts as absent.
  mutating func has(_ name: String) -> Bool {
    guard remaining[name] == .null else { return remaining[name] != nil }
    _ = remaining.take(name)
    return false
  }

  /// The same; false if there is no member.
  mutating func flag(_ name: String) throws(DiffFileError) -> Bool { has(name) ? try bool(name) : false }

  /// A number within `range`.
  mutating func integer(
    _ name: String, in range: ClosedRange<Int64> = 0...DiffFileLimits.number
  ) throws(DiffFileError) -> Int64 {
    let value = try required(name)
    guard case .integer(let number) = value else { throw invalid(name, "is \(value.kind), not a number") }
    guard range.contains(number) else {
      throw invalid(name, "is \(number), outside \(range.lowerBound) to \(range.upperBound)")
    }
    return number
  }

  mutating func bytes<Value: FixedBytes>(_ name: String, as type: Value.Type) throws(DiffFileError) -> Value {
    guard let value = Value(hex: try string(name)) else {
      let count = Value.byteCount
      throw invalid(name, "is not \(count) bytes as \(2 * count) lowercase hexadecimal digits")
    }
    return value
  }

  mutating func optionalBytes<Value: FixedBytes>(
    _ name: String, as type: Value.Type
  ) throws(DiffFileError) -> Value? {
    try has(name) ? bytes(name, as: type) : nil
  }

  mutating func id(_ name: String) throws(DiffFileError) -> KSUID {
    let text = try string(name)
    do throws(KSUIDError) { return try KSUID(parsing: text) } catch { throw invalid(name, "is no id: \(error)") }
  }

  /// One of the raw values of an enumeration.
  mutating func choice<Value: RawRepresentable<String>>(
    _ name: String, of type: Value.Type
  ) throws(DiffFileError) -> Value {
    let text = try string(name)
    guard let value = Value(rawValue: text) else {
      throw invalid(name, "is \(EscapedText.quoted(text)), which is not known")
    }
    return value
  }

  /// A list. `read` reads each element, and gets the element's path.
  mutating func list<Element>(
    _ name: String, limit: Int, _ read: (JSONValue, String) throws(DiffFileError) -> Element
  ) throws(DiffFileError) -> [Element] {
    let value = try required(name)
    guard case .array(let values) = value else { throw invalid(name, "is \(value.kind), not a list") }
    guard values.count <= limit else { throw invalid(name, "has \(values.count) entries; the limit is \(limit)") }
    var elements: [Element] = []
    elements.reserveCapacity(values.count)
    for (index, value) in values.enumerated() { elements.append(try read(value, "\(field(name))[\(index)]")) }
    return elements
  }

  /// A list of objects, each read by `read`, which leaves nothing of it.
  mutating func objects<Element>(
    _ name: String, limit: Int, _ read: (inout JSONFields) throws(DiffFileError) -> Element
  ) throws(DiffFileError) -> [Element] {
    let document = document
    return try list(name, limit: limit) { (value, path) throws(DiffFileError) in
      try JSONFields.object(value, at: path, of: document, read)
    }
  }

  /// The same for an optional member; null is an error.
  mutating func objectsIfNamed<Element>(
    _ name: String, limit: Int, _ read: (inout JSONFields) throws(DiffFileError) -> Element
  ) throws(DiffFileError) -> [Element] {
    remaining[name] == nil ? [] : try objects(name, limit: limit, read)
  }

  /// An object, read by `read`, which leaves nothing of it; nil if there is none.
  mutating func object<Content>(
    _ name: String, _ read: (inout JSONFields) throws(DiffFileError) -> Content
  ) throws(DiffFileError) -> Content? {
    guard let value = take(name) else { return nil }
    return try JSONFields.object(value, at: field(name), of: document, read)
  }

  private static func object<Content>(
    _ value: JSONValue, at path: String, of document: JSONMember,
    _ read: (inout JSONFields) throws(DiffFileError) -> Content
  ) throws(DiffFileError) -> Content {
    var fields = try JSONFields(value, at: path, of: document)
    let content = try read(&fields)
    try fields.finish()
    return content
  }

  /// Removes and returns the unread members, which are kept unchanged.
  mutating func takeRemaining() -> JSONObject {
    defer { remaining = JSONObject() }
    return remaining
  }

  mutating func strings(_ name: String, limit: Int) throws(DiffFileError) -> [String] {
    let document = document
    return try list(name, limit: limit) { (value, path) throws(DiffFileError) in
      guard case .string(let text) = value else { throw document.invalid(path, "is \(value.kind), not text") }
      return text
    }
  }

  /// Column numbers, each below `bound`, none twice.
  mutating func ordinals(_ name: String, below bound: Int) throws(DiffFileError) -> [Int] {
    let value = try required(name)
    return try JSONFields.ordinals(value, at: field(name), below: bound, of: document)
  }

  /// Column numbers, each below `bound`; with `repeats`, one may occur twice, as in UNIQUE (a, a).
  static func ordinals(
    _ value: JSONValue, at path: String, below bound: Int, of document: JSONMember, repeats: Bool = false
  ) throws(DiffFileError) -> [Int] {
    guard case .array(let values) = value else { throw document.invalid(path, "is \(value.kind), not a list") }
    var seen: Set<Int> = []
    var ordinals: [Int] = []
    for value in values {
      guard case .integer(let number) = value, number >= 0, number < Int64(bound) else {
        throw document.invalid(path, "names a column that does not exist")
      }
      guard seen.insert(Int(number)).inserted || repeats else { throw document.invalid(path, "names a column twice") }
      ordinals.append(Int(number))
    }
    return ordinals
  }

  /// Refuses members that were not read.
  func finish() throws(DiffFileError) {
    if let member = remaining.members.first { throw invalid(member.name, "is not a known field") }
  }
}

/// A member of the archive that is a JSON document: its name, and the code of errors in it.
struct JSONMember {
  let name: String
  let code: DiffFileError.Code

  static let manifest = JSONMember(name: MemberName.manifest, code: .badManifest)
  static let schema = JSONMember(name: MemberName.schema, code: .badSchema)
  static let annotations = JSONMember(name: MemberName.annotations, code: .badAnnotations)

  func invalid(_ field: String, _ problem: String, table: String? = nil) -> DiffFileError {
    DiffFileError(code, "\"\(EscapedText.line(field))\" \(problem)", member: name, table: table)
  }

  /// Parses the document's bytes.
  func parse(_ bytes: [UInt8]) throws(DiffFileError) -> JSONValue {
    do throws(JSONError) {
      return try JSONParser.parse(bytes)
    } catch {
      throw DiffFileError(.badJSON, error.what, member: name, offset: error.offset)
    }
  }
}
