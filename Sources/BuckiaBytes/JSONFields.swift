/// A document of which ``JSONFields`` reads objects.
package protocol JSONDocument {
  associatedtype Failure: Error
  /// The error for a field that is not as the document's format says.
  ///
  /// - Parameters:
  ///   - field: The members that lead to it from the document's root.
  ///   - problem: What is wrong with it: a predicate.
  func invalid(_ field: String, _ problem: String) -> Failure
}

/// Reads the members of an object one by one; those that were not read are in ``remaining``.
package struct JSONFields<Document: JSONDocument> {
  package typealias Failure = Document.Failure

  package let document: Document
  package let path: String
  package private(set) var remaining: JSONObject

  /// Begins to read an object.
  ///
  /// - Parameters:
  ///   - path: The members that lead to it from the document's root; empty for the root.
  ///   - document: What errors name.
  package init(_ value: JSONValue, at path: String = "", of document: Document) throws(Failure) {
    guard case .object(let object) = value else { throw document.invalid(path, "is \(value.kind), not an object") }
    self.document = document
    self.path = path
    remaining = object
  }

  package func invalid(_ name: String, _ problem: String) -> Failure { document.invalid(field(name), problem) }

  private func field(_ name: String) -> String { path.isEmpty ? name : "\(path).\(name)" }

  /// Removes a member and returns its value; null counts as absent.
  package mutating func take(_ name: String) -> JSONValue? { remaining.take(name) }

  package mutating func required(_ name: String) throws(Failure) -> JSONValue {
    guard let value = take(name) else { throw invalid(name, "is missing") }
    return value
  }

  package mutating func string(_ name: String) throws(Failure) -> String {
    let value = try required(name)
    guard case .string(let text) = value else { throw invalid(name, "is \(value.kind), not text") }
    return text
  }

  package mutating func optionalString(_ name: String) throws(Failure) -> String? {
    has(name) ? try string(name) : nil
  }

  /// The same, and null is refused.
  package mutating func stringIfNamed(_ name: String) throws(Failure) -> String? {
    remaining[name] == nil ? nil : try string(name)
  }

  package mutating func bool(_ name: String) throws(Failure) -> Bool {
    let value = try required(name)
    guard case .bool(let flag) = value else { throw invalid(name, "is \(value.kind), not true or false") }
    return flag
  }

  /// True if there is such a member; null counts as absent.
  package mutating func has(_ name: String) -> Bool {
    guard remaining[name] == .null else { return remaining[name] != nil }
    _ = remaining.take(name)
    return false
  }

  /// The same, and false where there is none.
  package mutating func flag(_ name: String) throws(Failure) -> Bool { has(name) ? try bool(name) : false }

  /// A number within `range`.
  package mutating func integer(
    _ name: String, in range: ClosedRange<Int64> = 0...(1 << 53)
  ) throws(Failure) -> Int64 {
    let value = try required(name)
    guard case .integer(let number) = value else { throw invalid(name, "is \(value.kind), not a number") }
    guard range.contains(number) else {
      throw invalid(name, "is \(number), outside \(range.lowerBound) to \(range.upperBound)")
    }
    return number
  }

  package mutating func bytes<Value: FixedBytes>(_ name: String, as type: Value.Type) throws(Failure) -> Value {
    guard let value = Value(hex: try string(name)) else {
      let count = Value.byteCount
      throw invalid(name, "is not \(count) bytes as \(2 * count) lowercase hexadecimal digits")
    }
    return value
  }

  package mutating func optionalBytes<Value: FixedBytes>(
    _ name: String, as type: Value.Type
  ) throws(Failure) -> Value? {
    try has(name) ? bytes(name, as: type) : nil
  }

  package mutating func id(_ name: String) throws(Failure) -> KSUID {
    let text = try string(name)
    do throws(KSUIDError) { return try KSUID(parsing: text) } catch { throw invalid(name, "is no id: \(error)") }
  }

  /// One of the raw values of an enumeration.
  package mutating func choice<Value: RawRepresentable<String>>(
    _ name: String, of type: Value.Type
  ) throws(Failure) -> Value {
    let text = try string(name)
    guard let value = Value(rawValue: text) else {
      throw invalid(name, "is \(EscapedText.quoted(text)), which is not known")
    }
    return value
  }

  /// A time in milliseconds since 1970.
  package mutating func time(_ name: String) throws(Failure) -> Int64 { try integer(name, in: 0...Int64.max) }

  package mutating func optionalTime(_ name: String) throws(Failure) -> Int64? { try has(name) ? time(name) : nil }

  /// A list.
  package mutating func values(_ name: String, limit: Int = .max) throws(Failure) -> [JSONValue] {
    try list(name, limit: limit) { (value, _) throws(Failure) in value }
  }

  /// A list, each element read by `read`, which is told the element's path.
  package mutating func list<Element>(
    _ name: String, limit: Int, _ read: (JSONValue, String) throws(Failure) -> Element
  ) throws(Failure) -> [Element] {
    let value = try required(name)
    guard case .array(let values) = value else { throw invalid(name, "is \(value.kind), not a list") }
    guard values.count <= limit else { throw invalid(name, "has \(values.count) entries; the limit is \(limit)") }
    var elements: [Element] = []
    elements.reserveCapacity(values.count)
    for (index, value) in values.enumerated() { elements.append(try read(value, "\(field(name))[\(index)]")) }
    return elements
  }

  /// A list of objects, each read by `read`, which leaves nothing of it.
  package mutating func objects<Element>(
    _ name: String, limit: Int, _ read: (inout JSONFields) throws(Failure) -> Element
  ) throws(Failure) -> [Element] {
    let document = document
    return try list(name, limit: limit) { (value, path) throws(Failure) in
      try JSONFields.object(value, at: path, of: document, read)
    }
  }

  /// The same where the member need not be there; null is refused.
  package mutating func objectsIfNamed<Element>(
    _ name: String, limit: Int, _ read: (inout JSONFields) throws(Failure) -> Element
  ) throws(Failure) -> [Element] {
    remaining[name] == nil ? [] : try objects(name, limit: limit, read)
  }

  /// An object, read by `read`, which leaves nothing of it; nil where there is none.
  package mutating func object<Content>(
    _ name: String, _ read: (inout JSONFields) throws(Failure) -> Content
  ) throws(Failure) -> Content? {
    guard let value = take(name) else { return nil }
    return try JSONFields.object(value, at: field(name), of: document, read)
  }

  private static func object<Content>(
    _ value: JSONValue, at path: String, of document: Document,
    _ read: (inout JSONFields) throws(Failure) -> Content
  ) throws(Failure) -> Content {
    var fields = try JSONFields(value, at: path, of: document)
    let content = try read(&fields)
    try fields.finish()
    return content
  }

  /// What was not read, to be kept as it is.
  package mutating func takeRemaining() -> JSONObject {
    defer { remaining = JSONObject() }
    return remaining
  }

  package mutating func strings(_ name: String, limit: Int = .max) throws(Failure) -> [String] {
    let document = document
    return try list(name, limit: limit) { (value, path) throws(Failure) in
      guard case .string(let text) = value else { throw document.invalid(path, "is \(value.kind), not text") }
      return text
    }
  }

  /// Column numbers, each below `bound`, none twice.
  package mutating func ordinals(_ name: String, below bound: Int) throws(Failure) -> [Int] {
    let value = try required(name)
    return try JSONFields.ordinals(value, at: field(name), below: bound, of: document)
  }

  /// Column numbers, each below `bound`; `repeats` is true if one may come twice, as UNIQUE (a, a) has it.
  package static func ordinals(
    _ value: JSONValue, at path: String, below bound: Int, of document: Document, repeats: Bool = false
  ) throws(Failure) -> [Int] {
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
  package func finish() throws(Failure) {
    if let member = remaining.members.first { throw invalid(member.name, "is not a known field") }
  }
}
