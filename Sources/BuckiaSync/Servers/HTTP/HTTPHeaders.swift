import BuckiaBytes
import BuckiaStorage

/// The header fields of a request or an answer, in their order. Names are compared without regard to case (RFC 9110, section 5.1).
public struct HTTPHeaders: Sendable, Equatable, ExpressibleByDictionaryLiteral {
  /// The fields.
  public private(set) var fields: [Field]

  /// One field.
  public struct Field: Sendable, Equatable {
    /// Its name.
    public let name: String
    /// Its value.
    public let value: String
  }

  /// No fields.
  public init() { fields = [] }

  /// Takes names and values.
  public init(dictionaryLiteral elements: (String, String)...) {
    fields = elements.map { Field(name: $0.0, value: $0.1) }
  }

  /// The value of the first field of that name. Setting it replaces all of them; nil removes them.
  public subscript(name: String) -> String? {
    get { fields.first { Self.isSame($0.name, name) }?.value }
    set {
      fields.removeAll { Self.isSame($0.name, name) }
      if let newValue { add(name, newValue) }
    }
  }

  /// Adds a field behind the others.
  public mutating func add(_ name: String, _ value: String) { fields.append(Field(name: name, value: value)) }

  private static func isSame(_ one: String, _ other: String) -> Bool { ASCIIName.matches(one, other) }

}

extension ObjectVersion {
  /// What follows the tag where a server compresses its answers: Apache's modules, Jetty and others.
  private static let encodings = ["--gzip", "-gzip", ";gzip", "-br"]

  /// Takes an entity tag as servers really send it: without quotation marks in listings, as a weak one in its first second or where the answer is
  /// compressed. All of these name one version.
  init(entityTag text: String) {
    var tag = text.hasPrefix("W/") ? text.dropFirst(2) : text[...]
    if tag.utf8.count > 1, tag.first == "\"", tag.last == "\"" { tag = tag.dropFirst().dropLast() }
    for encoding in Self.encodings where tag.hasSuffix(encoding) {
      tag = tag.dropLast(encoding.count)
      break
    }
    self.init("\"\(tag)\"")
  }
}
